"""The SQL of partitions: lists, makes, detaches and drops the partitions of a day.

A day has one partition of each table. One transaction makes them; several steps drop them, `delivery` first. A day
without an attached partition of `delivery` is one that is being dropped.
"""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncpg
from sqlalchemy import func, select, text

from chassis.db.database import LOST, Connection, Database, DatabaseUnavailable, unavailable
from chassis.db.statements import Statement, param
from svc_webhooks.days import DAY, day_of, first_id
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.schema import PARTITIONED, PARTITIONS, Uuid
from svc_webhooks.tables.deliveries import delivery

# Shorter than the lock timeouts of other statements; longer than a second, after which PostgreSQL cancels a vacuum that
# is in the way.
LOCK_SECONDS = 2
# The wait for other processes' changes. A process that stores an event has a transaction open, which may rest for 5 s.
HURRIED_SECONDS, PATIENT_SECONDS = 3.0, 30.0
POLL_SECONDS = 0.05
LOCK = 0x70617274  # held while a process makes, detaches or drops partitions
DROPPED = ("delivery", "attempt", "event")  # in this order, so that a claim never reads a delivery without its event

BOUNDS = "bounds"
ATTACHED, DETACHING, DETACHED = "attached", "detaching", "detached"


@dataclass(slots=True)
class DaySet:
    """The partitions of one day; the first one of an older installation spans thirty days."""

    since: datetime.date
    until: datetime.date  # the first day after it
    states: dict[str, str] = field(default_factory=dict)  # by table

    @property
    def is_half_dropped(self) -> bool:
        """Whether a drop has begun and must be finished."""
        return self.states.get(DROPPED[0]) != ATTACHED

    @property
    def days(self) -> list[datetime.date]:
        return [self.since + number * DAY for number in range((self.until - self.since).days)]

    def holds(self, day: datetime.date) -> bool:
        return self.since <= day < self.until


class ChangeBlocked(DatabaseUnavailable):
    """Another process's statement takes longer than changes of partitions wait for."""


@asynccontextmanager
async def changing(database: Database, turn_seconds: float) -> AsyncIterator[Connection]:
    """A connection that may change partitions; one at a time over all processes.

    Raises ChangeBlocked, DatabaseUnavailable.

    The connection is not the pool's: DETACH CONCURRENTLY runs outside a transaction, so the session holds the lock. The
    lock is polled, never waited for: finishing a detachment waits for the statements of other sessions to end.
    """
    give_up = asyncio.get_running_loop().time() + turn_seconds
    try:
        async with database.session("svc-webhooks partitions", lock_timeout=f"{LOCK_SECONDS}s") as raw:
            while not await raw.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
                if asyncio.get_running_loop().time() > give_up:
                    raise DatabaseUnavailable("another process is changing partitions")
                await asyncio.sleep(POLL_SECONDS)
            # Partitioned tables belong to a role of their own, of which the service's is a member that does not
            # inherit: all its other connections can change no table.
            owner = await raw.fetchval(_OWNER)
            await raw.execute(f"SET ROLE {owner}")
            yield Connection(raw)
    except asyncpg.LockNotAvailableError as error:
        raise ChangeBlocked(str(error)) from error
    except LOST as error:
        raise unavailable(error) from error


_OWNER = "SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class WHERE oid = 'delivery'::regclass"
_CLOCK = Statement(select(func.now()))
_soon = delivery.c.event_id < param("before", Uuid)
# The states are literals, so that the partial indexes serve.
_UNDELIVERED = Statement(
    select(
        *(
            select(func.count())
            .select_from(delivery)
            .where(_soon, text(f"delivery.state = '{state}'"))
            .scalar_subquery()
            .label(state)
            for state in (rules.WAITING, rules.PARKED)
        )
    )
)


async def clock(database: Database) -> datetime.datetime:
    now: datetime.datetime = await database.value(_CLOCK)
    return now


async def undelivered_before(database: Database, before: uuid.UUID) -> dict[str, int]:
    """The number of waiting and parked deliveries of events before `before`, by state."""
    row = await database.row(_UNDELIVERED, before=before)
    return dict(row or {})


async def day_sets(connection: Connection) -> list[DaySet]:
    """Days whose drop has begun, then the others; each ascending by first day."""
    rows = await connection.raw.fetch(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound, i.inhdetachpending"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_inherits i ON i.inhrelid = c.oid"
        " WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname ~ '^(event|delivery|attempt)_[0-9]{8}$'",
        PARTITIONS,
    )
    by_first_day: dict[datetime.date, DaySet] = {}
    for row in rows:
        table, _, name = row["relname"].partition("_")
        since = datetime.datetime.strptime(name, "%Y%m%d").date()
        day_set = by_first_day.setdefault(since, DaySet(since, since + DAY))
        if row["bound"] is not None:  # FOR VALUES FROM ('…') TO ('…')
            day_set.until = day_of(uuid.UUID(row["bound"].split("'")[3]))
        pending = row["inhdetachpending"]
        day_set.states[table] = DETACHED if pending is None else DETACHING if pending else ATTACHED
    return sorted(by_first_day.values(), key=lambda day_set: (not day_set.is_half_dropped, day_set.since))


async def make(connection: Connection, day: datetime.date) -> None:
    """Makes one partition of each table. It is created aside and then attached, so readers and writers of the table
    proceed."""
    async with connection.raw.transaction():
        for table in PARTITIONED:
            partition = _name(table, day)
            await connection.raw.execute(
                f"CREATE TABLE {partition} (LIKE {table} INCLUDING ALL, {_bounds(day, day + DAY)});"
                f" ALTER TABLE {table} ATTACH PARTITION {partition}"
                f" FOR VALUES FROM ('{first_id(day)}') TO ('{first_id(day + DAY)}')"
            )


def _bounds(since: datetime.date, until: datetime.date) -> str:
    """A partition's bounds as a separate constraint. Without it, DETACH CONCURRENTLY adds one while statements write
    to the partition, and a statement that began with one constraint less crashes the server."""
    return f"CONSTRAINT {BOUNDS} CHECK (event_id >= '{first_id(since)}' AND event_id < '{first_id(until)}')"


async def detach(connection: Connection, table: str, day_set: DaySet) -> None:
    """Detaches a partition. No statement waits for it; it waits for statements that use the table at this moment.

    If it is cut off while it waits, the partition stays `detaching`: later statements do not see it, and the next call
    finishes the detachment.
    """
    partition = _name(table, day_set.since)
    if day_set.states[table] == DETACHING:
        await connection.raw.execute(f"ALTER TABLE {table} DETACH PARTITION {partition} FINALIZE")
        return
    valid = await connection.raw.fetchval(
        "SELECT convalidated FROM pg_constraint WHERE conrelid = $1::text::regclass AND conname = $2", partition, BOUNDS
    )
    if valid is None:  # made by an earlier release
        await connection.raw.execute(f"ALTER TABLE {partition} ADD {_bounds(day_set.since, day_set.until)} NOT VALID")
    if not valid:
        await connection.raw.execute(f"ALTER TABLE {partition} VALIDATE CONSTRAINT {BOUNDS}")
    await connection.raw.execute(f"ALTER TABLE {table} DETACH PARTITION {partition} CONCURRENTLY")


async def drop(connection: Connection, table: str, since: datetime.date) -> None:
    """Drops a detached partition, which no statement uses any more."""
    await connection.raw.execute(f"DROP TABLE {_name(table, since)}")


def _name(table: str, since: datetime.date) -> str:
    return f"{PARTITIONS}.{table}_{since:%Y%m%d}"
