"""Announcements: one event for each overdue row, in the transaction that marks it."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import sqlalchemy as sa
from asyncpg import Record

from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany
from chassis.db.statements import TIME, Statement
from chassis.messaging.outbox import Outbox, outbox_table
from chassis.replicas.tables import company_replica
from chassis.schedule.announcing import Announcement, Announcer
from chassis.schedule.clocks import Companies
from chassis.schedule.overdue import ROWS_AT_ONCE, FallsDue, Overdue
from makeready.events.v1.events_pb2 import Event
from testkit.plugin import PostgresServer

from ..databases import database_with

NOON = datetime.datetime(2026, 3, 8, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
A_SECOND_LATER = Companies(lambda: NOON + SECOND)

metadata = sa.MetaData()
company = company_replica(metadata)
outbox = outbox_table(metadata)
chore = sa.Table(
    "chore",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("due_at", TIME, nullable=False),
    sa.Column("announced_at", TIME),
)
sa.Index("chore_due", chore.c.company_id, chore.c.due_at, postgresql_where=sa.text("announced_at IS NULL"))
MARK = UpdateMany(chore, ("announced_at",))


def announce(row: Record, now: datetime.datetime, clock: datetime.datetime) -> Announcement:
    """Every third chore is marked without an event."""
    data = None if row["id"] % 3 == 0 else b'{"due": "%d"}' % int((now - row["due_at"]).total_seconds())
    mark = {"company_id": row["company_id"], "id": row["id"], "announced_at": clock}
    return Announcement(row["company_id"], row["id"], clock, data, mark)


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_announcing", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE company, chore, outbox")
        await connection.raw.execute("INSERT INTO company (id, version) VALUES (7, 1), (8, 1)")
    return opened


async def fill(database: Database, many: int) -> None:
    async with database.connection() as connection:
        insert = (
            "INSERT INTO chore SELECT 7 + n % 2, n, $1::timestamptz - interval '60 s' FROM generate_series(1, $2) n"
        )
        await connection.raw.execute(insert, NOON, many)


def announcer(database: Database, events: Outbox) -> Announcer:
    overdue = Overdue(
        database,
        company,
        chore,
        lambda _day, now: (chore.c.due_at <= now, chore.c.announced_at.is_(None)),
        chore.select(),
        FallsDue(chore.c.due_at),
    )
    return Announcer("ticket.stale", overdue, events, MARK, announce)


async def published(database: Database) -> list[Event]:
    rows = await database.rows(Statement(sa.select(outbox.c.message).order_by(outbox.c.event_id)))
    return [Event.FromString(row[0]) for row in rows]


async def test_each_overdue_row_is_announced_once_and_marked(database: Database) -> None:
    await fill(database, 7)
    events = Outbox("svc-chores", outbox)
    assert await announcer(database, events).sweep(NOON, A_SECOND_LATER) == {"ticket.stale": 5}
    assert events.woken.is_set()
    announced = await published(database)
    assert sorted((event.company_id, event.public.entity_id) for event in announced) == [
        (7, 2),
        (7, 4),
        (8, 1),
        (8, 5),
        (8, 7),
    ]
    assert {(event.public.event, event.public.data) for event in announced} == {("ticket.stale", b'{"due": "60"}')}
    assert {event.occurred_at.ToDatetime(datetime.UTC) for event in announced} == {NOON + SECOND}
    marked = await database.rows(Statement(sa.select(chore.c.announced_at).distinct()))
    assert [row[0] for row in marked] == [NOON + SECOND], "those without an event are marked, too"
    events.woken.clear()
    assert await announcer(database, events).sweep(NOON, A_SECOND_LATER) == {"ticket.stale": 0}
    assert len(await published(database)) == 5 and not events.woken.is_set()


async def test_what_is_not_due_yet_is_left(database: Database) -> None:
    await fill(database, 2)
    assert await announcer(database, Outbox("svc-chores", outbox)).sweep(NOON - 61 * SECOND) == {"ticket.stale": 0}


async def test_several_processes_at_once_announce_each_row_once(database: Database) -> None:
    await fill(database, 3 * ROWS_AT_ONCE)
    several = [announcer(database, Outbox("svc-chores", outbox)) for _ in range(3)]
    done = await asyncio.gather(*(announcing.sweep(NOON, A_SECOND_LATER) for announcing in several))
    ids = [counted.public.entity_id for counted in await published(database)]
    assert len(ids) == len(set(ids)) == 2 * ROWS_AT_ONCE == sum(counted["ticket.stale"] for counted in done)


async def test_a_mark_that_fails_takes_its_events_with_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(database, 2)

    async def fails(_connection: Connection, _rows: list[Mapping[str, Any]]) -> None:
        raise RuntimeError

    events = Outbox("svc-chores", outbox)
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(MARK, "run", fails)
        await announcer(database, events).sweep(NOON, A_SECOND_LATER)
    assert await published(database) == [] and not events.woken.is_set()
    assert await announcer(database, events).sweep(NOON, A_SECOND_LATER) == {"ticket.stale": 2}


def test_an_event_that_the_contract_does_not_name_is_refused_when_the_service_starts() -> None:
    nothing: Any = None
    with pytest.raises(ValueError, match="EventKey"):
        Announcer("ticket.reopened", nothing, nothing, nothing, nothing)
