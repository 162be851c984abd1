"""The rules of preventive-maintenance tasks: place, repetition, status. Pure."""

from __future__ import annotations

import calendar
import datetime
import re
from dataclasses import dataclass
from typing import Literal, get_args

from chassis.refusals import Refusal, invalid_request

PmStatus = Literal["Open", "Completed", "Cancelled"]
PM_STATUSES: tuple[str, ...] = get_args(PmStatus)
PM_SOURCES = ("staff", "import")
REPEAT_DAYS_MAX = 3650
REPEAT_MONTHS_MAX = 120
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# The label of a task with neither a unit nor an area.
WHOLE_PROPERTY = "Whole property"


@dataclass(frozen=True, slots=True)
class Round:
    """How a task repeats: every so many days or months. A monthly task is due on day_of_month, or on the last day of a
    shorter month."""

    days: int | None = None
    months: int | None = None
    day_of_month: int | None = None


def round_of(due_date: datetime.date, days: int | None, months: int | None) -> Round:
    """How a task with this due date repeats. Raises Refusal if it has both days and months."""
    if days is not None and months is not None:
        raise invalid_request("A task repeats by repeat_days or by repeat_months, not both.", "repeat_months", 422)
    return Round(days, months, None if months is None else due_date.day)


def next_due(due_date: datetime.date, comes: Round) -> datetime.date | None:
    """The due date plus one period, whenever the task was completed; None if the task does not repeat.

    A monthly task stays on its day of the month: after January 31 and February 28 comes March 31.
    """
    try:
        if comes.days is not None:
            return due_date + datetime.timedelta(days=comes.days)
        if comes.months is not None:
            years, month = divmod(due_date.month - 1 + comes.months, 12)
            year = due_date.year + years
            last = calendar.monthrange(year, month + 1)[1]
            return datetime.date(year, month + 1, min(comes.day_of_month or due_date.day, last))
    except (OverflowError, ValueError):  # beyond the last possible year
        return None
    return None


def label(unit: str | None, area: str | None) -> str:
    """The task's place as text (spec 6.1)."""
    return unit or area or WHOLE_PROPERTY


def check_place(unit_id: int | None, area: str | None) -> None:
    """Raises Refusal if the task is in both a unit and an area."""
    if unit_id is not None and area is not None:
        raise invalid_request("A task is in a unit or in an area, not both.", "area", 422)


def check_open(status: str) -> None:
    """Raises Refusal unless the task is open."""
    if status != "Open":
        raise invalid_request("Only an open task can be changed; this one is not open any more.", "status", 422)


def closes(status: str, target: str) -> bool:
    """Whether the task's status changes to `target`; False if it already has it. Raises Refusal unless the task is
    open."""
    if status == target:
        return False
    if status != "Open":
        raise Refusal(422, "invalid_request", f"The task is {status}; only an open one can become {target}.")
    return True


def closed_on_import(
    status: str, completed_at: datetime.datetime | None, cancelled_at: datetime.datetime | None, at: datetime.datetime
) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    """completed_at and cancelled_at of an import row. A closed task without an instant closed `at`.

    Raises Refusal, with the field, if an instant belongs to another status.
    """
    if completed_at is not None and status != "Completed":
        raise invalid_request("completed_at belongs to status Completed alone.", "completed_at")
    if cancelled_at is not None and status != "Cancelled":
        raise invalid_request("cancelled_at belongs to status Cancelled alone.", "cancelled_at")
    return (completed_at or at) if status == "Completed" else None, (
        cancelled_at or at
    ) if status == "Cancelled" else None


def read_date(text: str, field: str) -> datetime.date:
    """Raises Refusal unless the text is a date as YYYY-MM-DD."""
    try:
        if _DATE.fullmatch(text):  # Python reads dates of weeks too
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise invalid_request(f"{field} must be a date as YYYY-MM-DD.", field)


def cursor(due_date: str, pm_task_id: int) -> str:
    """The place of a task in the order of due dates."""
    return f"{due_date}.{pm_task_id}"


def read_cursor(text: str) -> tuple[datetime.date, int]:
    """The due date and id behind a cursor; for an empty text the beginning. Raises Refusal."""
    if not text:
        return datetime.date.min, 0
    date, _, number = text.partition(".")
    if number.isascii() and number.isdigit() and len(number) < 19:
        try:
            return read_date(date, "after"), int(number)
        except Refusal:
            pass
    raise Refusal(400, "invalid_cursor", "The cursor was not issued by this list.")
