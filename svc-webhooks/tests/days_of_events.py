"""Days of events in a database of their own, and processes that are killed while they drop days."""

import asyncio
import datetime
import os
import signal
import subprocess
import sys
import uuid

from chassis.db.database import Database
from chassis.db.partitions import SCHEMA
from chassis.runtime import failpoints, logs
from svc_webhooks import tables as t
from svc_webhooks.days import first_id
from svc_webhooks.events.partitions import Partitions

DAY = datetime.timedelta(days=1)
NOON = datetime.datetime(2026, 6, 15, 12, tzinfo=datetime.UTC)
TODAY = NOON.date()
SUB = 1


def partitions_of(database: Database, now: datetime.datetime = NOON) -> Partitions:
    return Partitions(database, lambda: now)


def event_id(day: datetime.date, number: int = 0) -> uuid.UUID:
    return uuid.UUID(int=first_id(day).int + (7 << 76) + (2 << 62) + number)


async def put(database: Database, day: datetime.date, *, deliveries: int = 1, state: str = "waiting") -> None:
    """Stores events of a day, each with a due delivery and one attempt."""
    ids = [event_id(day, number) for number in range(deliveries)]
    due, settled = ("now()", "NULL") if state == "waiting" else ("NULL", "now()")
    async with database.transaction() as connection:
        for statement in (
            "INSERT INTO event (event_id, company_id, event, entity_id, occurred_at, request_id, body)"
            " SELECT id, 1, 'ticket.created', 1, now(), '', '' FROM unnest($1::uuid[]) id",
            "INSERT INTO delivery (event_id, subscription_id, state, due_at, settled_at, attempts)"
            f" SELECT id, {SUB}, '{state}', {due}, {settled}, 1 FROM unnest($1::uuid[]) id",
            "INSERT INTO attempt (event_id, subscription_id, number, started_at, duration_milliseconds, error,"
            " response_excerpt, state, due_at)"
            f" SELECT id, {SUB}, 1, now(), 1, 'connect', '', '{state}', {due} FROM unnest($1::uuid[]) id",
        ):
            await connection.raw.execute(statement, ids)


async def left(database: Database) -> dict[str, set[str]]:
    """The days of all partitions, attached or not, by table."""
    async with database.connection() as connection:
        rows = await connection.raw.fetch(
            "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
            " WHERE nspname = $1 AND relkind = 'r'",
            SCHEMA,
        )
    days: dict[str, set[str]] = {table: set() for table in t.PARTITIONED}
    for row in rows:
        table, _, day = row["relname"].partition("_")
        days[table].add(day)
    return days


async def rows(database: Database) -> dict[str, int]:
    """The number of rows of each table."""
    async with database.connection() as connection:
        return {table: await connection.raw.fetchval(f"SELECT count(*) FROM {table}") for table in t.PARTITIONED}


class Doomed:
    """Processes that drop days and die at a failpoint. They are forked, because a start would take a second each."""

    def __init__(self) -> None:
        self._nursery = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, url: str, point: str, now: datetime.datetime) -> None:
        assert self._nursery.stdin and self._nursery.stdout
        self._nursery.stdin.write(f"{url} {point} {now.isoformat()}\n".encode())
        self._nursery.stdin.flush()
        assert int(self._nursery.stdout.readline()) == -signal.SIGKILL

    def close(self) -> None:
        self._nursery.communicate()


async def _drop(url: str, now: datetime.datetime) -> None:
    database = Database(url, application="tests")
    await database.open()
    await partitions_of(database, now).drop(now)


def _nursery() -> None:
    for line in sys.stdin:
        url, point, now = line.split()
        child = os.fork()
        if not child:
            failpoints.arm(point, "")
            asyncio.run(_drop(url, datetime.datetime.fromisoformat(now)))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    logs.configure("doomed", "error")
    _nursery()
