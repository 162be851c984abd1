"""A turn's statuses, the parts that must agree, and `is_over`."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from makeready.common.v1 import options_pb2
from makeready.occupancy.v1 import turns_pb2 as pb
from svc_occupancy.turns import rules as turn_rules

DAY = datetime.date(2026, 3, 10)


def test_the_proto_lists_the_statuses_of_the_rules_in_their_order() -> None:
    labels = [value.GetOptions().Extensions[options_pb2.label] for value in pb.TurnStatus.DESCRIPTOR.values[1:]]
    assert tuple(labels) == turn_rules.TURN_STATUSES


def test_one_status_has_two_spellings() -> None:
    assert [turn_rules.public_status(one) for one in turn_rules.TRANSITION_STATUSES] == list(turn_rules.TURN_STATUSES)
    assert [turn_rules.stored_status(one) for one in turn_rules.TURN_STATUSES] == list(turn_rules.TRANSITION_STATUSES)
    assert all(turn_rules.public_status(status) == status.title() for status in turn_rules.TRANSITION_STATUSES)


@pytest.mark.parametrize(
    ("given_text", "kept"), [("  YARDI ", "yardi"), ("", None), (" \t", None), (None, None), ("é" * 40, "é" * 40)]
)
def test_a_provider_is_kept_stripped_and_in_lower_case(given_text: str | None, kept: str | None) -> None:
    assert turn_rules.provider(given_text, "provider") == kept


@given(st.text(max_size=60))
def test_a_provider_is_kept_once_and_for_all(text: str) -> None:
    try:
        slug = turn_rules.provider(text, "provider")
    except Refusal as refusal:
        assert (refusal.status, refusal.field) == (400, "provider") and len(text.strip().lower()) > 40
    else:
        assert slug is None or (0 < len(slug) <= 40 and slug == slug.strip())


PARTS = {
    "move_out_date": DAY,
    "projected_ready_on": DAY + datetime.timedelta(days=1),
    "occupancy_source": "yardi",
    "occupancy_fed_at": datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC),
}
NEEDS = {"projected_ready_on": "move_out_date", "occupancy_fed_at": "occupancy_source"}


@pytest.mark.parametrize("given_parts", list(itertools.product([False, True], repeat=4)))
def test_a_turns_parts_go_together(given_parts: tuple[bool, ...]) -> None:
    parts: dict[str, Any] = {
        name: value if here else None for (name, value), here in zip(PARTS.items(), given_parts, strict=True)
    }
    faults = [name for name, needed in NEEDS.items() if parts[name] is not None and parts[needed] is None]
    if faults:
        with pytest.raises(Refusal) as refused:
            turn_rules.check_turn(**parts)
        assert refused.value.field == faults[0]
    else:
        turn_rules.check_turn(**parts)


DATES = st.dates(min_value=datetime.date(1971, 1, 2), max_value=datetime.date(8999, 12, 30))


@given(DATES)
def test_a_day_is_over_from_the_next_one_s_morning_on(day: datetime.date) -> None:
    assert [turn_rules.is_over(day, day + n * datetime.timedelta(days=1)) for n in (-1, 0, 1, 2)] == [
        False,
        False,
        True,
        True,
    ]
    assert not turn_rules.is_over(None, day)
