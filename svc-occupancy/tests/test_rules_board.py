"""Every state of a task met by every act; every status that may be said of every unit; what is over."""

from __future__ import annotations

import datetime
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_occupancy import rules, rules_board
from svc_occupancy.rules_board import TASK_ACTS, TASK_STATUSES

# The table, spelled out once more; what is not in it is refused.
BECOMES = {
    ("open", "change"): "open",
    ("open", "complete"): "completed",
    ("open", "cancel"): "cancelled",
    ("completed", "complete"): "completed",
    ("cancelled", "cancel"): "cancelled",
}
DAY = datetime.timedelta(days=1)
DATES = st.dates(min_value=datetime.date(1971, 1, 2), max_value=datetime.date(8999, 12, 30))


@pytest.mark.parametrize(("status", "act"), list(itertools.product(TASK_STATUSES, TASK_ACTS)))
def test_every_act_on_every_task(status: rules_board.TaskStatus, act: rules_board.TaskAct) -> None:
    if (status, act) in BECOMES:
        assert rules_board.after_act(status, act) == BECOMES[status, act]
        return
    with pytest.raises(Refusal) as refused:
        rules_board.after_act(status, act)
    assert refused.value.status == 422 and status in refused.value.message


def test_a_task_s_status_is_shown_and_read_back() -> None:
    assert [rules_board.kept_task(rules_board.shown_task(one)) for one in TASK_STATUSES] == list(TASK_STATUSES)
    assert [rules_board.shown_task(one) for one in TASK_STATUSES] == [one.title() for one in TASK_STATUSES]


@pytest.mark.parametrize("status", rules.UNIT_STATUSES)
@pytest.mark.parametrize("turn", ["none", "stays", "leaves"])
def test_every_status_said_of_every_unit(status: rules.UnitStatus, turn: str) -> None:
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
        rules_board.check_unit_status(status, is_lived_in=turn != "none", move_out_date=date)
    except Refusal as refusal:
        assert (refusal.status, fits) == (422, False)
    else:
        assert fits


@pytest.mark.parametrize("status", [None, *rules.UNIT_STATUSES])
def test_only_a_unit_that_is_lived_in_becomes_vacant(status: rules.UnitStatus | None) -> None:
    after = rules_board.vacated(status)
    assert after == ("Vacant Not Ready" if status in ("Occupied", "Notice") else status)
    assert rules_board.vacated(after) == after


@pytest.mark.parametrize("status", rules.TRANSITION_STATUSES)
@given(out=st.none() | DATES, ready=st.none() | DATES)
def test_a_schedule_needs_an_active_turn_and_a_date_a_departure(
    status: rules.TransitionStatus, out: datetime.date | None, ready: datetime.date | None
) -> None:
    fits = status == "active" and (ready is None or out is not None)
    try:
        rules_board.check_schedule(status, out, ready)
    except Refusal as refusal:
        assert (refusal.status, fits) == (422, False)
    else:
        assert fits


@given(DATES)
def test_a_day_is_over_from_the_next_one_s_morning_on(day: datetime.date) -> None:
    assert [rules_board.is_over(day, day + n * DAY) for n in (-1, 0, 1, 2)] == [False, False, True, True]
    assert not rules_board.is_over(None, day)
