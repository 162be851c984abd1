"""A process listens at once, and serves when its database is there and has had its migrations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from chassis.app.health import LIVENESS
from testkit import databases
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer

from .test_server import EchoProcess, echo_process, migrate


@pytest.fixture
def empty(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[EchoProcess]:
    """A service with an empty database, not started."""
    process = echo_process(postgres_server, tmp_path, migrated=False)
    yield process
    process.kill()


def logged(process: EchoProcess, event: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, json_lines(process)) if line["event"] == event]


def json_lines(process: EchoProcess) -> list[str]:
    return [line for line in process.log.read_text().splitlines() if line.startswith("{")]


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - another process sets no event
            await asyncio.sleep(0.02)


async def serves(process: EchoProcess) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await process.health() != "SERVING":  # noqa: ASYNC110 - another process sets no event
            await asyncio.sleep(0.02)


async def test_it_lives_and_is_not_ready_until_its_database_is_migrated(empty: EchoProcess) -> None:
    empty.launch()
    assert await empty.health(LIVENESS) == "SERVING"
    await until(lambda: logged(empty, "waiting_for_migrations"))
    for _ in range(5):
        assert (await empty.health(), await empty.health(LIVENESS)) == ("NOT_SERVING", "SERVING")
        with pytest.raises(grpc.aio.AioRpcError) as fault:
            await empty.echo("too early")
        assert fault.value.code() is grpc.StatusCode.UNAVAILABLE
        await asyncio.sleep(0.2)
    assert empty.lines == [], "a step of its start has run"

    await asyncio.to_thread(migrate, empty.database_url)
    await serves(empty)
    assert await empty.echo("now") == "now"
    assert "on_start 1" in empty.lines
    (line,) = logged(empty, "waiting_for_migrations")
    assert (line["head"], line["revision"], line["level"]) == ("0001_initial", "", "warning")
    await asyncio.to_thread(empty.stop)


async def test_a_signal_ends_the_wait(empty: EchoProcess) -> None:
    empty.launch()
    await until(lambda: logged(empty, "waiting_for_migrations"))
    await asyncio.to_thread(empty.stop)
    assert json.loads(json_lines(empty)[-1])["event"] == "stopped"


async def test_it_waits_for_a_server_that_is_away(postgres_server: PostgresServer, tmp_path: Path) -> None:
    process = await asyncio.to_thread(echo_process, postgres_server, tmp_path)
    postgres_server.stop()
    try:
        process.launch()
        await until(lambda: process.log.exists() and logged(process, "waiting_for_database"))
        assert (await process.health(), await process.health(LIVENESS)) == ("NOT_SERVING", "SERVING")
    finally:
        postgres_server.start()
    await serves(process)
    await asyncio.to_thread(process.stop)


@pytest.mark.parametrize("change", ["password", "setting"])
async def test_what_no_waiting_mends_ends_it_with_one_line(empty: EchoProcess, change: str) -> None:
    url = databases.service_url(empty.database_url)
    wrong = {"password": url.replace("@", "x@", 1), "setting": f"{url}?sslmode=sometimes"}[change]
    empty.launch(MAKEREADY_DATABASE_URL=wrong)
    assert await asyncio.to_thread(empty.wait) == 2
    *steps, line = empty.log.read_text().splitlines()
    assert steps == ["on_stop 2", "on_stop 1"]
    assert line.startswith("svc-echo: ") and ("password" in line or "sslmode" in line)
