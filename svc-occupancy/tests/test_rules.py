"""How a unit's status follows from its turns, walked state by state, and over spaces of dates."""

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
from svc_occupancy import rules
from svc_occupancy.rules import ActiveTurn

DAY = datetime.date(2026, 3, 10)
YESTERDAY, TOMORROW = DAY - datetime.timedelta(1), DAY + datetime.timedelta(1)
RESIDES = ActiveTurn(1, None, None)
LEAVES_TODAY, LEAVES_TOMORROW = ActiveTurn(1, DAY, None), ActiveTurn(1, TOMORROW, TOMORROW)
HAS_LEFT = ActiveTurn(1, YESTERDAY, TOMORROW)
BEFORE = (None, *rules.UNIT_STATUSES)

dates = st.dates()
turns = st.none() | st.builds(ActiveTurn, st.integers(1, 3), st.none() | dates, st.none() | dates)
statuses = st.sampled_from(rules.UNIT_STATUSES)


def test_the_proto_lists_the_statuses_of_the_rules_in_their_order() -> None:
    labels = [value.GetOptions().Extensions[options_pb2.label] for value in pb.TurnStatus.DESCRIPTOR.values[1:]]
    assert tuple(labels) == rules.TURN_STATUSES


def test_one_status_has_two_spellings() -> None:
    assert [rules.shown(status) for status in rules.TRANSITION_STATUSES] == list(rules.TURN_STATUSES)
    assert [rules.kept(status) for status in rules.TURN_STATUSES] == list(rules.TRANSITION_STATUSES)
    assert all(rules.shown(status) == status.title() for status in rules.TRANSITION_STATUSES)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(
    ("turn", "expected"),
    [(RESIDES, "Occupied"), (LEAVES_TODAY, "Notice"), (LEAVES_TOMORROW, "Notice"), (HAS_LEFT, None), (None, None)],
)
def test_the_active_turn_makes_the_status_and_a_vacant_unit_keeps_the_boards(
    turn: ActiveTurn | None, expected: str | None, before: Any
) -> None:
    kept = before if before in rules.VACANT else "Vacant Not Ready"
    assert rules.unit_status(turn, DAY, before) == (expected or kept)


@given(turns, dates, st.none() | statuses)
def test_somebody_lives_there_only_by_an_active_turn_that_has_not_ended(
    turn: Any, day: datetime.date, before: Any
) -> None:
    lives = turn is not None and (turn.move_out_date is None or turn.move_out_date >= day)
    assert (rules.unit_status(turn, day, before) in ("Occupied", "Notice")) == lives


@given(turns, dates, statuses)
def test_a_status_once_derived_stays_that_day(turn: Any, day: datetime.date, before: Any) -> None:
    derived = rules.unit_status(turn, day, before)
    assert rules.unit_status(turn, day, derived) == derived


@pytest.mark.parametrize(
    ("was", "now", "before", "told", "expected"),
    [
        # a file's word holds, but for residents that no turn knows
        (None, RESIDES, None, "Down", "Down"),
        (RESIDES, RESIDES, "Occupied", "Notice", "Notice"),
        (HAS_LEFT, None, "Vacant Not Ready", "Vacant Ready", "Vacant Ready"),
        (HAS_LEFT, None, "Vacant Ready", "Occupied", "Vacant Ready"),
        # without one, a change of the turn speaks
        (None, RESIDES, None, None, "Occupied"),
        (None, RESIDES, "Vacant Ready", None, "Occupied"),
        (RESIDES, LEAVES_TODAY, "Occupied", None, "Notice"),
        (LEAVES_TODAY, RESIDES, "Notice", None, "Occupied"),
        (LEAVES_TODAY, HAS_LEFT, "Notice", None, "Vacant Not Ready"),
        (HAS_LEFT, ActiveTurn(2, None, None), "Vacant Ready", None, "Occupied"),
        (HAS_LEFT, ActiveTurn(2, YESTERDAY, None), "Vacant Ready", None, "Vacant Not Ready"),
        (RESIDES, None, "Occupied", None, "Vacant Not Ready"),
        (HAS_LEFT, None, "Vacant Ready", None, "Vacant Ready"),
        # and where the turn says nothing new, the status stays
        (RESIDES, RESIDES, "Down", None, "Down"),
        (HAS_LEFT, ActiveTurn(1, YESTERDAY, None), "Vacant Ready", None, "Vacant Ready"),
        (LEAVES_TODAY, LEAVES_TODAY, "Occupied", None, "Occupied"),
        (None, None, "Down", None, "Down"),
    ],
)
def test_a_units_status_after_a_file(was: Any, now: Any, before: Any, told: Any, expected: str) -> None:
    assert rules.unit_status_on_import(was, now, DAY, before, told) == expected


@given(turns, turns, dates, dates, st.none() | statuses, st.none() | statuses)
def test_the_same_file_on_another_day_changes_no_unit(
    was: Any, now: Any, day: datetime.date, another: datetime.date, before: Any, told: Any
) -> None:
    first = rules.unit_status_on_import(was, now, day, before, told)
    assert rules.unit_status_on_import(now, now, another, first, told) == first


@given(turns)
def test_a_unit_shows_the_ready_date_of_its_active_turn(turn: Any) -> None:
    assert rules.unit_ready_on(turn) == (None if turn is None else turn.projected_ready_on)


def test_today_is_the_companys_own() -> None:
    moment = datetime.datetime(2026, 3, 10, 2, 30, tzinfo=datetime.UTC)
    days = [rules.today(moment, zone).day for zone in ("America/Toronto", "UTC", "Pacific/Kiritimati")]
    assert days == [9, 10, 10]
    assert rules.today(moment.replace(hour=23), "Asia/Tokyo").day == 11


@pytest.mark.parametrize(
    ("given_text", "kept"), [("  YARDI ", "yardi"), ("", None), (" \t", None), (None, None), ("é" * 40, "é" * 40)]
)
def test_a_provider_is_kept_stripped_and_in_lower_case(given_text: str | None, kept: str | None) -> None:
    assert rules.provider(given_text, "provider") == kept


@given(st.text(max_size=60))
def test_a_provider_is_kept_once_and_for_all(text: str) -> None:
    try:
        slug = rules.provider(text, "provider")
    except Refusal as refusal:
        assert (refusal.status, refusal.field) == (400, "provider") and len(text.strip().lower()) > 40
    else:
        assert slug is None or (0 < len(slug) <= 40 and slug == slug.strip())


PARTS = {
    "move_out_date": DAY,
    "projected_ready_on": TOMORROW,
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
            rules.check_turn(**parts)
        assert refused.value.field == faults[0]
    else:
        rules.check_turn(**parts)
