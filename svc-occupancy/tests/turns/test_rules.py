"""A turn's statuses, the parts that must agree, and `is_over`."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from makeready.common.v1 import options_pb2
from makeready.occupancy.v1 import turns_pb2 as pb
from svc_occupancy.turns import rules as turn_rules
from svc_occupancy.units.rules import UNIT_STATUSES

DAY = datetime.date(2026, 3, 10)


def test_the_proto_lists_the_statuses_of_the_rules_in_their_order() -> None:
    labels = [value.GetOptions().Extensions[options_pb2.label] for value in pb.TurnStatus.DESCRIPTOR.values[1:]]
    assert tuple(labels) == turn_rules.TURN_STATUSES


def test_one_status_has_two_spellings() -> None:
    assert [turn_rules.public_status(status) for status in turn_rules.TRANSITION_STATUSES] == list(
        turn_rules.TURN_STATUSES
    )
    assert [turn_rules.stored_status(status) for status in turn_rules.TURN_STATUSES] == list(
        turn_rules.TRANSITION_STATUSES
    )
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


ONE_DAY = datetime.timedelta(days=1)


@dataclass
class Residency:
    """An active turn as the rules see it."""

    number: int = 0

    move_in_date: datetime.date | None = None
    move_out_date: datetime.date | None = None
    vacated_on: datetime.date | None = None


@pytest.mark.parametrize("vacated_on", [None, DAY])
@pytest.mark.parametrize("is_swept", [False, True])
@pytest.mark.parametrize("status", UNIT_STATUSES)
def test_what_staff_say_of_a_unit_says_whether_its_resident_has_left(
    status: Any, is_swept: bool, vacated_on: Any
) -> None:
    for move_out_date in (None, DAY + ONE_DAY):
        after = turn_rules.vacated_on(vacated_on, move_out_date, status, is_swept=is_swept)
        if status.startswith("Vacant"):
            assert after == move_out_date
        elif status == "Down" or is_swept:
            assert after == vacated_on
        else:
            assert after is None


@pytest.mark.parametrize(
    ("current", "begins", "clash"),
    [
        (None, DAY, False),
        (Residency(move_out_date=DAY - ONE_DAY), DAY, False),
        (Residency(move_out_date=DAY), DAY, False),  # both on one day
        (Residency(move_out_date=DAY + ONE_DAY), DAY + ONE_DAY, True),
        (Residency(), None, True),
        (Residency(move_out_date=DAY + ONE_DAY, vacated_on=DAY + ONE_DAY), DAY, False),  # has left early
    ],
)
def test_a_planned_turn_begins_when_the_resident_before_has_left(current: Any, begins: Any, clash: bool) -> None:
    planned = Residency(move_in_date=DAY)
    assert turn_rules.begins_on(current, planned) == begins
    assert turn_rules.is_clash(current, planned) == clash
    assert not turn_rules.is_clash(current, None)


class House:
    """A unit's row of turns, to which time alone does something."""

    def __init__(self, turns: list[tuple[Any, Any]], has_current: bool) -> None:
        self.row = [Residency(number, *dates) for number, dates in enumerate(turns)]
        self.current = self.row.pop(0) if has_current and self.row else None
        self.history: list[tuple[str, Any]] = []

    def sweep(self, today: datetime.date, morning: datetime.date) -> None:
        while step := turn_rules.next_step(self.current, self.row[0] if self.row else None, today, morning):
            if step == "begin":
                self.current = self.row.pop(0)
            else:
                assert self.current is not None
                self.current.vacated_on = self.current.move_out_date
            self.history.append((step, self.current))


_days = st.integers(0, 12).map(lambda days: DAY + days * ONE_DAY)


@given(st.lists(st.tuples(_days, st.none() | _days), min_size=1, max_size=4), st.booleans(), st.integers(0, 20))
def test_a_sweep_that_is_late_takes_the_steps_of_those_that_were_not(
    turns: list[tuple[Any, Any]], has_current: bool, days: int
) -> None:
    """Two sweeps a day, at midnight and in the morning."""
    daily, late = House(turns, has_current), House(turns, has_current)
    for number in range(-1, days):
        day = DAY + number * ONE_DAY
        daily.sweep(day, day - ONE_DAY)
        daily.sweep(day, day)
    last = DAY + (days - 1) * ONE_DAY
    late.sweep(last, last)
    assert late.history == daily.history and late.row == daily.row
    begun = [turn for step, turn in late.history if step == "begin"]
    assert all(turn.move_in_date is not None and turn.move_in_date <= last for turn in begun)


@dataclass(frozen=True)
class InRow:
    turn_id: int
    move_in_date: datetime.date
    predecessor_id: int | None


@given(st.permutations(range(1, 6)), st.lists(_days, min_size=5, max_size=5))
def test_planned_turns_stand_behind_their_predecessors_whatever_their_dates(ids: Any, dates: Any) -> None:
    row = [InRow(turn_id, date, before) for turn_id, date, before in zip(ids, dates, [9, *ids[:-1]], strict=True)]
    assert turn_rules.in_order(reversed(row)) == row
    assert turn_rules.in_order([]) == []


def test_a_notice_stays_while_a_move_in_is_planned() -> None:
    turn_rules.check_notice_cancellation(None)
    with pytest.raises(Refusal, match="A move-in is planned for 2026-03-10; cancel that first"):
        turn_rules.check_notice_cancellation(DAY)
