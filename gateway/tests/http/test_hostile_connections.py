"""Thousands of hostile connections of five kinds at once: the gateway stays small, known keys are answered beside them,
and the memory goes back when they have gone.

The suite opens 300 of them, MAKEREADY_HOSTILE_CONNECTIONS says how many (`make hostile`: 5,000).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import resource
import ssl
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from chassis.http import connection_limits as limits
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.patience import comes_true, eventually
from testkit.raw_http import Api
from testkit.requirements import lacks

CONNECTIONS = int(os.environ.get("MAKEREADY_HOSTILE_CONNECTIONS", "300"))
MEMORY_BYTES_MAX = 200_000_000
BUDGETS = limits.UNFINISHED_BYTES_MAX + limits.UNREAD_BYTES_MAX + limits.TLS_BYTES_MAX + limits.HANDSHAKE_BYTES_MAX
# A connection costs less than this, besides the budgets.
BYTES_OF_A_CONNECTION = 20_000
# The heap stays larger by this at most: small objects lie between free ones.
KEPT_BYTES = max(20_000_000, CONNECTIONS * 8_000)
# Of 127.0.0.0/8: no one has as many connections as the cap by address.
ADDRESSES = 100
PROCESSES = 1 + CONNECTIONS // 2000
# How long the connections are held once all have been opened.
HELD_SECONDS = 5.0 if CONNECTIONS >= 5000 else 1.5
OTHER_FILES = 500


def resident_bytes(gateway: Gateway) -> int:
    assert gateway.process is not None
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{gateway.process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


async def metric(gateway: Gateway, name: str) -> float:
    """The sum over a metric's labels."""

    def read() -> list[str]:
        address = gateway.environment["MAKEREADY_METRICS_LISTEN"]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as page:
            lines: list[str] = page.read().decode().splitlines()
        return lines

    return sum(
        float(line.rsplit(" ", 1)[1]) for line in await asyncio.to_thread(read) if re.match(rf"{name}[{{ ]", line)
    )


class Beside:
    """A client with known keys beside the hostile ones, on a connection of old and on new ones."""

    def __init__(self, gateway: Gateway, api: Api, keys: list[str]) -> None:
        self.answers: Counter[int] = Counter()
        self.slowest = 0.0
        self.peak = 0
        self.open_most = 0.0
        self._gateway = gateway
        self._api = api
        self._keys = itertools.cycle(keys)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        using = asyncio.create_task(self._use(stop))
        yield
        stop.set()
        await using

    async def _use(self, stop: asyncio.Event) -> None:
        old = await self._api.connect()
        while not stop.is_set():
            key, started = next(self._keys), time.monotonic()
            await old.send(self._api.bytes("GET", "/whoami", key))
            self.answers[(await old.receive()).status] += 1
            self.answers[(await self._api.get("/whoami", key)).status] += 1
            self.slowest = max(self.slowest, time.monotonic() - started)
            self.peak = max(self.peak, resident_bytes(self._gateway))
            self.open_most = max(self.open_most, await metric(self._gateway, "makeready_http_connections"))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 0.3)  # short: the time between two requests
        old.close()


@pytest.fixture
def enough_files() -> None:
    if sys.platform != "linux":
        lacks("linux", "only Linux answers on all of 127.0.0.0/8 and shows a process's memory in /proc")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + OTHER_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        lacks("open-files", f"a process may open {hard} files here, and {CONNECTIONS} connections need {needed}")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@contextlib.asynccontextmanager
async def hostile_clients(gateway: Gateway, authority: str, keys: list[str]) -> AsyncIterator[int]:
    """Holds all connections; yields how many could not be opened."""
    async with contextlib.AsyncExitStack() as at_the_end:
        clients = []
        for number in range(PROCESSES):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                str(Path(__file__).with_name("hostile_clients.py")),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdin is not None
            at_the_end.push_async_callback(process.wait)
            at_the_end.callback(process.stdin.close)
            plan = {
                "port": gateway.api_port,
                "first": number,
                "step": PROCESSES,
                "end": CONNECTIONS,
                "addresses": ADDRESSES,
                "authority": authority,
                "keys": keys,
            }
            process.stdin.write(json.dumps(plan).encode() + b"\n")
            clients.append(process)
        failed = 0
        for process in clients:
            assert process.stdout is not None
            failed += json.loads(await process.stdout.readline())["failed"]
        yield failed


def certificate(folder: Path) -> tuple[dict[str, str], str]:
    """The gateway's settings for TLS, and the authority that its clients trust."""
    made = trustme.CA()
    issued = made.issue_cert("localhost")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "cert.pem").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    settings = {
        "MAKEREADY_TLS_CERT_FILE": str(folder / "cert.pem"),
        "MAKEREADY_TLS_KEY_FILE": str(folder / "key.pem"),
    }
    return settings, made.cert_pem.bytes().decode()


@pytest.mark.usefixtures("enough_files")
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_hostile_connections_take_little_memory_and_no_answer_from_known_keys(
    harness: GatewayHarness, operator: Operator, company_id: int, tmp_path: Path, scheme: str
) -> None:
    settings, authority = certificate(tmp_path) if scheme == "https" else ({}, "")
    gateway = harness.gateway(settings)
    gateway.start()
    tls = ssl.create_default_context(cadata=authority) if authority else None
    await gateway.ready(tls=tls)
    api = Api(gateway.api_port, tls)
    keys = [await operator.key(company_id) for _ in range(max(4, CONNECTIONS // 400))]
    known = [await operator.key(company_id) for _ in range(4)]
    for key in known:
        assert (await api.get("/whoami", key)).status == 200
    at_rest = resident_bytes(gateway)

    beside = Beside(gateway, api, known)
    started = time.monotonic()
    async with beside.running(), hostile_clients(gateway, authority, keys) as failed:
        opened_in = time.monotonic() - started
        await asyncio.sleep(HELD_SECONDS)
        await comes_true(lambda: beside.answers.total() >= 10)
    gave_way = await metric(gateway, "makeready_http_budget_exceeded_total")
    refused = await metric(gateway, "makeready_http_connections_refused_total")

    async def have_gone() -> bool:
        return await metric(gateway, "makeready_http_connections") == 0

    def memory_is_back() -> bool:
        return resident_bytes(gateway) < at_rest + KEPT_BYTES

    def figures() -> str:
        return "\n".join(
            (
                f"{CONNECTIONS} hostile connections by {scheme} in {opened_in:.1f} s, {failed} failed; "
                f"{beside.open_most:.0f} at once, {gave_way:.0f} gave way, {refused:.0f} refused",
                f"resident MB: at rest {at_rest / 1e6:.0f}, at most {beside.peak / 1e6:.0f}, "
                f"afterwards {resident_bytes(gateway) / 1e6:.0f}",
                f"answers beside them {dict(beside.answers)}, slowest pair {beside.slowest:.2f} s",
            )
        )

    await eventually(have_gone)
    await comes_true(memory_is_back, figures)
    print("", figures(), sep="\n")  # noqa: T201 - the figures
    assert set(beside.answers) == {200}
    assert refused == 0
    assert beside.peak < min(MEMORY_BYTES_MAX, at_rest + BUDGETS + CONNECTIONS * BYTES_OF_A_CONNECTION)
    # With TLS the budgets hold fewer: a handshake or an unfinished request takes 40 KiB and more.
    assert beside.open_most >= (CONNECTIONS / 2 if scheme == "http" else min(CONNECTIONS / 2, 600))
    assert (await api.get("/whoami", known[0])).status == 200
    assert await gateway.stop() == 0
