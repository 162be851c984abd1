"""The months that a report covers."""

from __future__ import annotations

import datetime

import pytest

from chassis.refusals import Refusal
from chassis.reports.reading import period_of

TODAY = datetime.date(2026, 11, 28)


@pytest.mark.parametrize(
    ("between", "by_day", "months"),
    [
        (("", ""), False, ("2025-12", "2026-11", 12)),
        (("", ""), True, ("2026-11", "2026-11", 1)),
        (("2026-06", ""), False, ("2026-06", "2026-11", 6)),
        (("", "2026-01"), False, ("2025-02", "2026-01", 12)),
        (("2020-01", ""), False, ("2020-01", "2022-12", 36)),
        (("2026-01", ""), True, ("2026-01", "2026-03", 3)),
        (("2026-02", "2026-02"), True, ("2026-02", "2026-02", 1)),
        (("2027-02", ""), False, ("2027-02", "2027-02", 1)),
    ],
)
def test_a_period_is_of_whole_months(between: tuple[str, str], by_day: bool, months: tuple[str, str, int]) -> None:
    period = period_of(*between, TODAY, by_day=by_day)
    covered = [f"{month:%Y-%m}" for month in period.months]
    assert (covered[0], covered[-1], len(covered)) == months


@pytest.mark.parametrize(
    ("between", "by_day", "status", "field"),
    [
        (("2026-13", ""), False, 400, "from_month"),
        (("", "2026-1"), False, 400, "to_month"),
        (("", "26-01"), False, 400, "to_month"),
        (("1989-12", ""), False, 400, "from_month"),
        (("2026-05", "2026-04"), False, 422, "from_month"),
        (("2023-01", "2026-01"), False, 422, "from_month"),
        (("2026-01", "2026-04"), True, 422, "from_month"),
    ],
)
def test_a_period_that_cannot_be_is_refused(between: tuple[str, str], by_day: bool, status: int, field: str) -> None:
    with pytest.raises(Refusal) as refusal:
        period_of(*between, TODAY, by_day=by_day)
    assert (refusal.value.status, refusal.value.field) == (status, field)
