"""Pages of lists by date: cursors and limits."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

from chassis.records import bodies
from chassis.refusals import invalid_request

ROWS, ROWS_MAX = 50, 200


class Place(NamedTuple):
    """The last row of a page in a list by date. A row without a date has the last date of the calendar."""

    date: datetime.date
    id: int

    def __str__(self) -> str:
        return f"{self.date.isoformat()}.{self.id}"


START = Place(datetime.date.min, 0)


def place_of(date: datetime.date | None, record_id: int) -> Place:
    return Place(date or datetime.date.max, record_id)


def place_after(request: Any) -> Place:
    """The place in the request's `after`. Raises Refusal 400 for a text that no page had."""
    if not request.HasField("after"):
        return START
    date, _, number = request.after.partition(".")
    try:
        found = Place(datetime.date.fromisoformat(date), int(number))
    except ValueError:
        found = START
    if str(found) != request.after or not 0 < found.id <= bodies.ID_MAX:
        raise invalid_request("after must be the next_after of an earlier page.", "after")
    return found


def rows_of(request: Any, most: int = ROWS_MAX, default: int = ROWS) -> int:
    """The request's `limit`. Raises Refusal 400 for one that is out of bounds."""
    rows: int = request.limit if request.HasField("limit") else default
    if not 1 <= rows <= most:
        raise invalid_request(f"limit must be from 1 to {most}.", "limit")
    return rows


def date_of(request: Any, field: str) -> datetime.date | None:
    """The date in a request's field; None if it is absent. Raises Refusal 400."""
    if not request.HasField(field):
        return None
    try:
        return datetime.date.fromisoformat(getattr(request, field))
    except ValueError:
        raise invalid_request(f"{field} must be a date as YYYY-MM-DD.", field) from None
