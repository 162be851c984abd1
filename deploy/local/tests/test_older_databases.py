"""A database of a version before the first release is refused, by the migration and by the service."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from chassis.db import migrations
from chassis.db.revisions import head_of
from svc_tickets.tables import metadata
from testkit import databases
from testkit.plugin import PostgresServer, Server
from testkit.processes import Process
from testkit.services import Keys, RunningService

from .installation import System

SENTENCE = (
    "svc-tickets: this database was made by a version before 0.2.0 and cannot be upgraded; start with an empty one "
    "(delete the state directory, or drop the database), then import again."
)
OLD_HEAD = "0009"  # the last revision of svc-tickets
LATER = "0099_of_a_later_release"


async def note(url: str, revision: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS alembic_version (version_num varchar(32) PRIMARY KEY)")
        await connection.execute("DELETE FROM alembic_version")
        await connection.execute("INSERT INTO alembic_version VALUES ($1)", revision)
    finally:
        await connection.close()


async def forget(url: str, revision: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("DELETE FROM schema_revision WHERE revision = $1", revision)
    finally:
        await connection.close()


async def tables(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    finally:
        await connection.close()


def run(service: RunningService, *arguments: str) -> tuple[int, list[str]]:
    """The exit status and the lines of the output."""
    command = [sys.executable, "-P", "-m", "svc_tickets", *arguments]
    process = Process(command, service.log.with_name("output"), service.environment, warm=True)
    process.launch()
    return process.wait(60), process.log_tail().splitlines()


@pytest.fixture
def service(postgres_server: PostgresServer, nats_server: Server, tmp_path: Path) -> RunningService:
    url = postgres_server.create_database("older")
    return RunningService("svc-tickets", Keys(tmp_path), url, nats_server.url, tmp_path / "log")


@pytest.mark.parametrize("arguments", [["migrate"], []], ids=["migrate", "serve"])
async def test_an_old_head_is_refused_in_one_line_and_nothing_is_changed(
    service: RunningService, arguments: list[str]
) -> None:
    await note(service.database_url, OLD_HEAD)
    await databases.grant_to_service(service.database_url)
    assert await asyncio.to_thread(run, service, *arguments) == (2, [SENTENCE])
    assert await tables(service.database_url) == ["alembic_version"]


async def test_a_later_release_of_this_schema_is_served_and_left_as_it_is(service: RunningService) -> None:
    """After a step back to this release, the database still has the later one's additions."""
    await asyncio.to_thread(migrations.migrate, service.database_url, "svc_tickets", metadata, "older")
    await note(service.database_url, LATER)
    status, (line,) = await asyncio.to_thread(run, service, "migrate")
    assert status == 0 and '"event": "schema_is_newer"' in line and LATER in line
    await asyncio.to_thread(service.start)
    await asyncio.to_thread(service.stop)
    assert "waiting_for_migrations" not in service.log.read_text()


async def test_a_revision_of_another_line_of_development_is_neither_migrated_nor_served(
    service: RunningService,
) -> None:
    await asyncio.to_thread(migrations.migrate, service.database_url, "svc_tickets", metadata, "older")
    await note(service.database_url, LATER)
    await forget(service.database_url, head_of("svc_tickets"))
    assert await asyncio.to_thread(run, service, "migrate") == (
        2,
        [f"svc-tickets: revision {LATER} of the database is unknown here: a later release made it"],
    )
    service.launch()
    await asyncio.to_thread(service.wait_until, lambda: "waiting_for_migrations" in service.log_tail())
    await asyncio.to_thread(service.stop)


async def test_the_runner_says_it_and_leaves_nothing_running(prepared: System) -> None:
    """`make run` on the folder of an older checkout: the same sentence, exit status 2, and no process remains."""
    await asyncio.to_thread(prepared.started, MAKEREADY_DEMO="0")
    server = urlsplit(prepared.read("runtime.json")["database_url"])
    for context in ("gateway", "catalog", "tickets", "occupancy", "webhooks"):
        await note(urlunsplit(server._replace(path=f"/{context}")), OLD_HEAD)
    assert await asyncio.to_thread(prepared.stop) == 0
    runner = prepared.start(MAKEREADY_DEMO="0")
    assert await asyncio.to_thread(runner.wait, 60) == 2
    assert prepared.one_line() == "makeready: " + SENTENCE.replace("svc-tickets", "gateway")
    assert prepared.remains() == []
