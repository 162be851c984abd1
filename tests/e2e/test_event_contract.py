"""Tests of the check that every event in the tests must pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testkit.event_contract import check_envelope, check_same_as_get, check_unless_changed, data_of, published

EXAMPLES: dict[str, dict[str, Any]] = {
    key: item["post"]["requestBody"]["content"]["application/json"]["examples"]["delivery"]["value"]
    for key, item in published().document["webhooks"].items()
}
INLINE = ("property.notice.published", "turn.task.stale", "pm.stale")


def raw(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("key", EXAMPLES)
def test_the_example_of_each_event_passes_and_one_key_more_or_less_fails(key: str) -> None:
    example = EXAMPLES[key]
    assert check_envelope(raw(example)) == example
    for name in example:
        with pytest.raises(AssertionError):
            check_envelope(raw({other: value for other, value in example.items() if other != name}))
    for name in example["data"]:
        with pytest.raises(AssertionError):
            less = {other: value for other, value in example["data"].items() if other != name}
            check_envelope(raw(example | {"data": less}))
    with pytest.raises(AssertionError):
        check_envelope(raw(example | {"data": example["data"] | {"more": 1}}))


@pytest.mark.parametrize("key", [key for key, example in EXAMPLES.items() if example["change"]])
def test_a_change_has_its_three_keys_and_two_different_values(key: str) -> None:
    example = EXAMPLES[key]
    change = example["change"]
    assert list(change) == ["field", "from", "to"]
    wrong: list[Any] = [None, change | {"more": 1}, {"field": change["field"]}, change | {"field": "other"}]
    wrong += [change | {"from": change["to"]}, dict(reversed(change.items()))]
    for wrong_change in wrong:
        with pytest.raises(AssertionError):
            check_envelope(raw(example | {"change": wrong_change}))


def test_what_has_changed_must_stand_in_data_as_it_is_now() -> None:
    example = EXAMPLES["ticket.status_changed"]
    with pytest.raises(AssertionError):
        check_envelope(raw(example | {"data": example["data"] | {"status": "Completed"}}))


def test_only_what_can_be_fetched_has_ids() -> None:
    for key, example in EXAMPLES.items():
        assert ("entity_id" in example["data"]) == (key not in INLINE)


def test_data_are_compared_to_the_byte() -> None:
    example = EXAMPLES["ticket.created"]
    example = example | {"data": example["data"] | {"title": 'Quoted ","data": and 漏水'}}
    got = raw(example["data"])
    assert data_of(raw(example)) == got
    check_same_as_get(raw(example), got)
    with pytest.raises(AssertionError):
        check_same_as_get(raw(example), got.replace(b":", b": ", 1))


def test_a_record_that_stands_as_it_is_may_differ_by_names_alone() -> None:
    example = EXAMPLES["ticket.created"]
    renamed = example["data"] | {"property": example["data"]["property"] | {"name": "New name"}}
    assert check_unless_changed(example, renamed)
    assert not check_unless_changed(example, renamed | {"updated_at": "2026-03-02T15:00:00.000000Z"})
    with pytest.raises(AssertionError):
        check_unless_changed(example, renamed | {"title": "Another"})
