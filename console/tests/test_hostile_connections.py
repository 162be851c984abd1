"""What strangers and hostile people send to the console: it stays small, and answers a person beside it.

The suite attacks with a part of what is tried; MAKEREADY_HOSTILE_CONNECTIONS=5000 (`make hostile`) with all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from chassis.auth.identity import TokenSigner
from console.kit.serving import SIZES
from console.kit.signing_in import SESSION_COOKIE
from testkit.hostile import (
    BYTES_OF_A_CONNECTION,
    CONNECTIONS,
    HELD_SECONDS,
    IS_FULL,
    MEMORY_BYTES_MAX,
    SILENT,
    bodies,
    certificate,
    enough_files,
    heads,
    hostile_clients,
    metric,
    resident_bytes,
    unread,
)
from testkit.patience import PATIENCE_SECONDS, comes_true, eventually
from testkit.processes import Process, free_port

from . import attacks
from .attacks import Attack, Outcome
from .browsing import Browser
from .conftest import _reset
from .stubs import Stubs

pytestmark = pytest.mark.slow
DANA = "dana@demo.example"
# What an attack may add to the memory, besides the budgets: connections, and what a page leaves in the heap.
ATTACK_BYTES_MAX = 40_000_000
# The heap stays larger by this at most, however often it is attacked: what a page leaves lies between free blocks.
KEPT_BYTES = max(20_000_000, CONNECTIONS * 12_000)
FORM = "Content-Type: multipart/form-data; boundary=b\r\n"


@dataclass
class Attacked:
    """A console in a process of its own, before the services' stubs, with an administrator who looks at her account."""

    process: Process
    stubs: Stubs
    port: int
    metrics: str
    browser: Browser
    authority: str
    answers: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0
    peak: int = 0

    def head(self, path: str, *, signed_in: bool = False, more: str = "") -> str:
        """The first lines of a request."""
        verb = "POST" if more else "GET"
        cookie = f"Cookie: {SESSION_COOKIE}={self.stubs.begin(self.stubs.people[DANA])}\r\n" if signed_in else ""
        return f"{verb} {path} HTTP/1.1\r\nHost: localhost:{self.port}\r\nOrigin: {self.browser.url}\r\n{cookie}{more}"

    @contextlib.asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """A person beside an attack, with a new connection for each page."""
        stop = asyncio.Event()
        looking = asyncio.create_task(self._look(stop))
        yield
        stop.set()
        await looking

    async def _look(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            started = time.monotonic()
            async with client(self.authority) as http:
                self.answers[(await Browser(self.browser.url, http, self.browser.cookies).get("/account")).status] += 1
            self.slowest = max(self.slowest, time.monotonic() - started)
            self.peak = max(self.peak, resident_bytes(self.process.pid))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 0.1)  # short: the time between two pages

    async def suffer(self, attack: Attack) -> Outcome:
        """Runs an attack, and prints the figures."""
        at_rest = resident_bytes(self.process.pid)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", attacks.__file__), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        started = time.monotonic()
        async with self.beside():
            out, _ = await process.communicate(json.dumps(attack).encode() + b"\n")
        outcome: Outcome = json.loads(out)
        self.peak = max(self.peak, resident_bytes(self.process.pid))
        text = (
            f"{attack['connections']} connections with {attack['requests']} requests of {outcome['body_bytes']:,} "
            f"bytes in {time.monotonic() - started:.1f} s: {outcome['answers']}, {outcome['left_open']} left open\n"
            f"resident MB: at rest {at_rest / 1e6:.0f}, at most {self.peak / 1e6:.0f}; pages beside "
            f"{dict(self.answers)}, slowest {self.slowest:.2f} s"
        )
        print("", text, sep="\n")  # noqa: T201 - the figures
        assert set(self.answers) == {200}
        assert self.peak < min(MEMORY_BYTES_MAX, at_rest + ATTACK_BYTES_MAX), text
        return outcome


def settings(identity_keys: Path, database_url: str, stubs: Stubs, port: int) -> dict[str, str]:
    return {
        **os.environ,
        "MAKEREADY_ADMIN_PORT": str(port),
        "MAKEREADY_CONSOLE_URL": f"http://localhost:{port}",
        "MAKEREADY_API_URL": "https://api.makeready.example/api/v1",
        "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
        "MAKEREADY_DATABASE_URL": database_url,
        "MAKEREADY_IMPORT_TASKS": "0",
        "MAKEREADY_IDENTITY_KEY_FILE": str(identity_keys / "console.jwk"),
        "MAKEREADY_FILES_URL": (identity_keys / "files").as_uri(),
        **{f"MAKEREADY_{name.removeprefix('svc-').upper()}_ADDRESS": at for name, at in stubs.addresses.items()},
    }


@contextlib.asynccontextmanager
async def attacked(
    identity_keys: Path, database_url: str, log: Path, more: dict[str, str] | None = None, authority: str = ""
) -> AsyncIterator[Attacked]:
    enough_files()
    stubs = Stubs(identity_keys / "ring.jwks", TokenSigner(identity_keys / "gateway.jwk"))
    await stubs.start_all()
    port = free_port()
    environment = {**settings(identity_keys, database_url, stubs, port), **(more or {})}
    if authority:
        environment["MAKEREADY_CONSOLE_URL"] = f"https://localhost:{port}"
    process = Process([sys.executable, "-P", "-m", "console"], log, environment)
    process.launch()
    try:
        async with client(authority) as http:
            _reset(stubs)
            browser = Browser(environment["MAKEREADY_CONSOLE_URL"], http)
            browser.sign_in(stubs.begin(stubs.people[DANA], confirmed=True))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await answers(browser):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
            yield Attacked(process, stubs, port, environment["MAKEREADY_METRICS_LISTEN"], browser, authority)
    finally:
        await asyncio.to_thread(process.end)
        await stubs.stop_all()


def client(authority: str) -> aiohttp.ClientSession:
    tls = ssl.create_default_context(cadata=authority) if authority else True
    return aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(), connector=aiohttp.TCPConnector(ssl=tls, force_close=True)
    )


async def answers(browser: Browser) -> bool:
    with contextlib.suppress(aiohttp.ClientConnectionError):
        return [(await browser.get(path)).status for path in ("/readyz", "/account", "/sign-in")] == [200, 200, 303]
    return False


@pytest.fixture
async def console_process(identity_keys: Path, database_url: str, tmp_path: Path) -> AsyncIterator[Attacked]:
    async with attacked(identity_keys, database_url, tmp_path / "log") as process:
        yield process


def attack(console: Attacked, head: str, connections: int, **more: object) -> Attack:
    described: Attack = {
        "port": console.port,
        "connections": connections,
        "head": head,
        "requests": 1,
        "form_bytes": 0,
        "is_compressed": False,
        "missing_bytes": 0,
        "patience_seconds": 40.0,
    }
    return described | more  # type: ignore[return-value]


@pytest.mark.parametrize("signed_in", [False, True], ids=["nobody", "signed-in"])
async def test_compressed_forms_are_refused_and_never_unpacked(console_process: Attacked, signed_in: bool) -> None:
    """10 KB on their way, 10 MB unpacked; and 949 KB, 1 GB unpacked."""
    head = console_process.head("/imports/new", signed_in=signed_in, more=FORM + "Content-Encoding: gzip\r\n")
    head += "Connection: close\r\n"
    status = "415" if signed_in else "401"
    for connections, megabytes in ((150, 10), (20, 1000)) if IS_FULL else ((60, 10), (4, 300)):
        outcome = await console_process.suffer(
            attack(console_process, head, connections, form_bytes=megabytes * 1_000_000, is_compressed=True)
        )
        assert outcome["answers"] == {status: connections} and outcome["left_open"] == 0


@pytest.mark.parametrize("signed_in", [False, True], ids=["nobody", "signed-in"])
async def test_long_forms_are_refused_before_they_are_read(console_process: Attacked, signed_in: bool) -> None:
    """A form with a file may be long, so the signed-in one is refused for its field."""
    head = console_process.head("/imports/new", signed_in=signed_in, more=FORM)
    connections = 120 if IS_FULL else 30
    sent = attack(console_process, head, connections, form_bytes=6_000_000)
    outcome = await console_process.suffer(sent)
    # A client that goes on sending after the answer is cut off, and may not see it.
    status = {"413", "503"} if signed_in else {"401"}
    assert set(outcome["answers"]) <= status and outcome["left_open"] == 0


@pytest.mark.parametrize("path", ["/imports/new", "/sign-in"])
async def test_forms_that_never_end_are_let_go(console_process: Attacked, path: str) -> None:
    head = console_process.head(path, more=FORM)
    connections = 1500 if IS_FULL else 300
    sent = attack(console_process, head, connections, form_bytes=250_000, missing_bytes=1000)
    outcome = await console_process.suffer(sent)
    assert outcome["left_open"] == 0 and sum(outcome["answers"].values()) == connections
    # 400: it was evicted before its turn came.
    assert set(outcome["answers"]) <= {"401" if path == "/imports/new" else "413", "400"}


async def test_small_forms_that_never_end_have_a_budget(console_process: Attacked) -> None:
    """Of the sign-in, whose forms are read from everybody: those that have come longest are evicted with an answer."""
    connections = 1500 if IS_FULL else 500
    sent = attack(
        console_process, console_process.head("/sign-in", more=FORM), connections, form_bytes=60_000, missing_bytes=99
    )
    outcome = await console_process.suffer(sent)
    assert outcome["left_open"] == 0 and outcome["answers"] == {"400": connections}
    assert await metric(console_process.metrics, "makeready_http_budget_exceeded_total") > 0


async def test_pipelined_requests_wait_for_each_other_alone(console_process: Attacked) -> None:
    """200 pages on each of 200 connections: a person's pages are answered between them."""
    connections, requests = (200, 200) if IS_FULL else (60, 40)
    sent = attack(
        console_process, console_process.head("/sign-in"), connections, requests=requests, patience_seconds=300.0
    )
    sent["head"] = sent["head"].replace("Origin", "X-Origin")
    outcome = await console_process.suffer(sent)
    assert outcome["answers"] == {"200": connections * requests}


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_hostile_connections_take_little_memory(
    identity_keys: Path, database_url: str, tmp_path: Path, scheme: str
) -> None:
    tls, authority = certificate(tmp_path) if scheme == "https" else ({}, "")
    async with attacked(identity_keys, database_url, tmp_path / "log", tls, authority) as console:
        pid = console.process.pid
        at_rest = resident_bytes(pid)
        length = "Content-Length: {}\r\n\r\n"
        signed_in = FORM + length.format(250_000)
        kinds = (
            heads("/sign-in"),
            bodies("body", [console.head("/account/theme", signed_in=True, more=signed_in) for _ in range(12)]),
            bodies("stranger", [console.head("/sign-in", more=FORM + length.format(60_000))], 50_000),
            unread("/sign-in"),
            SILENT,
        )
        started = time.monotonic()
        async with console.beside(), hostile_clients(console.port, authority, kinds) as failed:
            opened_in = time.monotonic() - started
            await asyncio.sleep(HELD_SECONDS)
            await comes_true(lambda: console.answers.total() >= 10)
            open_now = await metric(console.metrics, "makeready_http_connections")
        evicted = await metric(console.metrics, "makeready_http_budget_exceeded_total")
        refused = await metric(console.metrics, "makeready_http_connections_refused_total")

        async def have_gone() -> bool:
            return await metric(console.metrics, "makeready_http_connections") == 0

        def figures() -> str:
            return (
                f"{CONNECTIONS} hostile connections by {scheme} in {opened_in:.1f} s, {failed} failed; "
                f"{open_now:.0f} at once, {evicted:.0f} evicted, {refused:.0f} refused\n"
                f"resident MB: at rest {at_rest / 1e6:.0f}, at most {console.peak / 1e6:.0f}, "
                f"afterwards {resident_bytes(pid) / 1e6:.0f}\n"
                f"pages beside them {dict(console.answers)}, slowest {console.slowest:.2f} s"
            )

        await eventually(have_gone)
        await comes_true(lambda: resident_bytes(pid) < at_rest + KEPT_BYTES, figures)
        print("", figures(), sep="\n")  # noqa: T201 - the figures
        assert set(console.answers) == {200} and refused == 0
        assert console.peak < min(MEMORY_BYTES_MAX, at_rest + SIZES.total + CONNECTIONS * BYTES_OF_A_CONNECTION)


def test_the_limits_of_forms_fit_together() -> None:
    """What a stranger's form may have is less than what ends a whole budget."""
    from console.kit import uploads

    assert uploads.STRANGERS_BYTES_MAX < uploads.FIELDS_BYTES_MAX < SIZES.unfinished // 16
