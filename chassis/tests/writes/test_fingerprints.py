"""The meaning of "the same request" (spec 4.13): equal JSON, however it is written, to the same operation."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.auth.identity import INTEGRATION, Identity
from chassis.records import bodies
from chassis.writes import idempotency

CALLERS = Identity(INTEGRATION, "gateway", company_id=1, api_key_id=2, scope="write", administrator_id=3)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NUMBERS = st.integers() | st.integers(-(10**400), 10**400) | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(TEXT, VALUES, min_size=1, max_size=5)


def spelled(value: Any, random: Random) -> str:
    """One of the many JSON texts of the value."""
    if isinstance(value, dict):
        pairs = [f"{blanks(random)}{spelled(key, random)}:{spelled(inner, random)}" for key, inner in value.items()]
        random.shuffle(pairs)
        return "{" + ",".join(pairs) + blanks(random) + "}"
    if isinstance(value, list):
        return "[" + ",".join(blanks(random) + spelled(inner, random) for inner in value) + "]"
    if isinstance(value, str):
        return '"' + "".join(character(inner, random) for inner in value) + '"'
    if isinstance(value, float) and random.random() < 0.5:
        return f"{value:.17E}"
    if type(value) is int and value == 0:
        return random.choice(["0", "-0"])
    return json.dumps(value)


def blanks(random: Random) -> str:
    return "".join(random.choices(" \t\r\n", k=random.randrange(3)))


def character(letter: str, random: Random) -> str:
    units = letter.encode("utf-16-be")
    escaped = "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    plain = letter if letter >= " " and letter not in '"\\' else json.dumps(letter)[1:-1]
    return random.choice([escaped, escaped.upper().replace("\\U", "\\u"), "\\/" if letter == "/" else plain])


def distinguishable(value: Any) -> Any:
    """The value in a form whose equality is JSON's: in Python 1, 1.0 and True are equal."""
    if isinstance(value, dict):
        return {key: distinguishable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [distinguishable(inner) for inner in value]
    return type(value).__name__, repr(value) if isinstance(value, float) else value


def canonical(text: str) -> bytes:
    return bodies.canonical(bodies.parse(text.encode()))


def value(text: str) -> bytes:
    return canonical(f'{{"x":{text}}}')


@given(BODIES, st.randoms(use_true_random=False))
def test_one_body_has_one_fingerprint_however_it_is_spelled(body: dict[str, Any], random: Random) -> None:
    first, second = spelled(body, random), spelled(body, random)
    assert canonical(first) == canonical(second) == canonical(json.dumps(body))
    assert json.loads(canonical(first)) == body


@given(BODIES, BODIES, st.data())
def test_two_bodies_have_two_fingerprints(body: dict[str, Any], other: dict[str, Any], data: st.DataObject) -> None:
    if data.draw(st.booleans()):  # else two at random, which are seldom equal
        other = dict(body)
        other[data.draw(st.sampled_from(sorted(body)))] = data.draw(VALUES)
    same = distinguishable(body) == distinguishable(other)
    assert (canonical(json.dumps(body)) == canonical(json.dumps(other))) == same


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1", "1.0"),
        ("1", "true"),
        ("0", "false"),
        ("0", "null"),
        ("1", '"1"'),
        ("0.0", "-0.0"),
        ("100", "1e2"),
        ("9007199254740992", "9007199254740993"),
        ('"é"', '"e\\u0301"'),
        ('"ﬁ"', '"fi"'),
        ('"a"', '"A"'),
        ('"a"', '"a "'),
        ('""', "null"),
        ("[]", "{}"),
        ("[]", "null"),
        ("[1,2]", "[2,1]"),
        ("[[1],2]", "[[1,2]]"),
        ('{"a":1}', '{"A":1}'),
        ('{"a":{"b":1}}', '{"a.b":1}'),
        ('"\\\\u0041"', '"A"'),
        ('"\\"}"', '"}"'),
    ],
)
def test_different_json_has_different_fingerprints(first: str, second: str) -> None:
    assert value(first) != value(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("0", "-0"),
        ("1.5", "1.50"),
        ("1.5", "15e-1"),
        ("1e2", "1E+2"),
        ("1e2", "100.0"),
        ('"/"', '"\\/"'),
        ('"é"', '"\\u00E9"'),
        ('"😀"', '"\\ud83d\\uDE00"'),
        ('{"a":1,"b":2}', ' { "b" : 2 , "a" : 1 } '),
        ('{"\\u0061":1}', '{"a":1}'),
    ],
)
def test_what_only_looks_different_has_one_fingerprint(first: str, second: str) -> None:
    assert value(first) == value(second)


OPERATIONS = st.sampled_from(["POST /tickets", "POST /webhooks", "PATCH /tickets/{}", "POST /units/{}/notice"])


@given(OPERATIONS, st.integers(1, 2**63 - 1), OPERATIONS, st.integers(1, 2**63 - 1), BODIES)
def test_another_operation_or_id_is_another_request(
    template: str, one_id: int, other: str, other_id: int, body: dict[str, Any]
) -> None:
    same = template.format(one_id) == other.format(other_id)
    canonical_body = bodies.canonical(body)
    first, second = (
        idempotency.claim(CALLERS, "key", operation, canonical_body).fingerprint
        for operation in (template.format(one_id), other.format(other_id))
    )
    assert (first == second) == same


@given(st.text("/0{}", max_size=3), BODIES, st.text("/0{}", max_size=3), BODIES)
def test_operation_and_body_do_not_run_into_each_other(
    operation: str, body: dict[str, Any], other: str, other_body: dict[str, Any]
) -> None:
    first, second = bodies.canonical(body), bodies.canonical(other_body)
    same = (operation, first) == (other, second)
    fingerprints = [
        idempotency.claim(CALLERS, "key", *request).fingerprint for request in ((operation, first), (other, second))
    ]
    assert (fingerprints[0] == fingerprints[1]) == same


@given(st.tuples(st.integers(1, 12), st.integers(1, 12), st.text("1/2", min_size=1, max_size=3)), st.data())
def test_a_claim_is_of_one_company_one_api_key_and_one_key(
    key_parts: tuple[int, int, str], data: st.DataObject
) -> None:
    """A claim's lock is for exactly these three values."""
    other = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 12), st.text("1/2", min_size=1, max_size=3)))
    first, second = (
        idempotency.claim(
            Identity(INTEGRATION, "gateway", company_id=company, api_key_id=api_key), key, "POST /x", b"{}"
        )
        for company, api_key, key in (key_parts, other)
    )
    assert (first.lock == second.lock) == (key_parts == other) == (first.key() == second.key())
    assert first.fingerprint == second.fingerprint
