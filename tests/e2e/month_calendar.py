"""The days of the month: about four or five weeks of spring in which two zones change their clocks, in opposite ways.

New York goes forward by an hour on a Sunday in March, Lord Howe Island back by half an hour three or four weeks later,
and Kathmandu, five hours and three quarters ahead of UTC, never changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

NEW_YORK, LORD_HOWE, KATHMANDU = (
    ZoneInfo(name) for name in ("America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
)
MORNING = time(6)
DAY = timedelta(days=1)
AHEAD = 14 * DAY
"""Distance of the month from today, so that nothing in it is due by the real clock."""


def morning_after(day: date, zone: ZoneInfo) -> datetime:
    """06:00 of the next day in the zone, as UTC."""
    return datetime.combine(day + DAY, MORNING, zone).astimezone(UTC)


def noon(day: date) -> datetime:
    """12:00 UTC: all three zones then have the same date, and 06:00 has passed in each."""
    return datetime.combine(day, time(12), UTC)


def last_full_hour(instant: datetime) -> datetime:
    """The time as of which a sweep checks vendors: the last full hour."""
    return instant.replace(minute=0, second=0, microsecond=0)


def change_after(day: date, zone: ZoneInfo) -> date:
    """The next day on which the zone's clocks change."""
    while offset(day, zone) == offset(day + DAY, zone):
        day += DAY
    return day


def offset(day: date, zone: ZoneInfo) -> timedelta | None:
    """The UTC offset at the start of the day."""
    return datetime.combine(day, time(0), zone).utcoffset()


@dataclass(frozen=True)
class Calendar:
    """first, last: the month's days. forward, back: the days on which New York and Lord Howe change their clocks."""

    first: date
    forward: date
    back: date
    last: date

    @classmethod
    def next(cls, today: date) -> Calendar:
        """The first such month that begins at least AHEAD after today."""
        year = today.year
        while True:
            forward = change_after(date(year, 3, 1), NEW_YORK)
            if forward - 4 * DAY >= today + AHEAD:
                back = change_after(forward, LORD_HOWE)
                return cls(forward - 4 * DAY, forward, back, back + 3 * DAY)
            year += 1

    def day(self, number: int) -> date:
        """The date of a day, counted from 0."""
        return self.first + number * DAY

    def __len__(self) -> int:
        return (self.last - self.first).days + 1

    def instants(self, number: int) -> Iterator[datetime]:
        """The sweeps of the day: at noon UTC; within a day of a zone's clock change also at 05:59 and 06:00 there. The
        same for Kathmandu on three days of the second week."""
        day = self.day(number)
        watched = [
            zone for zone, change in ((NEW_YORK, self.forward), (LORD_HOWE, self.back)) if abs(day - change) <= DAY
        ]
        if 7 <= number < 10:
            watched.append(KATHMANDU)
        moments = {noon(day)}
        for zone in watched:
            six = datetime.combine(day, MORNING, zone).astimezone(UTC)
            moments |= {six - timedelta(minutes=1), six}
        yield from sorted(moments)
