"""The UTC day in an event's id (UUIDv7). Events are stored, retained and dropped by day."""

import datetime
import uuid

DAY = datetime.timedelta(days=1)
KEPT_DAYS = 30
# Lower than all ids, and higher than all ids.
OLDEST, NEWEST = uuid.UUID(int=0), uuid.UUID(int=(1 << 128) - 1)
# An earlier `now` counts as this day: no id lies before 1970, so counting 30 days back must not either.
_FIRST = datetime.date(1970, 3, 1)


def made_at(event_id: uuid.UUID) -> datetime.datetime:
    """The instant at which the id was made."""
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(milliseconds=event_id.int >> 80)


def day_of(event_id: uuid.UUID) -> datetime.date:
    """The UTC day on which the id was made."""
    return made_at(event_id).date()


def first_id(day: datetime.date) -> uuid.UUID:
    """The lower bound of all ids made on `day` or later."""
    return uuid.UUID(int=int(begins(day).timestamp()) * 1000 << 80)


def first_id_at(instant: datetime.datetime) -> uuid.UUID:
    """The lower bound of all ids made at `instant` or later."""
    milliseconds = (instant - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)
    return uuid.UUID(int=min(max(milliseconds, 0), (1 << 48) - 1) << 80)


def first_day_kept(now: datetime.datetime) -> datetime.date:
    """The first day whose events are retained: 30 days have passed since the end of every earlier day."""
    return max(now.date(), _FIRST) - KEPT_DAYS * DAY


def begins(day: datetime.date) -> datetime.datetime:
    """The UTC day's first instant."""
    return datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)


def expires_at(event_id: uuid.UUID, stored_at: datetime.datetime | None = None) -> datetime.datetime:
    """When the event goes together with its deliveries and attempts: whole days go, after 30 full days. `stored_at` is
    that of a sandbox's event, which goes by the sandbox's clock."""
    day = day_of(event_id) if stored_at is None else stored_at.date()
    return begins(day) + (KEPT_DAYS + 1) * DAY
