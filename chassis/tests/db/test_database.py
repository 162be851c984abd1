"""The database: transactions, the exception for a lost connection, and the text of errors; at the server itself and
through a pooler in each of its modes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY

from chassis.db.database import (
    BY_ROWS,
    NEW_PLANS,
    ONE_PLAN,
    SERVER_SETTINGS,
    Database,
    DatabaseFull,
    DatabaseUnavailable,
)
from chassis.db.statements import Statement
from chassis.refusals import Unavailable
from chassis.runtime.settings import SettingsError
from makeready_local.databases import execute
from testkit.folders import server_folder
from testkit.patience import PATIENCE_SECONDS, eventually
from testkit.plugin import PostgresServer
from testkit.poolers import MODES, PgBouncer, pgbouncer

from ..databases import database_with, reached

metadata = sa.MetaData()
crate = sa.Table("thing", metadata, sa.Column("id", sa.BigInteger, primary_key=True))
MANY = Statement(sa.select(sa.func.count()).select_from(crate))


@pytest.fixture(scope="module", params=["no pooler", *MODES])
def pooler(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[PgBouncer | None]:
    if request.param not in MODES:
        yield None
        return
    with server_folder() as folder, pgbouncer(folder, postgres_server.url, request.param) as running:
        yield running


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer, pooler: PgBouncer | None) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_database", metadata, pooler) as database:
        yield database


@pytest.fixture
def how(opened: Database, pooler: PgBouncer | None) -> dict[str, Any]:
    """The arguments of another `Database` that reaches the same one in the same way."""
    return {"url": opened.url} if pooler is None else reached(pooler.direct_url(opened.url), pooler)


@pytest.fixture
async def database(opened: Database) -> Database:
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE thing")
    return opened


@asynccontextmanager
async def opened_with(how: dict[str, Any], connections: int) -> AsyncIterator[Database]:
    database = Database(**how, application="tests", connections=connections)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def test_a_database_error_does_not_contain_the_row(database: Database) -> None:
    """The values may be a resident's, and an error may be logged."""
    with pytest.raises(asyncpg.CheckViolationError) as fault:
        async with database.transaction() as connection:
            await connection.raw.execute(
                "CREATE TEMP TABLE party (phone text CHECK (length(phone) < 5)) ON COMMIT DROP"
            )
            await connection.raw.execute("INSERT INTO party VALUES ($1)", "zq-marker")
    assert "party_phone_check" in str(fault.value) and "zq-marker" not in str(fault.value)


async def test_a_full_disk_is_an_exception_of_its_own(database: Database) -> None:
    """The server's own error; deploy/local/tests/test_full_disk.py fills a real disk."""
    full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    with pytest.raises(DatabaseFull, match="the disk of the database is full: could not extend file"):
        async with database.transaction() as connection:
            await connection.raw.execute(full)
    other = "DO $$ BEGIN RAISE EXCEPTION 'no memory' USING ERRCODE = 'out_of_memory'; END $$"
    with pytest.raises(DatabaseUnavailable) as fault:
        async with database.connection() as connection:
            await connection.raw.execute(other)
    assert type(fault.value) is DatabaseUnavailable


async def test_a_transaction_is_committed_at_its_end(database: Database) -> None:
    async with database.transaction("INSERT INTO thing VALUES (1)") as connection:
        await connection.raw.execute("INSERT INTO thing VALUES (2)")
        assert await database.value(MANY) == 0, "nobody else sees it yet"
    assert await database.value(MANY) == 2


@pytest.mark.parametrize("fault", [RuntimeError(), asyncio.CancelledError(), KeyboardInterrupt()])
async def test_a_transaction_is_rolled_back_whatever_ends_it(fault: BaseException, database: Database) -> None:
    with pytest.raises(type(fault)):
        async with database.transaction() as connection:
            await connection.raw.execute("INSERT INTO thing VALUES (1)")
            raise fault
    assert await database.value(MANY) == 0
    async with database.connection() as connection:
        assert await connection.raw.fetchval("SELECT pg_current_xact_id_if_assigned()") is None


async def test_a_connection_that_the_server_ends_is_unavailable_and_the_next_is_fine(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable) as fault:
        async with database.transaction() as connection:
            await connection.raw.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert isinstance(fault.value, Unavailable)
    assert await database.value(MANY) == 0


async def test_a_database_that_takes_no_connections_is_unavailable(postgres_server: PostgresServer) -> None:
    database = Database(await asyncio.to_thread(postgres_server.create_database, "closed"), application="tests")
    await database.open()
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'closed'"
    closing = "ALTER DATABASE closed ALLOW_CONNECTIONS false"
    await asyncio.to_thread(execute, postgres_server.url, closing, ended)
    for _ in range(3):  # the connection that has ended, then new ones
        with pytest.raises(DatabaseUnavailable):
            await database.value(Statement(sa.select(sa.literal_column("1"))))
    await database.close()


async def test_a_row_that_is_locked_too_long_is_unavailable(database: Database) -> None:
    async with database.transaction("LOCK TABLE thing") as _:
        with pytest.raises(DatabaseUnavailable, match="lock timeout"):
            async with database.transaction("SET LOCAL lock_timeout = '10ms'") as other:
                await other.raw.execute("INSERT INTO thing VALUES (1)")


async def test_a_wrong_password_is_reported_at_once(how: dict[str, Any]) -> None:
    wrong = how.get("direct_url", how["url"]).replace("@", "x@", 1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(DatabaseUnavailable):
            await Database(wrong, application="tests").open()


@pytest.mark.parametrize("plans", [ONE_PLAN, NEW_PLANS])
async def test_every_connection_has_the_settings_that_were_asked_for(plans: str, how: dict[str, Any]) -> None:
    other = Database(**how, application="svc-orders", connections=2, plans=plans)
    await other.open()
    expected = SERVER_SETTINGS | {"plan_cache_mode": plans, "application_name": "svc-orders"}
    if plans == ONE_PLAN:
        expected |= BY_ROWS
    for _ in range(3):
        async with other.connection() as connection:
            actual = {name: await connection.raw.fetchval(f"SHOW {name}") for name in expected}
        assert actual == expected
    await other.close()


def shown(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


async def test_the_metrics_count_the_connections_and_who_waits_for_one(how: dict[str, Any]) -> None:
    other = Database(**how, application="tests", connections=3)
    await other.open()
    assert shown("makeready_database_connections_max") == 3
    assert [shown("makeready_database_connections", state=state) for state in ("used", "idle")] == [0, 2]
    async with other.connection(), other.connection(), other.connection():
        assert [shown("makeready_database_connections", state=state) for state in ("used", "idle")] == [3, 0]
        assert shown("makeready_database_waiting") == 0
        waiting = [asyncio.create_task(other.value(MANY)) for _ in range(4)]
        await asyncio.sleep(0)
        assert shown("makeready_database_waiting") == 4
    await asyncio.gather(*waiting)
    assert shown("makeready_database_waiting") == 0
    assert shown("makeready_database_connections", state="used") == 0
    await other.close()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[asyncpg.Pool]:
    """Has an element for each connection that asyncpg's pools have given."""
    acquire, pools = asyncpg.Pool.acquire, list[asyncpg.Pool]()

    def counted(pool: asyncpg.Pool, *, timeout: float) -> Any:
        pools.append(pool)
        return acquire(pool, timeout=timeout)

    monkeypatch.setattr(asyncpg.Pool, "acquire", counted)
    return pools


async def test_a_connection_goes_on_to_the_next_statement_without_the_pool(
    how: dict[str, Any], taken: list[asyncpg.Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_with(how, connections=3) as database:
        taken.clear()
        for _ in range(5):
            await asyncio.gather(*(database.value(MANY) for _ in range(2)))
        assert len(taken) <= 2
        monkeypatch.setattr("chassis.db.database.KEPT_SECONDS", 0.0)
        await database.value(MANY)
        before = len(taken)
        await database.value(MANY)
        assert len(taken) == before + 1 and not database._kept, "all are back in the pool, which replaces old ones"


async def test_a_connection_that_the_server_has_closed_does_not_go_on(how: dict[str, Any]) -> None:
    async with opened_with(how, connections=2) as database, opened_with(how, connections=2) as other:
        async with database.connection() as connection:
            ended = connection.raw
            process_id = await ended.fetchval("SELECT pg_backend_pid()")
        assert database._kept
        async with other.connection() as connection:
            await connection.raw.execute(f"SELECT pg_terminate_backend({process_id})")
        # asyncpg takes a closed connection back itself: each call of the one that was kept then raises.
        await eventually(lambda: _is_taken_back(ended))
        assert await database.value(MANY) == 0


async def _is_taken_back(connection: Any) -> bool:
    try:
        connection.is_closed()
    except asyncpg.InterfaceError:
        return True
    return False


async def test_a_connection_with_an_open_transaction_does_not_go_on(how: dict[str, Any]) -> None:
    async with opened_with(how, connections=2) as database:
        async with database.connection() as connection:
            await connection.raw.execute("BEGIN; INSERT INTO thing VALUES (1)")
        assert await database.value(MANY) == 0
        with pytest.raises(ZeroDivisionError):
            async with database.connection() as connection:
                await connection.raw.execute("BEGIN; INSERT INTO thing VALUES (1)")
                raise ZeroDivisionError
        assert await database.value(MANY) == 0


async def test_all_who_wait_get_a_connection(how: dict[str, Any]) -> None:
    async with opened_with(how, connections=2) as database:
        assert await asyncio.gather(*(database.value(MANY) for _ in range(40))) == [0] * 40


async def test_no_connection_from_before_a_renewal_goes_on(how: dict[str, Any], taken: list[asyncpg.Pool]) -> None:
    """The pool connects anew."""
    async with opened_with(how, connections=3) as database:
        async with database.connection():
            await database.value(MANY)
            await database.renew()
        taken.clear()
        async with database.connection(), database.connection():
            assert len(taken) == 2


async def test_a_database_of_before_the_first_release_is_not_opened(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("chassis_older")
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE alembic_version (version_num text)")
    for revision, is_refused in (("0001_initial", False), ("0007", True)):
        await connection.execute("DELETE FROM alembic_version")
        await connection.execute("INSERT INTO alembic_version VALUES ($1)", revision)
        database = Database(url, application="tests")
        if is_refused:
            with pytest.raises(SettingsError, match=r"before 0\.2\.0"):
                await database.open()
        else:
            await database.open()
            await database.close()
    await connection.close()
