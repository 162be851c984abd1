"""The console answers from its start on, is ready once its database has had its migrations, and stays so without it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import aiohttp

from chassis.db import migrations
from console import tables
from testkit import databases
from testkit.alarms import check_fires, own
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer
from testkit.processes import Process, free_port

from .browsing import Browser
from .conftest import _reset, _started
from .stubs import Stubs

UNAVAILABLE = "Temporarily unavailable"
NAMES = ("GATEWAY", "CATALOG", "TICKETS", "OCCUPANCY", "WEBHOOKS")
CHANGED_NOTHING = "Part of Makeready is not responding. No changes were made."


async def status(http: aiohttp.ClientSession, url: str) -> int:
    async with http.get(url) as answer:
        return answer.status


async def test_it_is_ready_on_its_schema_and_answers_before(
    identity_keys: Path, postgres_server: PostgresServer, http: aiohttp.ClientSession
) -> None:
    empty = postgres_server.create_database("console_not_migrated")
    async with _started(identity_keys, empty, is_migrated=False) as (stubs, url):
        _reset(stubs)
        dana = Browser(url, http).sign_in(stubs.begin(stubs.people["dana@demo.example"], confirmed=True))
        for _ in range(3):
            assert [await status(http, f"{url}/{path}") for path in ("healthz", "readyz")] == [200, 503]
            page = await dana.get("/imports")
            assert (page.status, page.title) == (503, UNAVAILABLE) and CHANGED_NOTHING in page.words
            assert (await dana.get("/tickets")).status == 200
            await asyncio.sleep(0.3)
        await asyncio.to_thread(migrations.migrate, empty, "console", tables.metadata)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await status(http, f"{url}/readyz") != 200:  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.05)
        assert (await dana.get("/imports")).status == 200


async def test_without_its_database_it_stays_ready_and_says_so_in_a_page(
    apart: tuple[Stubs, Browser], http: aiohttp.ClientSession, postgres_server: PostgresServer
) -> None:
    _, dana = apart
    assert (await dana.get("/imports")).status == 200
    postgres_server.stop()
    try:
        for _ in range(3):
            page = await dana.get("/imports")
            assert (page.status, page.title) == (503, UNAVAILABLE) and CHANGED_NOTHING in page.words
            assert (await dana.get("/tickets")).status == 200
            assert [await status(http, f"{dana.url}/{path}") for path in ("healthz", "readyz")] == [200, 200]
    finally:
        postgres_server.start()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await dana.get("/imports")).status != 200:  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.05)


async def test_without_the_gateway_every_page_says_so(
    apart: tuple[Stubs, Browser], http: aiohttp.ClientSession
) -> None:
    """Nobody's session is known then, so nothing else can be shown."""
    stubs, dana = apart
    await stubs.stop("gateway")
    for path in ("/", "/tickets", "/imports"):
        page = await dana.get(path)
        assert (page.status, page.title) == (503, UNAVAILABLE) and CHANGED_NOTHING in page.words
    assert await status(http, f"{dana.url}/readyz") == 200


async def test_its_alarm_fires_for_real(apart: tuple[Stubs, Browser]) -> None:
    stubs, dana = apart
    before = {"console": own()}
    await stubs.stop("gateway")
    assert (await dana.get("/tickets")).status == 503
    check_fires("ConsoleFaults", before=before, after={"console": own()})


async def test_a_wrong_password_ends_it_with_one_line(identity_keys: Path, database_url: str, tmp_path: Path) -> None:
    unreachable = {f"MAKEREADY_{name}_ADDRESS": "127.0.0.1:1" for name in NAMES}
    environment = (
        os.environ
        | unreachable
        | {
            "MAKEREADY_ADMIN_PORT": str(free_port()),
            "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
            "MAKEREADY_DATABASE_URL": databases.service_url(database_url).replace("@", "x@", 1),
            "MAKEREADY_IDENTITY_KEY_FILE": str(identity_keys / "console.jwk"),
            "MAKEREADY_FILES_URL": (tmp_path / "files").as_uri(),
        }
    )
    process = Process([sys.executable, "-P", "-m", "console"], tmp_path / "log", environment, warm=True)
    process.launch()
    assert await asyncio.to_thread(process.wait) == 2
    opened, line = process.log_tail().splitlines()
    assert '"port_open"' in opened
    assert line.startswith("console: password authentication failed")
