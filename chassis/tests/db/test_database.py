"""The database: transactions, the exception for a lost connection, and the text of errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
import sqlalchemy as sa

from chassis.db.database import NEW_PLANS, ONE_PLAN, Database, DatabaseUnavailable
from chassis.db.statements import Statement
from chassis.refusals import Unavailable
from chassis.runtime.settings import SettingsError
from testkit.plugin import PostgresServer

from ..databases import database_with

metadata = sa.MetaData()
thing = sa.Table("thing", metadata, sa.Column("id", sa.BigInteger, primary_key=True))
MANY = Statement(sa.select(sa.func.count()).select_from(thing))


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_database", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE thing")
    return opened


async def test_a_database_error_does_not_contain_the_row(database: Database) -> None:
    """The values may be a resident's, and an error may be logged."""
    with pytest.raises(asyncpg.CheckViolationError) as fault:
        async with database.transaction() as connection:
            await connection.raw.execute(
                "CREATE TEMP TABLE party (phone text CHECK (length(phone) < 5)) ON COMMIT DROP"
            )
            await connection.raw.execute("INSERT INTO party VALUES ($1)", "zq-marker")
    assert "party_phone_check" in str(fault.value) and "zq-marker" not in str(fault.value)


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


async def test_a_row_that_is_locked_too_long_is_unavailable(database: Database) -> None:
    async with database.transaction("LOCK TABLE thing") as _:
        with pytest.raises(DatabaseUnavailable, match="lock timeout"):
            async with database.transaction("SET LOCAL lock_timeout = '10ms'") as other:
                await other.raw.execute("INSERT INTO thing VALUES (1)")


async def test_a_wrong_password_is_reported_at_once(database: Database) -> None:
    wrong = database.url.replace("@", "x@", 1)
    async with asyncio.timeout(10):
        with pytest.raises(DatabaseUnavailable):
            await Database(wrong, application="tests").open()


@pytest.mark.parametrize("plans", [ONE_PLAN, NEW_PLANS])
async def test_every_connection_has_the_settings_that_were_asked_for(plans: str, database: Database) -> None:
    other = Database(database.url, application="svc-orders", connections=2, plans=plans)
    await other.open()
    async with other.connection() as connection:
        shown = [
            await connection.raw.fetchval(f"SHOW {name}") for name in ("plan_cache_mode", "application_name", "jit")
        ]
    await other.close()
    assert shown == [plans, "svc-orders", "off"]


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
