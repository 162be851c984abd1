"""A process opens its database once that has had the process's own migration, and waits until then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
import structlog

from chassis.db.database import Database, DatabaseRefused
from chassis.db.revisions import CREATE, open_migrated
from chassis.refusals import Unavailable
from testkit.databases import service_url
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer

HEAD = "0002_things_have_names"
Lines = list[MutableMapping[str, Any]]


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.create_database("chassis_revisions")


@pytest.fixture
def lines() -> Iterator[Lines]:
    with structlog.testing.capture_logs() as captured:
        yield captured


async def run(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def migrate(url: str, *revisions: str, recorded: bool = True) -> None:
    """What migrations leave behind: the last revision, and all that were recorded."""
    await run(  # in one transaction: a service may look at any moment
        url,
        "CREATE TABLE IF NOT EXISTS alembic_version (version_num text); DELETE FROM alembic_version;"
        f" INSERT INTO alembic_version VALUES ('{revisions[-1]}')",
    )
    if recorded:
        rows = ", ".join(f"('{revision}')" for revision in revisions)
        await run(url, CREATE, f"INSERT INTO schema_revision VALUES {rows} ON CONFLICT DO NOTHING")


@asynccontextmanager
async def opening(url: str) -> AsyncIterator[tuple[Database, asyncio.Task[None]]]:
    database = Database(url, application="tests")
    task = asyncio.create_task(open_migrated(database, HEAD))
    yield database, task
    task.cancel()
    await asyncio.wait({task})
    await database.close()


async def said(lines: Lines, event: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while event not in [line["event"] for line in lines]:  # noqa: ASYNC110 - a log sets no event
            await asyncio.sleep(0.02)


async def test_an_empty_database_is_waited_for_and_said_to_be_once(url: str, lines: Lines) -> None:
    async with opening(url) as (database, task):
        await said(lines, "waiting_for_migrations")
        await asyncio.sleep(1.2)  # two looks
        assert lines == [{"event": "waiting_for_migrations", "log_level": "warning", "head": HEAD, "revision": ""}]
        assert not task.done()
        await migrate(url, "0001_initial", HEAD)
        await asyncio.wait_for(task, PATIENCE_SECONDS)
        async with database.connection() as connection:
            assert await connection.raw.fetchval("SELECT count(*) FROM schema_revision") == 2


async def test_an_older_schema_is_waited_for_through_each_of_its_migrations(url: str, lines: Lines) -> None:
    await migrate(url, "0000_before")
    async with opening(url) as (_, task):
        await said(lines, "waiting_for_migrations")
        await migrate(url, "0001_initial")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(lines) < 2:  # noqa: ASYNC110 - a log sets no event
                await asyncio.sleep(0.02)
        await migrate(url, HEAD)
        await asyncio.wait_for(task, PATIENCE_SECONDS)
    assert [line["revision"] for line in lines] == ["0000_before", "0001_initial"]


@pytest.mark.parametrize(
    ("revisions", "recorded"),
    [
        (("0001_initial", HEAD), True),
        (("0001_initial", HEAD, "0003_of_a_later_release"), True),
        ((HEAD,), False),  # a release before 0.3.0 migrated it
    ],
    ids=["its own", "a later one", "not recorded"],
)
async def test_a_schema_that_has_had_the_migration_is_not_waited_for(
    url: str, lines: Lines, revisions: tuple[str, ...], recorded: bool
) -> None:
    await migrate(url, *revisions, recorded=recorded)
    async with opening(url) as (_, task):
        await asyncio.wait_for(task, PATIENCE_SECONDS)
    assert lines == []


async def test_a_schema_of_another_line_of_development_is_waited_for(url: str, lines: Lines) -> None:
    await migrate(url, "0001_initial", "0003_of_another_release")
    async with opening(url) as (_, task):
        await said(lines, "waiting_for_migrations")
        assert not task.done() and lines[0]["revision"] == "0003_of_another_release"


async def test_a_role_that_may_not_look_yet_waits_for_the_migration_that_gives_the_right(
    url: str, lines: Lines
) -> None:
    await migrate(url, HEAD)
    async with opening(service_url(url)) as (_, task):
        await said(lines, "waiting_for_database")
        assert "run them" in lines[0]["reason"] and not task.done()
        role = urlsplit(service_url(url)).username
        await run(url, f"GRANT SELECT ON alembic_version, schema_revision TO {role}")
        await asyncio.wait_for(task, PATIENCE_SECONDS)


async def test_what_a_migration_sets_for_the_role_holds_afterwards(url: str, lines: Lines) -> None:
    async with opening(url) as (database, task):
        await said(lines, "waiting_for_migrations")
        await run(url, "ALTER ROLE CURRENT_USER SET search_path = public, pg_temp")
        await migrate(url, HEAD)
        await asyncio.wait_for(task, PATIENCE_SECONDS)
        async with database.connection() as connection:
            assert await connection.raw.fetchval("SHOW search_path") == "public, pg_temp"
    await run(url, "ALTER ROLE CURRENT_USER RESET search_path")


async def test_a_server_that_is_away_is_waited_for(url: str, lines: Lines, postgres_server: PostgresServer) -> None:
    await migrate(url, HEAD)
    postgres_server.stop()
    try:
        async with opening(url) as (_, task):
            await said(lines, "waiting_for_database")
            await asyncio.sleep(1.2)  # two looks
            assert not task.done() and len(lines) == 1
            postgres_server.start()
            await asyncio.wait_for(task, PATIENCE_SECONDS)
    finally:
        postgres_server.start()


@pytest.mark.parametrize("change", ["password", "database", "setting"])
async def test_what_no_waiting_mends_is_raised_at_once(url: str, lines: Lines, change: str) -> None:
    wrong = {
        "password": url.replace("@", "x@", 1),
        "database": f"{url}_of_nobody",
        "setting": f"{url}?sslmode=sometimes",
    }[change]
    async with opening(wrong) as (_, task):
        with pytest.raises(DatabaseRefused) as refused:
            await asyncio.wait_for(task, PATIENCE_SECONDS)
    assert isinstance(refused.value, Unavailable) and lines == []
