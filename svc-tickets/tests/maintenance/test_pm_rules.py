"""When a preventive-maintenance task repeats, and how its status changes."""

from __future__ import annotations

import calendar
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_tickets.maintenance import rules
from svc_tickets.maintenance.rules import Round, next_due, round_of

DATES = st.dates(datetime.date(2000, 1, 1), datetime.date(2100, 1, 1))


@given(DATES, st.integers(1, rules.REPEAT_DAYS_MAX))
def test_by_days_it_comes_round_that_many_days_after_its_own_due_date(due: datetime.date, days: int) -> None:
    assert next_due(due, round_of(due, days, None)) == due + datetime.timedelta(days=days)


@given(DATES, st.integers(1, rules.REPEAT_MONTHS_MAX), st.integers(1, 20))
def test_by_months_it_stays_on_its_day_of_the_month(due: datetime.date, months: int, times: int) -> None:
    comes, at = round_of(due, None, months), due
    for n in range(1, times + 1):
        following = next_due(at, comes)
        assert following is not None
        at = following
        months_on = (at.year - due.year) * 12 + at.month - due.month
        assert months_on == n * months
        assert at.day == min(due.day, calendar.monthrange(at.year, at.month)[1])


@pytest.mark.parametrize(
    ("due", "months", "following"),
    [
        ("2026-01-31", 1, ["2026-02-28", "2026-03-31", "2026-04-30"]),
        ("2024-02-29", 12, ["2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29"]),
        ("2026-11-30", 3, ["2027-02-28", "2027-05-30"]),
        ("2026-12-01", 1, ["2027-01-01"]),
    ],
)
def test_a_month_without_the_day_has_its_last_instead(due: str, months: int, following: list[str]) -> None:
    at: datetime.date | None = datetime.date.fromisoformat(due)
    assert at is not None
    comes = round_of(at, None, months)
    due_dates = []
    for _ in following:
        assert at is not None
        at = next_due(at, comes)
        due_dates.append(str(at))
    assert due_dates == following


@given(DATES)
def test_what_does_not_repeat_does_not_come_round(due: datetime.date) -> None:
    assert next_due(due, round_of(due, None, None)) is None


@given(st.integers(1, rules.REPEAT_DAYS_MAX), st.integers(1, rules.REPEAT_MONTHS_MAX))
def test_there_is_nothing_after_the_last_year(days: int, months: int) -> None:
    last = datetime.date.max
    assert next_due(last, Round(days)) is None
    assert next_due(last, Round(None, months, 31)) is None


def test_a_task_comes_round_in_one_way_and_is_in_one_place() -> None:
    with pytest.raises(Refusal, match="not both"):
        round_of(datetime.date(2026, 1, 1), 1, 1)
    with pytest.raises(Refusal, match="not both"):
        rules.check_place(5, "Roof")
    for unit_id, area in ((5, None), (None, "Roof"), (None, None)):
        rules.check_place(unit_id, area)


# (status, action) -> result: "moves", "stays" if nothing changes, or "refused".
TRANSITIONS = {
    ("Open", "Completed"): "moves",
    ("Open", "Cancelled"): "moves",
    ("Completed", "Completed"): "stays",
    ("Completed", "Cancelled"): "refused",
    ("Cancelled", "Completed"): "refused",
    ("Cancelled", "Cancelled"): "stays",
}


@pytest.mark.parametrize("status", rules.PM_STATUSES)
@pytest.mark.parametrize("target", ["Completed", "Cancelled"])
def test_every_status_and_what_may_become_of_it(status: str, target: str) -> None:
    try:
        outcome = "moves" if rules.closes(status, target) else "stays"
    except Refusal as refusal:
        assert refusal.status == 422
        outcome = "refused"
    assert outcome == TRANSITIONS[status, target]


def test_only_an_open_task_can_be_changed() -> None:
    for status in rules.PM_STATUSES:
        if status == "Open":
            rules.check_open(status)
        else:
            with pytest.raises(Refusal) as refused:
                rules.check_open(status)
            assert refused.value.status == 422
