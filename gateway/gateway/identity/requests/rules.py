"""What the request log keeps, for how long, and what may be asked about it. Pure."""

from __future__ import annotations

import datetime
import re

from chassis.refusals import Refusal, invalid_request

RETENTION_DAYS, AHEAD_DAYS = 30, 3
PAGE, PAGE_MAX = 50, 200
FOLLOWED_ROUTE = "/requests"
"""Its own requests are in the feed of requests only if they are asked for."""
CLOCK_MICROSECONDS = 60_000_000
"""How far the clocks of a gateway and of the database may differ."""
LATE_MICROSECONDS = 600_000_000
"""How long after it came a request is stored at most."""
SCANNED_MAX = 5000
"""Rows that a page looks at: a filter that few rows meet must not read a month of them."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_REQUEST_ID = re.compile("[0-9a-f]{24}")
_STATUS = re.compile("[1-5](?:xx|[0-9]{2})")


def first_id(day: datetime.date) -> str:
    """The least id of a day (UTC)."""
    return str(id_at(datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)))


def id_at(instant: datetime.datetime) -> int:
    """The least id of what is stored at the instant."""
    return (instant - _EPOCH) // _MICROSECOND


def day_of(request_id: str) -> datetime.date:
    """The day (UTC) of an id, as text."""
    return (_EPOCH + int(request_id) * _MICROSECOND).date()


def keeps(kept: str, status: int, method: str) -> bool:
    """Whether a request is logged. kept: all, writes, refused or off."""
    if kept in ("all", "off"):
        return kept == "all"
    return status >= 400 or (kept == "writes" and method not in ("GET", "HEAD"))


def statuses(text: str) -> tuple[int, int]:
    """The first and the last status that a filter means, such as 404 or 4xx; empty: all. Raises Refusal 422."""
    if not text:
        return 0, 999
    if not _STATUS.fullmatch(text):
        raise invalid_request("status must be an HTTP status such as 404, or a class such as 4xx.", "status", 422)
    return (int(text[0]) * 100, int(text[0]) * 100 + 99) if text[1:] == "xx" else (int(text), int(text))


def is_request_id(text: str) -> bool:
    """Whether a request may have this id."""
    return bool(_REQUEST_ID.fullmatch(text))


def no_request() -> Refusal:
    return Refusal(
        404, "not_found", "No logged request has that id; check it, and whether it is older than the log reaches."
    )
