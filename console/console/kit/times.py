"""Instants in words, by the company's wall clock. A page that bears a time has the instant in `datetime`."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Callable

from google.protobuf.timestamp_pb2 import Timestamp
from markupsafe import Markup

Instant = datetime.datetime


def instant(stamp: Timestamp) -> Instant | None:
    """The instant; None for a stamp that is not set."""
    return stamp.ToDatetime(datetime.UTC) if stamp.seconds or stamp.nanos else None


def zone(name: str) -> datetime.tzinfo:
    """The time zone with an IANA name; UTC for a name that this machine does not know."""
    try:
        return zoneinfo.ZoneInfo(name or "UTC")
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return datetime.UTC


def local(at: Instant, zone: datetime.tzinfo) -> Instant:
    """The instant by the zone's clock; by UTC's at both ends of the calendar, where the zone has no day for it."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at


def clock(at: Instant) -> str:
    """ "4:05 pm" """
    return f"{at.hour % 12 or 12}:{at.minute:02} {'am' if at.hour < 12 else 'pm'}"


def day(at: Instant, now: Instant) -> str:
    """ "today", "yesterday", "tomorrow", "Fri 20 Nov", "3 March", "3 March 2024": as much as tells the day."""
    days = (at.date() - now.date()).days
    if -1 <= days <= 1:
        return ("yesterday", "today", "tomorrow")[days + 1]
    if abs(days) < 7:
        return f"{at:%a} {at.day} {at:%b}"
    return f"{at.day} {at:%B}" + ("" if at.year == now.year else f" {at.year}")


def moment(at: Instant, now: Instant) -> str:
    """A past or coming instant: "4:05 pm" today, "yesterday, 4:05 pm", "Fri 20 Nov, 4:05 pm", "3 March"."""
    days = abs((at.date() - now.date()).days)
    if days == 0:
        return clock(at)
    return day(at, now) if days >= 7 else f"{day(at, now)}, {clock(at)}"


def exact(at: Instant) -> str:
    """The whole instant with its zone."""
    return f"{at.day} {at:%B %Y}, {at:%H:%M:%S} {at.tzname()}"


def apart(seconds: float) -> str:
    """A length of time, rounded down to its largest unit: "20 seconds", "3 hours", "2 days"."""
    whole_seconds = int(abs(seconds))
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if whole_seconds >= size:
            return count(whole_seconds // size, name)
    return count(whole_seconds, "second")


def ago(at: Instant, now: Instant) -> str:
    """ "20 seconds ago", "in 3 hours", "just now" """
    seconds = (now - at).total_seconds()
    if 0 <= seconds < 5:
        return "just now"
    return f"{apart(seconds)} ago" if seconds > 0 else f"in {apart(seconds)}"


def count(number: int, singular: str, plural: str = "") -> str:
    """ "1 delivery", "2,300 deliveries" """
    if number == 1:
        return f"1 {singular}"
    regular = singular[:-1] + "ies" if singular.endswith("y") and singular[-2:-1] not in "aeiou" else singular + "s"
    return f"{number:,} {plural or regular}"


def amount(value: float) -> str:
    """A quantity as people write it: "1,234.5"."""
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class Wall:
    """The wall clock of one company, at the time of one context. Each method takes an instant or a proto's stamp and
    returns HTML; without one it returns an en dash."""

    def __init__(self, timezone: str, now: Instant, offset: datetime.timedelta = datetime.timedelta()) -> None:
        """now: by the real clock. offset: how far the company's is ahead of it."""
        self.zone = zone(timezone)
        self.now = (now + offset).astimezone(self.zone)
        self._offset = offset

    def moment(self, at: Instant | Timestamp | None) -> Markup:
        """As `moment`, in a `time` element."""
        return self._element(at, moment)

    def ago(self, at: Instant | Timestamp | None) -> Markup:
        """As `ago`, in a `time` element that the page's script keeps current."""
        return self._element(at, ago, live=True)

    def age(self, at: Instant | Timestamp | None) -> Markup:
        """How long ago it was, as `apart`, in a `time` element: "3 days"."""
        return self._element(at, lambda then, now: apart((now - then).total_seconds()))

    def day(self, at: Instant | Timestamp | None) -> Markup:
        """As `day`, in a `time` element."""
        return self._element(at, day)

    def date(self, on: datetime.date | str | None) -> Markup:
        """A day that has no instant, such as a warranty's last one, in a `time` element. on:
        a text is YYYY-MM-DD."""
        if on is None:
            return Markup("&ndash;")
        on = datetime.date.fromisoformat(on) if isinstance(on, str) else on
        at = datetime.datetime(on.year, on.month, on.day, tzinfo=self.zone)
        return Markup('<time datetime="{}">{}</time>').format(on.isoformat(), day(at, self.now))

    def text(self, at: Instant | Timestamp | None) -> str:
        """As `moment`, without an element: for attributes and sentences in code."""
        local_time = self.local(at)
        return moment(local_time, self.now) if local_time else ""

    def local(self, at: Instant | Timestamp | None) -> Instant | None:
        """The instant by this clock."""
        if isinstance(at, Timestamp):
            at = instant(at)
        return local(at, self.zone) if at else None

    def _element(
        self, at: Instant | Timestamp | None, words: Callable[[Instant, Instant], str], *, live: bool = False
    ) -> Markup:
        local_time = self.local(at)
        if local_time is None:
            return Markup("&ndash;")
        utc = local_time.astimezone(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        kept_current = ""
        if live:
            kept_current = Markup(' class="ago"')
            if self._offset:
                kept_current += Markup(' data-ahead="{}"').format(int(self._offset.total_seconds()))
        element = Markup('<time datetime="{}" title="{}"{}>{}</time>')
        return element.format(utc, exact(local_time), kept_current, words(local_time, self.now))
