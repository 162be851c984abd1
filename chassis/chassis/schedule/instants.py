"""Instants as the API prints them (UTC, six digits of a second, always the same length), the slots of sweeps, and the
companies' mornings."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Callable
from typing import Any, overload

import msgspec

from chassis.refusals import invalid_request

LENGTH = 27
Clock = Callable[[], datetime.datetime]
BEGINNING, END = (at.replace(tzinfo=datetime.UTC) for at in (datetime.datetime.min, datetime.datetime.max))
_TICK = datetime.timedelta(microseconds=1)


def now() -> datetime.datetime:
    """The real clock, in UTC."""
    return datetime.datetime.now(datetime.UTC)


def after(now: datetime.datetime, updated_at: datetime.datetime) -> datetime.datetime:
    """The instant of a record's change: `now`, but later than its last change even if the clock is behind."""
    return max(now, updated_at + _TICK)


@overload
def printed(instant: datetime.datetime) -> str: ...
@overload
def printed(instant: None) -> None: ...
def printed(instant: datetime.datetime | None) -> str | None:
    """`YYYY-MM-DDTHH:MM:SS.ffffffZ` (spec 2.1). The instant must be in UTC, as asyncpg returns it."""
    if instant is None:
        return None
    # 0.1 µs; isoformat() and a slice take 1 µs. msgspec leaves out a fraction of zero.
    text: str = msgspec.to_builtins(instant)
    assert text[-1] == "Z"
    return text if len(text) == LENGTH else f"{text[:-1]}.000000Z"


def of_request(request: Any, field: str) -> datetime.datetime | None:
    """The instant in a request's field, a Timestamp; None if the field is absent. Raises Refusal 400 for one that no
    calendar has."""
    if not request.HasField(field):
        return None
    try:
        instant: datetime.datetime = getattr(request, field).ToDatetime(datetime.UTC)
    except (ValueError, OverflowError):
        raise invalid_request(f"{field} must be an instant of the years 1 to 9999.", field) from None
    return instant


def slot_of(instant: datetime.datetime, period_seconds: int) -> datetime.datetime:
    """The last slot at or before `instant`: slots are multiples of the period since the epoch."""
    seconds = int(instant.timestamp()) // period_seconds * period_seconds
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def local_date(now: datetime.datetime, timezone: str) -> datetime.date:
    """The local date in a timezone, an IANA name. An unknown name counts as UTC."""
    return now.astimezone(zone_of(timezone)).date()


def overdue_before(now: datetime.datetime, timezone: str) -> datetime.date:
    """The latest local date whose 06:00 has passed. Work for an earlier date is overdue.

    For the timezone see `local_date`.
    """
    zone, day = zone_of(timezone), local_date(now, timezone)
    # At most once; twice if the timezone has skipped a day.
    while datetime.datetime.combine(day, datetime.time(6), zone).astimezone(datetime.UTC) > now:
        day -= datetime.timedelta(days=1)
    return day


def morning_after(date: datetime.date, timezone: str) -> datetime.datetime:
    """The first instant at which the date lies before `overdue_before`; of the last date that of the calendar's end."""
    return _wall_clock(date, 1, datetime.time(6), timezone)


def day_begins(date: datetime.date, timezone: str) -> datetime.datetime:
    """The first instant at which `local_date` is the date, or a later one if the timezone skips it."""
    return _wall_clock(date, 0, datetime.time(), timezone)


def _wall_clock(date: datetime.date, days: int, time: datetime.time, timezone: str) -> datetime.datetime:
    """The instant at which the wall clock shows this time, so many days after the date. The calendar's ends stand for
    what lies beyond them."""
    try:
        day = date + datetime.timedelta(days=days)
        return datetime.datetime.combine(day, time, zone_of(timezone)).astimezone(datetime.UTC)
    except OverflowError:
        return BEGINNING if date.year == 1 else END


def zone_of(timezone: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return zoneinfo.ZoneInfo("UTC")
