"""Due rows: each is passed on once, also by concurrent sweeps, at a cost that grows with the number of due rows."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from asyncpg import Record

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from chassis.replicas.tables import company_replica
from chassis.schedule.clocks import Companies
from chassis.schedule.overdue import ROWS_AT_ONCE, FallsDue, Overdue
from testkit.patience import PATIENCE_SECONDS
from testkit.plans import statement_plan
from testkit.plugin import PostgresServer

from ..databases import database_with

metadata = sa.MetaData()
company = company_replica(metadata)
room = sa.Table("room", metadata, sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False))
chore = sa.Table(
    "chore",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("due_date", sa.Date, nullable=False),
    sa.Column("is_announced", sa.Boolean, nullable=False, server_default=sa.text("false")),
    sa.Column("room_id", sa.BigInteger, sa.ForeignKey("room.id")),
)
sa.Index("chore_due", chore.c.company_id, chore.c.due_date, postgresql_where=sa.text("NOT is_announced"))
TELL = Statement(
    sa.update(chore)
    .where(chore.c.id == sa.func.any(param("ids", sa.ARRAY(sa.BigInteger))))
    .values(is_announced=sa.true())
)
NOW = datetime.datetime(2026, 3, 8, 12, 30, tzinfo=datetime.UTC)


BY_DATE = FallsDue(chore.c.due_date)


def overdue(database: Database, falls_due: FallsDue = BY_DATE, **options: Any) -> Overdue:
    return Overdue(
        database,
        company,
        chore,
        lambda day, _now: (chore.c.due_date < day, sa.not_(chore.c.is_announced)),
        sa.select(chore.c.company_id, chore.c.id, chore.c.due_date),
        falls_due,
        **options,
    )


class Announced:
    """Work that marks rows as announced, and records them."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.batches: list[int] = []

    async def __call__(self, connection: Connection, rows: Sequence[Record]) -> None:
        ids = [row["id"] for row in rows]
        assert ids == sorted(ids)
        await connection.execute(TELL, ids=ids)
        self.ids += ids
        self.batches.append(len(ids))


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "overdue_test", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE company, chore, room")
        await connection.raw.execute(
            "INSERT INTO company (id, version, active, timezone) VALUES (1, 1, true, 'UTC'),"
            " (2, 1, true, 'America/Los_Angeles'), (3, 1, false, 'UTC'), (4, 0, true, 'UTC'), (5, 1, true, 'nowhere')"
        )
    return opened


async def _fill(database: Database, company_id: int, first_id: int, many: int, due: str = "2026-03-07") -> range:
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO chore (company_id, id, due_date) SELECT $1, n, $4 FROM generate_series($2::int, $3::int) n",
            company_id,
            first_id,
            first_id + many - 1,
            datetime.date.fromisoformat(due),
        )
    return range(first_id, first_id + many)


async def _waits(database: Database) -> None:
    """Waits until a transaction waits for a lock."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await database.value(Statement(sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted"))):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_the_company_and_its_morning_decide(database: Database) -> None:
    """At 12:30 in UTC it is 05:30 in Los Angeles."""
    for company_id in range(1, 7):
        await _fill(database, company_id, 10 * company_id, 1)
    await _fill(database, 1, 19, 1, due="2026-03-08")
    announced = Announced()
    assert await overdue(database).each(NOW, announced) == 2
    assert announced.ids == [10, 50]
    assert await overdue(database).each(NOW + datetime.timedelta(minutes=30), announced) == 1
    assert announced.ids == [10, 50, 20]
    assert await overdue(database).each(NOW, announced) == 0


async def _make_sandboxes(database: Database, *company_ids: int) -> None:
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE company SET is_sandbox = true WHERE id = any($1)", company_ids)


async def test_a_sandbox_is_searched_alone_and_live_companies_without_it(database: Database) -> None:
    for company_id in (1, 2, 5):
        await _fill(database, company_id, 10 * company_id, 1)
    await _make_sandboxes(database, 2, 3)
    live, sandbox, later = Announced(), Announced(), NOW + datetime.timedelta(hours=1)
    assert await overdue(database).each(later, live) == 2 and live.ids == [10, 50]
    for company_id, many in ((1, 0), (3, 0), (99, 0), (2, 1)):
        companies = Companies(lambda: later, company_id)
        assert await overdue(database).each(later, sandbox, companies) == many
    assert sandbox.ids == [20]


async def test_the_next_instant_is_the_first_at_which_a_row_is_due(database: Database) -> None:
    for company_id in (1, 2, 3, 4, 5):
        await _fill(database, company_id, 10 * company_id, 1, due="2026-03-10")
        await _fill(database, company_id, 10 * company_id + 1, 1, due="2026-03-09")
    tick, search = datetime.timedelta(microseconds=1), overdue(database)
    await _make_sandboxes(database, 2)
    for company_id, at in ((1, "2026-03-10T06:00Z"), (2, "2026-03-10T13:00Z"), (5, "2026-03-10T06:00Z")):
        due_at = await search.next_due(company_id)
        assert due_at == datetime.datetime.fromisoformat(at)
    assert {company_id: await search.next_due(company_id) for company_id in (3, 4, 99)} == {3: None, 4: None, 99: None}
    announced, due_at = Announced(), datetime.datetime(2026, 3, 10, 13, tzinfo=datetime.UTC)
    sandbox = Companies(lambda: due_at, 2)
    assert await search.each(due_at - tick, announced, sandbox) == 0
    assert await search.each(due_at, announced, sandbox) == 1 and announced.ids == [21]
    assert await search.next_due(2) == due_at + datetime.timedelta(days=1)
    await search.each(due_at + datetime.timedelta(days=1), announced, sandbox)
    assert await search.next_due(2) is None


async def test_many_go_a_few_at_a_time(database: Database) -> None:
    ids = [*await _fill(database, 1, 1, 3 * ROWS_AT_ONCE + 7), *await _fill(database, 5, 5000, 2 * ROWS_AT_ONCE)]
    announced = Announced()
    assert await overdue(database).each(NOW, announced) == len(ids)
    assert sorted(announced.ids) == ids
    assert max(announced.batches) <= ROWS_AT_ONCE


async def test_several_at_once_hand_each_row_on_once(database: Database) -> None:
    ids = [*await _fill(database, 1, 1, 450), *await _fill(database, 5, 5000, 150)]
    tellers = [Announced() for _ in range(4)]
    done = await asyncio.gather(*(overdue(database).each(NOW, teller) for teller in tellers))
    assert sorted(row_id for teller in tellers for row_id in teller.ids) == ids
    assert sum(done) == len(ids)


async def test_what_fails_is_due_again(database: Database) -> None:
    ids = await _fill(database, 1, 1, 3)

    async def fails(connection: Connection, rows: Sequence[Record]) -> None:
        await Announced()(connection, rows)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await overdue(database).each(NOW, fails)
    announced = Announced()
    assert await overdue(database).each(NOW, announced) == 3
    assert announced.ids == [*ids]


async def test_what_changed_before_the_lock_is_left(database: Database) -> None:
    await _fill(database, 1, 1, 3)
    announced = Announced()
    async with database.transaction() as connection:
        await connection.raw.execute("UPDATE chore SET due_date = '2026-03-20' WHERE id = 2")
        sweep = asyncio.create_task(overdue(database).each(NOW, announced))
        await _waits(database)
    assert await sweep == 2
    assert announced.ids == [1, 3]


async def test_rows_that_are_held_for_longer_than_a_lock_is_waited_for_are_done_later(database: Database) -> None:
    ids = [*await _fill(database, 1, 1, 3)]
    announced = Announced()
    waited: set[datetime.datetime] = set()
    async with database.transaction() as connection:
        await connection.raw.execute("SELECT 1 FROM chore WHERE id = 2 FOR UPDATE")
        sweeping = asyncio.create_task(overdue(database).each(NOW, announced))
        async with asyncio.timeout(60):
            while len(waited) < 2:  # the second transaction that waits is there because the first gave up
                query = "SELECT xact_start FROM pg_stat_activity WHERE datname = current_database()"
                waiting = await connection.raw.fetch(f"{query} AND wait_event_type = 'Lock'")
                waited |= {row["xact_start"] for row in waiting}
                await connection.raw.execute("SELECT pg_stat_clear_snapshot()")
                await asyncio.sleep(0.1)
    assert await sweeping == 3
    assert announced.ids == ids


async def test_what_everybody_locks_first_is_locked_first_and_in_the_order_of_its_ids(database: Database) -> None:
    """Chores 1, 2, 3 are in rooms 3, 2, 1. While room 2 is held, chore 3 can change: the sweep locks rooms first."""
    await _fill(database, 1, 1, 3)
    async with database.connection() as connection:
        await connection.raw.execute("INSERT INTO room SELECT generate_series(1, 3); UPDATE chore SET room_id = 4 - id")
    announced = Announced()
    async with database.transaction() as connection:
        await connection.raw.execute("SELECT id FROM room WHERE id = 2 FOR NO KEY UPDATE")
        sweep = asyncio.create_task(overdue(database, first=chore.c.room_id).each(NOW, announced))
        await _waits(database)
        async with database.transaction() as other:
            free = await other.raw.fetch("SELECT id FROM room FOR NO KEY UPDATE SKIP LOCKED")
        assert [row["id"] for row in free] == [3]
        await connection.raw.execute("UPDATE chore SET due_date = '2026-03-20' WHERE id = 3")
    assert await sweep == 2
    assert announced.ids == [1, 2]


async def test_locking_first_what_rows_refer_to_meets_these_alone(database: Database) -> None:
    due = await _fill(database, 1, 1, 20)
    await _fill(database, 3, 30_001, 20_000)
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO room SELECT generate_series(1, 20000); UPDATE chore SET room_id = id % 20000 + 1"
        )
    hold: Any = overdue(database, first=chore.c.room_id)._hold_first
    plan = await statement_plan(database, hold, company_id=[1] * len(due), id=[*due])
    assert plan.returned == len(due) and not plan.whole_tables
    # The array, the chores, and the rooms.
    assert plan.rows_met <= 3 * len(due)


async def test_what_the_index_has_first_comes_first(database: Database) -> None:
    ids = await _fill(database, 1, 1, ROWS_AT_ONCE + 50)
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE chore SET due_date = due_date - id::int")
    announced = Announced()
    assert await overdue(database, falls_due=FallsDue(chore.c.due_date, order=[chore.c.due_date])).each(
        NOW, announced
    ) == len(ids)
    assert announced.ids[:ROWS_AT_ONCE] == [*ids][50:]


async def test_cost_grows_with_what_is_due_and_not_with_the_table(database: Database) -> None:
    await _fill(database, 1, 1, 20_000, due="2030-01-01")
    await _fill(database, 3, 30_001, 20_000)
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE chore SET is_announced = true WHERE company_id = 3 AND id % 2 = 0")
        await connection.raw.execute("INSERT INTO company (id, version) SELECT n, 1 FROM generate_series(1000, 1199) n")
    due = await _fill(database, 5, 90_001, 12)
    find: Any = overdue(database)._find
    day = datetime.date(2026, 3, 8)
    values = {"zones": ["UTC", "nowhere"], "days": [day, day], "first_company_id": 0, "rows": ROWS_AT_ONCE}
    plan = await statement_plan(database, find, **values)
    assert plan.returned == len(due)
    assert "chore_due" in plan.indexes and "chore" not in plan.whole_tables
    # Each due row, and each company once.
    assert plan.rows_met <= len(due) + 205
    following: Any = overdue(database)._next._find
    for company_id, rows in ((1, 1), (5, 1), (1000, 0)):
        plan = await statement_plan(database, following, company_id=company_id)
        assert plan.returned == rows and plan.rows_met <= 1 + rows and "chore_due" in plan.indexes
