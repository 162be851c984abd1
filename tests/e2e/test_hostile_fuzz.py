"""Valid bodies of every write, changed at random: never a fault, always the envelope, and no body that violates the
published schema is accepted. The cases are the same in every run."""

from __future__ import annotations

import copy
import functools
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from testkit.examples import examples, is_whole

from . import hostile_bodies as bad
from .hostile_bodies import Body, Path
from .hostile_writes import DOCUMENT, SUCCESS, WRITES, World, every_write

pytestmark = pytest.mark.usefixtures("no_faults")

EXAMPLES = examples(150)
fuzzed = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
# Any text that the parser accepts; texts that it refuses have their own tests.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
WORDS = st.sampled_from(
    ["Open", "Completed", "Cancelled", "see_notes", "leaseholder", "guarantor", "2026-10-01", "a b"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.integers(1, 300) | st.floats(allow_nan=False) | TEXT | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=22) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=25,
)


def holder(body: Any, path: Path) -> Any:
    """The object or array that contains the path's last step."""
    return bad.value_at(body, path[:-1])


@st.composite
def changed(draw: st.DrawFn, bodies: list[Body]) -> Body:
    """One of the bodies after a few changes: values replaced, moved, removed, repeated, and keys added."""
    body = copy.deepcopy(draw(st.sampled_from(bodies)))
    for _ in range(draw(st.integers(1, 4))):
        paths = list(bad.fields(body))
        if not paths:  # all that can change is that a key comes
            body[draw(TEXT)] = draw(VALUES)
            continue
        path = draw(st.sampled_from(paths))
        place, step = holder(body, path), path[-1]
        change = draw(st.sampled_from(["value", "lose", "move", "wrap", "repeat", "add", "text"]))
        if change == "value":
            place[step] = draw(VALUES)
        elif change == "lose":
            del place[step]
        elif change == "move":
            place[step] = copy.deepcopy(bad.value_at(body, draw(st.sampled_from(paths))))
        elif change == "wrap":
            place[step] = [place[step]] * draw(st.integers(0, 25))
        elif change == "repeat" and isinstance(place[step], list):
            place[step] = copy.deepcopy(place[step] * draw(st.integers(0, 15)))
        elif change == "add" and isinstance(place, dict):
            place[draw(TEXT)] = draw(VALUES)
        elif isinstance(place[step], str):
            place[step] = draw(TEXT) + place[step] + draw(TEXT)
    return body


@functools.cache
def validator(write: str) -> Draft202012Validator:
    verb, _, path = write.partition(" ")
    content = DOCUMENT["paths"][path][verb.lower()]["requestBody"]["content"]["application/json"]
    return Draft202012Validator({"components": DOCUMENT["components"], **content["schema"]})


@every_write
def test_bodies_changed_at_random(world: World, write: str) -> None:
    taken: list[Body] = []
    refused: list[Body] = []

    @fuzzed
    @given(changed(world.bodies(write)))
    def run(body: Body) -> None:
        answer = world.send(write, world.path(write), world.key(1), bad.raw(body), next(world.once))
        assert answer.status in (SUCCESS[write], 400, 404, 422), answer
        (taken if answer.status < 400 else refused).append(body)
        assert answer.status >= 400 or validator(write).is_valid(body), (body, answer)
        world.answered[write] += 1

    run()
    assert len(refused) > EXAMPLES / 2
    assert taken or not is_whole()  # both outcomes occurred; of few changes to a ticket's status none may fit


@every_write
def test_bytes_changed_at_random(world: World, write: str) -> None:
    whole = [bad.raw(body) for body in world.bodies(write)]

    @fuzzed
    @given(st.sampled_from(whole), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), st.binary(max_size=3))))
    def run(body: bytes, changes: list[tuple[float, int, bytes]]) -> None:
        sent = bytearray(body)
        for where, length, put in changes:
            at = int(where * len(sent))
            sent[at : at + length] = put
        answer = world.send(write, world.path(write), world.key(1), bytes(sent), next(world.once))
        assert answer.status in (SUCCESS[write], 400, 404, 422), answer
        assert answer.status >= 400 or validator(write).is_valid(json.loads(sent)), (sent, answer)
        world.answered[write] += 1

    run()


@pytest.mark.parametrize("write", [write for write in WRITES if "{" in write])
@fuzzed
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1))
def test_ids_in_the_path_changed_at_random(world: World, write: str, text: str) -> None:
    assume(not (text.isascii() and text.isdecimal()))  # such a text may be the id of a record
    method, _, template = write.partition(" ")
    head, _, tail = template.partition("{")
    path = head + quote(text, safe="") + tail.partition("}")[2]
    body = bad.raw(world.bodies(write)[0])
    answer = world.system.call(method, path, world.key(1), body, {"Idempotency-Key": next(world.once)})
    assert answer.status == 404 and answer.code == "not_found", (path, answer)
    world.answered[write] += 1
