"""Every status set on every kind of unit, and every schedule of every kind of turn."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_occupancy.board import rules as board_rules
from svc_occupancy.turns import rules as turn_rules
from svc_occupancy.units import rules as unit_rules

DATES = st.dates(min_value=datetime.date(1971, 1, 2), max_value=datetime.date(8999, 12, 30))


@pytest.mark.parametrize("status", unit_rules.UNIT_STATUSES)
@pytest.mark.parametrize("turn", ["none", "stays", "leaves"])
def test_every_status_said_of_every_unit(status: unit_rules.UnitStatus, turn: str) -> None:
    fits = (
        status.startswith("Vacant")
        or status == "Down"
        or (turn, status)
        in {
            ("stays", "Occupied"),
            ("leaves", "Occupied"),
            ("leaves", "Notice"),
        }
    )
    date = datetime.date(2026, 3, 1) if turn == "leaves" else None
    try:
        board_rules.check_unit_status(status, is_lived_in=turn != "none", move_out_date=date)
    except Refusal as refusal:
        assert (refusal.status, fits) == (422, False)
    else:
        assert fits


@pytest.mark.parametrize("status", turn_rules.TRANSITION_STATUSES)
@given(out=st.none() | DATES, ready=st.none() | DATES)
def test_a_schedule_needs_an_active_turn_and_a_date_a_departure(
    status: turn_rules.TransitionStatus, out: datetime.date | None, ready: datetime.date | None
) -> None:
    fits = status == "active" and (ready is None or out is not None)
    try:
        board_rules.check_schedule(status, out, ready)
    except Refusal as refusal:
        assert (refusal.status, fits) == (422, False)
    else:
        assert fits
