"""Through PgBouncer the promises of a connection hold: its timeouts, plans and locks; and no statement is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa

from chassis.db import database as module
from chassis.db import poolers
from chassis.db.database import NEW_PLANS, SERVER_SETTINGS, Database, DatabaseUnavailable
from chassis.db.statements import Statement, param
from chassis.runtime.settings import TRANSACTION, SettingsError
from testkit.databases import grant_to_service, service_url
from testkit.folders import server_folder
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer
from testkit.poolers import MODES, PgBouncer, pgbouncer, version

from ..databases import make_tables, reached

metadata = sa.MetaData()
crate = sa.Table("thing", metadata, sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("n", sa.BigInteger))
MINE = Statement(sa.select(sa.func.current_setting(param("name", sa.Text))))
ADD = Statement(sa.insert(crate).values(id=param("id", sa.BigInteger), n=param("n", sa.BigInteger)))


@pytest.fixture(scope="module", params=MODES)
def pooler(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    with server_folder() as folder, pgbouncer(folder, postgres_server.url, request.param) as running:
        yield running


@pytest.fixture(scope="module")
async def owner_url(postgres_server: PostgresServer) -> str:
    """The database's. It is made once: a pooler remembers the password of a role for a while."""
    url = postgres_server.create_database("chassis_poolers")
    database = Database(url, application="tests", connections=2)
    await database.open()
    await make_tables(database, metadata)
    await database.close()
    await grant_to_service(url)
    return url


@pytest.fixture
async def url(owner_url: str) -> str:
    """The service's own URL of the database; it is empty, and the role has no defaults."""
    service = await asyncpg.connect(service_url(owner_url))
    await service.execute("ALTER ROLE chassis_poolers IN DATABASE chassis_poolers RESET ALL; DELETE FROM thing")
    await service.close()
    return service_url(owner_url)


async def opened(url: str, pooler: PgBouncer | None, connections: int = 3, **more: Any) -> Database:
    database = Database(**reached(url, pooler), application="tests", connections=connections, **more)
    await database.open()
    return database


async def test_without_its_mode_a_pooler_is_refused_at_once_with_the_setting(url: str, pooler: PgBouncer) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(SettingsError, match="MAKEREADY_DATABASE_POOLER"):
            await Database(pooler.url(url), application="tests").open()


async def test_each_timeout_ends_what_it_must(
    url: str, pooler: PgBouncer, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With shorter values than the service's, one at a time; the mechanism that carries them is the same."""

    @asynccontextmanager
    async def limited(**short: str) -> AsyncIterator[Database]:
        monkeypatch.setattr(module, "SERVER_SETTINGS", SERVER_SETTINGS | short)
        database = await opened(url, pooler)
        yield database
        await database.close()

    async with limited(statement_timeout="1s") as database:
        with pytest.raises(DatabaseUnavailable, match="statement timeout"):
            async with database.connection() as connection:
                await connection.raw.execute("SELECT pg_sleep(10)")
    holder = await asyncpg.connect(owner_url)
    await holder.execute("BEGIN; LOCK TABLE thing")
    async with limited(lock_timeout="150ms") as database:
        with pytest.raises(DatabaseUnavailable, match="lock timeout"):  # of a statement alone, as of a keyed write
            await database.execute(ADD, id=1, n=1)
        with pytest.raises(DatabaseUnavailable, match="lock timeout"):
            async with database.transaction() as connection:
                await connection.execute(ADD, id=1, n=1)
    await holder.close()
    async with limited(idle_in_transaction_session_timeout="1s") as database:
        with pytest.raises(DatabaseUnavailable):
            async with database.transaction() as connection:
                await connection.execute(ADD, id=2, n=1)
                await asyncio.sleep(3)
                await connection.execute(ADD, id=3, n=1)
    async with limited() as database:
        assert await rows(database) == set()
        await database.execute(ADD, id=4, n=1)
        assert await rows(database) == {4}


async def rows(database: Database) -> set[int]:
    return {row["id"] for row in await database.rows(Statement(sa.select(crate.c.id)))}


async def test_many_tasks_on_few_connections_of_the_server_lose_and_mix_up_nothing(url: str, pooler: PgBouncer) -> None:
    """In transaction mode each statement runs on any connection of the server, prepared there or not."""
    databases = [await opened(url, pooler, connections=8) for _ in range(2)]
    echo = [Statement(sa.select((param("n", sa.BigInteger) + offset).label("n"))) for offset in range(20)]

    async def work(task: int) -> None:
        database = databases[task % 2]
        for step in range(20):
            assert await database.value(echo[step], n=task) == task + step
            if step % 5 == 0:
                async with database.transaction() as connection:
                    await connection.execute(ADD, id=task * 100 + step, n=task)
                    assert await connection.value(echo[step], n=task) == task + step

    await asyncio.gather(*(work(task) for task in range(24)))
    assert await rows(databases[0]) == {task * 100 + step for task in range(24) for step in range(0, 20, 5)}
    for database in databases:
        await database.close()


async def test_statements_keep_their_names_where_the_pooler_finds_them_again(url: str, pooler: PgBouncer) -> None:
    connection = await asyncpg.connect(pooler.url(url), statement_cache_size=0)
    for _ in range(2):  # an earlier look leaves nothing behind
        assert await poolers.keeps_statements(connection) == (pooler.mode == TRANSACTION and version() >= (1, 21))
    await connection.close()


async def test_a_session_of_ones_own_hears_notices_and_holds_locks(url: str, pooler: PgBouncer) -> None:
    database = await opened(url, pooler)
    heard: asyncio.Queue[object] = asyncio.Queue()
    async with database.session("listener", lock_timeout="2s") as session:
        await session.add_listener("news", lambda *notice: heard.put_nowait(notice[3]))
        async with database.connection() as connection:
            await connection.raw.execute("NOTIFY news, 'one'")
        assert await asyncio.wait_for(heard.get(), PATIENCE_SECONDS) == "one"
        assert await session.fetchval("SELECT pg_try_advisory_lock(7)")
        settings = await session.fetchrow("SELECT current_setting('lock_timeout'), current_setting('application_name')")
        assert settings is not None and tuple(settings) == ("2s", "listener")
        async with database.connection() as connection:
            assert not await connection.raw.fetchval("SELECT pg_try_advisory_xact_lock(7)")
    await database.close()


async def test_changed_defaults_reach_every_connection_of_the_server(url: str, postgres_server: PostgresServer) -> None:
    """Those that the pooler opened before the change are ended, when they are idle."""
    with server_folder() as folder, pgbouncer(folder, postgres_server.url, TRANSACTION) as pooler:
        before = await opened(url, pooler)
        async with before.transaction() as first, before.transaction() as second:  # two connections of the server
            assert [await connection.value(MINE, name="plan_cache_mode") for connection in (first, second)] == [
                module.ONE_PLAN
            ] * 2
        async with before.transaction() as busy:
            opening = asyncio.create_task(opened(url, pooler, plans=NEW_PLANS))
            await asyncio.sleep(0.3)
            assert not opening.done(), "a connection without the new defaults is in use"
            assert await busy.value(MINE, name="plan_cache_mode") == module.ONE_PLAN
        after = await opening
        async with after.transaction() as first, after.transaction() as second, after.transaction() as third:
            plan_modes = [await connection.value(MINE, name="plan_cache_mode") for connection in (first, second, third)]
        assert plan_modes == [NEW_PLANS] * 3
        for database in (before, after):
            await database.close()


async def test_a_pooler_with_settings_of_its_own_is_refused(url: str, postgres_server: PostgresServer) -> None:
    with server_folder() as folder, pgbouncer(folder, postgres_server.url, TRANSACTION) as pooler:
        pooler.stop()
        pooler.set_itself("SET jit = on")
        pooler.start()
        with pytest.raises(SettingsError, match=r"connections with jit = on"):
            await opened(url, pooler)


async def test_a_second_start_ends_no_connection(url: str, pooler: PgBouncer) -> None:
    """It finds the defaults that the first has set."""
    first = await opened(url, pooler)
    async with first.connection() as connection:
        pid = await connection.raw.fetchval("SELECT pg_backend_pid()")
    second = await opened(url, pooler)
    async with first.connection() as connection:
        assert await connection.raw.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid) == 1
    for database in (first, second):
        await database.close()
