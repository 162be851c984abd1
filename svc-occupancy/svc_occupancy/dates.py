"""Pages of lists by date: cursors and limits."""

from __future__ import annotations

import datetime
from typing import Literal, NamedTuple, Protocol

from google.protobuf.message import Message

from chassis.records import bodies
from chassis.refusals import invalid_request

ROWS, ROWS_MAX = 50, 200


class Position(NamedTuple):
    """The last row of a page in a list by date. A row without a date has the last date of the calendar."""

    date: datetime.date
    id: int

    def __str__(self) -> str:
        return f"{self.date.isoformat()}.{self.id}"


class Following(Protocol):
    """A request for the rows after a position."""

    @property
    def after(self) -> str: ...
    def HasField(self, field_name: Literal["after"], /) -> bool: ...


START = Position(datetime.date.min, 0)


def position_of(date: datetime.date | None, record_id: int) -> Position:
    return Position(date or datetime.date.max, record_id)


def position_after(request: Following) -> Position:
    """The position in the request's `after`. Raises Refusal 400 for a text that no page had."""
    if not request.HasField("after"):
        return START
    date, _, number = request.after.partition(".")
    try:
        position = Position(datetime.date.fromisoformat(date), int(number))
    except ValueError:
        position = START
    if str(position) != request.after or not 0 < position.id <= bodies.ID_MAX:
        raise invalid_request("after must be the next_after of an earlier page.", "after")
    return position


def date_of(request: Message, field: str) -> datetime.date | None:
    """The date in a request's field; None if it is absent. Raises Refusal 400."""
    if not request.HasField(field):
        return None
    try:
        return datetime.date.fromisoformat(getattr(request, field))
    except ValueError:
        raise invalid_request(f"{field} must be a date as YYYY-MM-DD.", field) from None
