"""Partitions by day: makes those of the days ahead, and drops those of days that are over.

Tables of one database whose rows go by day are partitioned by a column whose order is that of time. A day has one
partition of each table, in the schema `partitions`. One transaction makes them; several steps drop them, in the order
of `DayTables.names`. A day without an attached partition of the first table is one that is being dropped. A drop costs
the same however many rows the day has.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncpg
import structlog

from chassis.db.database import LOST, Connection, Database, DatabaseUnavailable, unavailable
from chassis.runtime.failpoints import failpoint

SCHEMA = "partitions"
DAY = datetime.timedelta(days=1)
# Shorter than the lock timeouts of other statements; longer than a second, after which PostgreSQL cancels a vacuum that
# is in the way.
LOCK_SECONDS = 2
# The wait for other processes' changes. A process that stores a row has a transaction open, which may rest for 5 s.
HURRIED_SECONDS, PATIENT_SECONDS = 3.0, 30.0
POLL_SECONDS = 0.05
LOCK = 0x70617274  # held while a process makes, detaches or drops partitions

BOUNDS = "bounds"
ATTACHED, DETACHING, DETACHED = "attached", "detaching", "detached"

log = structlog.stdlib.get_logger(__name__)


class ChangeBlocked(DatabaseUnavailable):
    """Another process's statement takes longer than changes of partitions wait for."""


@dataclass(slots=True)
class DaySet:
    """The partitions of one day; the first one of an older installation spans thirty days."""

    since: datetime.date
    until: datetime.date  # the first day after it
    first_table: str
    states: dict[str, str] = field(default_factory=dict)  # by table

    @property
    def is_half_dropped(self) -> bool:
        """Whether a drop has begun and must be finished."""
        return self.states.get(self.first_table) != ATTACHED

    @property
    def days(self) -> list[datetime.date]:
        return [self.since + number * DAY for number in range((self.until - self.since).days)]

    def holds(self, day: datetime.date) -> bool:
        return self.since <= day < self.until


@dataclass(frozen=True, slots=True)
class DayTables:
    """The partitioned tables of a database.

    names: in the order in which a day's partitions are dropped. column: the partition key. first_value: the least value
    of a day, as the text of a literal; day_of: the day of such a text.
    """

    names: tuple[str, ...]
    column: str
    first_value: Callable[[datetime.date], str]
    day_of: Callable[[str], datetime.date]

    async def make_days(
        self, database: Database, days: Iterable[datetime.date], turn_seconds: float
    ) -> set[datetime.date]:
        """Makes the days that are missing; returns all days that exist. Raises ChangeBlocked, DatabaseUnavailable."""
        async with self.changing(database, turn_seconds) as connection:
            day_sets = await self.day_sets(connection)
            for day in days:
                if any(day_set.holds(day) and not day_set.is_half_dropped for day_set in day_sets):
                    continue
                for day_set in day_sets:
                    # It is in the place of the new partitions, or under their names.
                    if day_set.is_half_dropped and day_set.holds(day):
                        await self.drop_day(connection, day_set)
                await self.make(connection, day)
                log.info("partition_made", day=day.isoformat())
            day_sets = await self.day_sets(connection)
        return {day for day_set in day_sets if not day_set.is_half_dropped for day in day_set.days}

    async def drop_next(self, database: Database, first_day: datetime.date) -> DaySet | None:
        """Drops one day before `first_day`, or finishes an earlier drop; None if there is none.

        Several processes may call it at once. Raises ChangeBlocked if a long statement is in the way; the next call
        finishes a drop that was begun.
        """
        async with self.changing(database, PATIENT_SECONDS) as connection:
            for day_set in await self.day_sets(connection):
                if day_set.is_half_dropped or day_set.until <= first_day:
                    await self.drop_day(connection, day_set)
                    return day_set
        return None

    @asynccontextmanager
    async def changing(self, database: Database, turn_seconds: float) -> AsyncIterator[Connection]:
        """A connection that may change partitions; one at a time over all processes.

        Raises ChangeBlocked, DatabaseUnavailable.

        The connection is not the pool's: DETACH CONCURRENTLY runs outside a transaction, so the session holds the lock.
        The lock is polled, never waited for: finishing a detachment waits for the statements of other sessions to end.
        """
        give_up = asyncio.get_running_loop().time() + turn_seconds
        try:
            async with database.session("partitions", lock_timeout=f"{LOCK_SECONDS}s") as raw:
                while not await raw.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
                    if asyncio.get_running_loop().time() > give_up:
                        raise DatabaseUnavailable("another process is changing partitions")
                    await asyncio.sleep(POLL_SECONDS)
                # Partitioned tables belong to a role of their own, of which the service's is a member that does not
                # inherit: all its other connections can change no table.
                await raw.execute(f"SET ROLE {await raw.fetchval(_OWNER, self.names[0])}")
                yield Connection(raw)
        except asyncpg.LockNotAvailableError as error:
            raise ChangeBlocked(str(error)) from error
        except LOST as error:
            raise unavailable(error) from error

    async def day_sets(self, connection: Connection) -> list[DaySet]:
        """Days whose drop has begun, then the others; each ascending by first day."""
        rows = await connection.raw.fetch(
            "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound, i.inhdetachpending FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_inherits i ON i.inhrelid = c.oid"
            " WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname ~ $2",
            SCHEMA,
            f"^({'|'.join(self.names)})_[0-9]{{8}}$",
        )
        by_first_day: dict[datetime.date, DaySet] = {}
        for row in rows:
            table, _, name = row["relname"].rpartition("_")
            since = datetime.datetime.strptime(name, "%Y%m%d").date()
            day_set = by_first_day.setdefault(since, DaySet(since, since + DAY, self.names[0]))
            if row["bound"] is not None:  # FOR VALUES FROM ('…') TO ('…')
                day_set.until = self.day_of(row["bound"].split("'")[3])
            pending = row["inhdetachpending"]
            day_set.states[table] = DETACHED if pending is None else DETACHING if pending else ATTACHED
        return sorted(by_first_day.values(), key=lambda day_set: (not day_set.is_half_dropped, day_set.since))

    async def make(self, connection: Connection, day: datetime.date) -> None:
        """Makes one partition of each table. It is created aside and then attached, so readers and writers of the table
        proceed."""
        first, until = self.first_value(day), self.first_value(day + DAY)
        async with connection.raw.transaction():
            for table in reversed(self.names):
                partition = _name(table, day)
                await connection.raw.execute(
                    f"CREATE TABLE {partition} (LIKE {table} INCLUDING ALL, {self._bounds(day, day + DAY)});"
                    f" ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES FROM ('{first}') TO ('{until}')"
                )

    async def drop_day(self, connection: Connection, day_set: DaySet) -> None:
        """Drops in steps, without a transaction around them; a repeated call continues where the last one stopped."""
        for table in self.names:
            state = day_set.states.get(table)
            if state is None:
                continue
            if state != DETACHED:
                await self._detach(connection, table, day_set)
                failpoint("day-detached")
            # No statement uses a detached partition any more.
            await connection.raw.execute(f"DROP TABLE {_name(table, day_set.since)}")
            failpoint("day-dropped")

    async def _detach(self, connection: Connection, table: str, day_set: DaySet) -> None:
        """Detaches a partition. No statement waits for it; it waits for statements that use the table at this moment.

        If it is cut off while it waits, the partition stays `detaching`: later statements do not see it, and the next
        call finishes the detachment.
        """
        partition = _name(table, day_set.since)
        if day_set.states[table] == DETACHING:
            await connection.raw.execute(f"ALTER TABLE {table} DETACH PARTITION {partition} FINALIZE")
            return
        valid = await connection.raw.fetchval(
            "SELECT convalidated FROM pg_constraint WHERE conrelid = $1::text::regclass AND conname = $2",
            partition,
            BOUNDS,
        )
        if valid is None:  # made by an earlier release
            bounds = self._bounds(day_set.since, day_set.until)
            await connection.raw.execute(f"ALTER TABLE {partition} ADD {bounds} NOT VALID")
        if not valid:
            await connection.raw.execute(f"ALTER TABLE {partition} VALIDATE CONSTRAINT {BOUNDS}")
        await connection.raw.execute(f"ALTER TABLE {table} DETACH PARTITION {partition} CONCURRENTLY")

    def _bounds(self, since: datetime.date, until: datetime.date) -> str:
        """A partition's bounds as a separate constraint. Without it, DETACH CONCURRENTLY adds one while statements
        write to the partition, and a statement that began with one constraint less crashes the server."""
        first, end = self.first_value(since), self.first_value(until)
        return f"CONSTRAINT {BOUNDS} CHECK ({self.column} >= '{first}' AND {self.column} < '{end}')"


_OWNER = "SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class WHERE oid = $1::text::regclass"


def _name(table: str, since: datetime.date) -> str:
    return f"{SCHEMA}.{table}_{since:%Y%m%d}"
