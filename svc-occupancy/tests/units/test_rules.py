"""How a unit's status follows from its turns: every state, and ranges of dates."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.schedule import instants
from svc_occupancy.units import rules as unit_rules
from svc_occupancy.units.rules import ActiveTurn

DAY = datetime.date(2026, 3, 10)
YESTERDAY, TOMORROW = DAY - datetime.timedelta(1), DAY + datetime.timedelta(1)
RESIDES = ActiveTurn(1, None, None)
LEAVES_TODAY, LEAVES_TOMORROW = ActiveTurn(1, DAY, None), ActiveTurn(1, TOMORROW, TOMORROW)
HAS_LEFT = ActiveTurn(1, YESTERDAY, TOMORROW)
BEFORE = (None, *unit_rules.UNIT_STATUSES)
dates = st.dates()
turns = st.none() | st.builds(ActiveTurn, st.integers(1, 3), st.none() | dates, st.none() | dates)
statuses = st.sampled_from(unit_rules.UNIT_STATUSES)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(
    ("turn", "expected"),
    [(RESIDES, "Occupied"), (LEAVES_TODAY, "Notice"), (LEAVES_TOMORROW, "Notice"), (HAS_LEFT, None), (None, None)],
)
def test_the_active_turn_makes_the_status_and_a_vacant_unit_keeps_the_boards(
    turn: ActiveTurn | None, expected: str | None, before: Any
) -> None:
    kept = before if before in unit_rules.VACANT else "Vacant Not Ready"
    assert unit_rules.unit_status(turn, DAY, before) == (expected or kept)


@given(turns, dates, st.none() | statuses)
def test_a_unit_is_occupied_only_by_an_active_turn_that_has_not_ended(
    turn: Any, day: datetime.date, before: Any
) -> None:
    lives = turn is not None and (turn.move_out_date is None or turn.move_out_date >= day)
    assert (unit_rules.unit_status(turn, day, before) in ("Occupied", "Notice")) == lives


@given(turns, dates, statuses)
def test_a_status_once_derived_stays_that_day(turn: Any, day: datetime.date, before: Any) -> None:
    derived = unit_rules.unit_status(turn, day, before)
    assert unit_rules.unit_status(turn, day, derived) == derived


@pytest.mark.parametrize(
    ("was", "now", "before", "in_file", "expected"),
    [
        # the file's status holds, except for residents without a turn
        (None, RESIDES, None, "Down", "Down"),
        (RESIDES, RESIDES, "Occupied", "Notice", "Notice"),
        (HAS_LEFT, None, "Vacant Not Ready", "Vacant Ready", "Vacant Ready"),
        (HAS_LEFT, None, "Vacant Ready", "Occupied", "Vacant Ready"),
        # without one, a change of the turn sets the status
        (None, RESIDES, None, None, "Occupied"),
        (None, RESIDES, "Vacant Ready", None, "Occupied"),
        (RESIDES, LEAVES_TODAY, "Occupied", None, "Notice"),
        (LEAVES_TODAY, RESIDES, "Notice", None, "Occupied"),
        (LEAVES_TODAY, HAS_LEFT, "Notice", None, "Vacant Not Ready"),
        (HAS_LEFT, ActiveTurn(2, None, None), "Vacant Ready", None, "Occupied"),
        (HAS_LEFT, ActiveTurn(2, YESTERDAY, None), "Vacant Ready", None, "Vacant Not Ready"),
        (RESIDES, None, "Occupied", None, "Vacant Not Ready"),
        (HAS_LEFT, None, "Vacant Ready", None, "Vacant Ready"),
        # without a change of the turn, the status stays
        (RESIDES, RESIDES, "Down", None, "Down"),
        (HAS_LEFT, ActiveTurn(1, YESTERDAY, None), "Vacant Ready", None, "Vacant Ready"),
        (LEAVES_TODAY, LEAVES_TODAY, "Occupied", None, "Occupied"),
        (None, None, "Down", None, "Down"),
    ],
)
def test_a_units_status_after_a_file(was: Any, now: Any, before: Any, in_file: Any, expected: str) -> None:
    assert unit_rules.unit_status_on_import(was, now, DAY, before, in_file) == expected


@given(turns, turns, dates, dates, st.none() | statuses, st.none() | statuses)
def test_the_same_file_on_another_day_changes_no_unit(
    was: Any, now: Any, day: datetime.date, another: datetime.date, before: Any, in_file: Any
) -> None:
    first = unit_rules.unit_status_on_import(was, now, day, before, in_file)
    assert unit_rules.unit_status_on_import(now, now, another, first, in_file) == first


@given(turns)
def test_a_unit_shows_the_ready_date_of_its_active_turn(turn: Any) -> None:
    assert unit_rules.unit_ready_on(turn) == (None if turn is None else turn.projected_ready_on)


def test_today_is_the_companys_own() -> None:
    moment = datetime.datetime(2026, 3, 10, 2, 30, tzinfo=datetime.UTC)
    days = [instants.local_date(moment, zone).day for zone in ("America/Toronto", "UTC", "Pacific/Kiritimati")]
    assert days == [9, 10, 10]
    assert instants.local_date(moment.replace(hour=23), "Asia/Tokyo").day == 11


@pytest.mark.parametrize(
    ("now", "stood", "turn", "expected"),
    [
        # the new resident never came: the unit is what it was
        ("Occupied", "Vacant Ready", HAS_LEFT, "Vacant Ready"),
        ("Occupied", "Down", None, "Down"),
        # the one before has stayed on
        ("Occupied", "Notice", LEAVES_TODAY, "Notice"),
        ("Notice", "Occupied", HAS_LEFT, "Occupied"),
        # a person has said since what the unit is
        ("Down", "Notice", LEAVES_TODAY, "Down"),
        ("Vacant Ready", "Vacant Not Ready", HAS_LEFT, "Vacant Ready"),
        # nothing is known of before
        ("Occupied", None, None, "Vacant Not Ready"),
        ("Occupied", None, RESIDES, "Occupied"),
        ("Occupied", None, HAS_LEFT, "Vacant Not Ready"),
        ("Occupied", "Occupied", None, "Vacant Not Ready"),
    ],
)
def test_a_unit_whose_next_resident_is_put_off(now: Any, stood: Any, turn: Any, expected: str) -> None:
    assert unit_rules.status_put_off(now, stood, turn, DAY) == expected


def test_a_resident_whose_departure_is_known_moves_in_on_notice() -> None:
    assert unit_rules.status_of_resident(None) == "Occupied"
    assert unit_rules.status_of_resident(DAY) == "Notice"
