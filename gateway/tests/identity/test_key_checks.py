"""The form of an API key and its check, without a database."""

from __future__ import annotations

import pytest

from gateway.identity.keys import rules
from gateway.identity.keys.rules import KeyChecks

SECRET, OTHER = b"s" * 32, b"o" * 32
CHECKS = KeyChecks({"2": SECRET, "1": OTHER})


def test_a_key_of_a_sandbox_has_its_mark_and_a_check_of_its_own() -> None:
    key = CHECKS.key_of(CHECKS.new_recipe(is_sandbox=True))
    assert key is not None and key.startswith("mk_test_2")
    assert CHECKS.verdict(key) == "good"
    # It is no live key, and no live key is one of a sandbox.
    assert CHECKS.verdict("mk_" + key.removeprefix("mk_test_")) == "bad"
    assert CHECKS.verdict("mk_test_" + new_key(CHECKS).removeprefix("mk_")) == "bad"
    other = KeyChecks({"1": b"another secret of a ring that is not known"})
    assert CHECKS.verdict(other.key_of(other.new_recipe(is_sandbox=True)) or "") == "unknown ring"


def new_key(checks: KeyChecks) -> str:
    key = checks.key_of(checks.new_recipe())
    assert key is not None
    return key


def test_new_keys_are_of_the_first_secret_and_differ() -> None:
    keys = {new_key(CHECKS) for _ in range(100)}
    assert len(keys) == 100
    for key in keys:
        assert key.startswith(CHECKS.marks[0]) and CHECKS.verdict(key) == "good"
        assert rules.visible(key) == key[: len(CHECKS.marks[0]) + 8]


def test_a_key_of_a_later_secret_is_good_too() -> None:
    assert CHECKS.verdict(new_key(KeyChecks({"1": OTHER}))) == "good"


def test_a_key_that_differs_in_one_character_is_bad() -> None:
    key = new_key(CHECKS)
    start = len(CHECKS.marks[0])
    for place in range(start, len(key)):
        assert CHECKS.verdict(key[:place] + ("A" if key[place] != "A" else "B") + key[place + 1 :]) == "bad"


@pytest.mark.parametrize("ring", [{"3": SECRET}, {"2": OTHER}], ids=["another id", "the id with another secret"])
def test_a_key_of_a_ring_that_is_not_known_is_neither_good_nor_bad(ring: dict[str, bytes]) -> None:
    assert CHECKS.verdict(new_key(KeyChecks(ring))) == "unknown ring"


@pytest.mark.parametrize("key", ["mk_" + "z" * 43, "mk_" + "_" * 43, "mk_12345_" + "x" * 37])
def test_a_key_of_release_0_2_has_no_check(key: str) -> None:
    assert CHECKS.verdict(key) == "unchecked"


@pytest.mark.parametrize(
    "key",
    ["", "mk_", "mk_" + "z" * 42, "mk_" + "z" * 44, "mk__" + "z" * 59, "mk_a-b_" + "z" * 59, "xx_1abcd_" + "z" * 59],
)
def test_anything_else_is_bad(key: str) -> None:
    assert CHECKS.verdict(key) == "bad"
