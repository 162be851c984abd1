"""The UTC day in an event's id (UUIDv7): by days events are stored, kept and dropped."""

import datetime
import uuid

DAY = datetime.timedelta(days=1)
KEPT_DAYS = 30
# Before all ids and after all of them.
OLDEST, NEWEST = uuid.UUID(int=0), uuid.UUID(int=(1 << 128) - 1)
# Before it, nothing is over: a date that can't be counted back from is none of ours.
_FIRST = datetime.date(1970, 3, 1)


def made_at(event_id: uuid.UUID) -> datetime.datetime:
    """When the id was made."""
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(milliseconds=event_id.int >> 80)


def day_of(event_id: uuid.UUID) -> datetime.date:
    """The UTC day in which the id was made."""
    return made_at(event_id).date()


def first_id(day: datetime.date) -> uuid.UUID:
    """The lower bound of all ids made on `day` or later."""
    midnight = datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)
    return uuid.UUID(int=int(midnight.timestamp()) * 1000 << 80)


def first_day_kept(now: datetime.datetime) -> datetime.date:
    """Events of the days before are over: 30 days have passed since the end of their day."""
    return max(now.date(), _FIRST) - KEPT_DAYS * DAY


def expires_at(event_id: uuid.UUID) -> datetime.datetime:
    """When the event goes with all that hangs on it: its day goes whole, after 30 full days."""
    day = day_of(event_id)
    return datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC) + (KEPT_DAYS + 1) * DAY
