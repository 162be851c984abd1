"""Daily partitions of event, delivery and attempt, by the time in the event's id (UUIDv7).

They are made ahead of time, and on demand before an event is stored. The first ever spans the thirty days
before it too, so that whatever waited in an outbox when this service was installed finds its place.
"""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections.abc import Callable

import structlog
from sqlalchemy import BigInteger, bindparam, func, select

from chassis.database import Connection, Database
from chassis.statements import Statement
from svc_webhooks import tables as t

AHEAD_DAYS = 3
KEPT_DAYS = 30
LOOK_SECONDS = 3600
# An id from further ahead is the work of a broken clock; its thousands of partitions would be too.
FUTURE_DAYS_MAX = 60
LOCK = 0x70617274  # one process at a time makes partitions

log = structlog.stdlib.get_logger(__name__)

_LOCK = Statement(select(func.pg_advisory_xact_lock(bindparam("lock", type_=BigInteger))))


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


class Partitions:
    """Knows which days can be stored, and makes the days that can't yet."""

    def __init__(self, database: Database, clock: Callable[[], datetime.datetime]) -> None:
        self._database = database
        self._clock = clock
        self._oldest: datetime.date | None = None
        self._newest: datetime.date | None = None

    async def run(self) -> None:
        """Keeps some days ahead of the clock, until cancelled."""
        while True:
            await self.ahead()
            await asyncio.sleep(LOOK_SECONDS)

    async def ahead(self) -> None:
        await self._make_until(self._clock().date() + datetime.timedelta(days=AHEAD_DAYS))

    async def hold(self, event_id: uuid.UUID) -> bool:
        """Makes sure of the partition of an event that is to be stored; False where it is too old for any."""
        day = day_of(event_id)
        if self._oldest is None or self._newest is None or day > self._newest:
            limit = self._clock().date() + datetime.timedelta(days=FUTURE_DAYS_MAX)
            if day > limit:
                raise ValueError(f"event {event_id} was made on {day}: a producer's clock is wrong")
            await self._make_until(max(day, self._clock().date()))
        assert self._oldest is not None
        return day >= self._oldest

    async def _make_until(self, last: datetime.date) -> None:
        """Makes the daily partitions up to `last` without a gap, in one transaction of its own."""
        async with self._database.transaction() as connection:
            await connection.execute(_LOCK, lock=LOCK)
            found = await _days(connection)
            if not found:
                today = min(last, self._clock().date())
                oldest = today - datetime.timedelta(days=KEPT_DAYS)
                await _make(connection, oldest, today)
                found = [oldest, today - datetime.timedelta(days=1)]
            newest = found[-1]
            while newest < last:
                newest += datetime.timedelta(days=1)
                await _make(connection, newest, newest + datetime.timedelta(days=1))
        self._oldest, self._newest = found[0], newest


async def _days(connection: Connection) -> list[datetime.date]:
    """The first day of each partition of `event`, ascending; all but the first ever span one day."""
    rows = await connection.raw.fetch(
        "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE n.nspname = $1 AND relkind = 'r' AND relname LIKE 'event\\_%' ORDER BY relname",
        t.PARTITIONS,
    )
    return [datetime.datetime.strptime(row["relname"], "event_%Y%m%d").date() for row in rows]


async def _make(connection: Connection, since: datetime.date, until: datetime.date) -> None:
    """One partition of each table. Made aside and attached: readers and writers of the table go on."""
    for table in t.PARTITIONED:
        partition = f"{t.PARTITIONS}.{table}_{since:%Y%m%d}"
        await connection.raw.execute(
            f"CREATE TABLE {partition} (LIKE {table} INCLUDING ALL);"
            f" ALTER TABLE {table} ATTACH PARTITION {partition}"
            f" FOR VALUES FROM ('{first_id(since)}') TO ('{first_id(until)}')"
        )
    log.info("partition_made", day=since.isoformat())
