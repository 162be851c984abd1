"""Thousands of hostile connections of four kinds at once, without and with a key: the gateway stays small, known keys
are answered beside them, and the memory goes back when they have gone.

The suite opens 400 of them, MAKEREADY_HOSTILE_CONNECTIONS says how many (`make hostile`: 5,000, which take minutes).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import socket
import ssl
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trustme

from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.raw_http import Api

CONNECTIONS = int(os.environ.get("MAKEREADY_HOSTILE_CONNECTIONS", "400"))
MEMORY_BYTES_MAX = 200_000_000
# Of 127.0.0.0/8: no one has as many connections as the cap by address.
ADDRESSES = 100
AT_ONCE = 40
ROUNDS = 5
OTHER_FILES = 500

if sys.platform != "linux":
    pytest.skip(
        "only Linux answers on all of 127.0.0.0/8 and shows a process's memory in /proc", allow_module_level=True
    )


def resident_bytes(gateway: Gateway) -> int:
    assert gateway.process is not None
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{gateway.process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def metric(gateway: Gateway, name: str) -> float:
    """The sum over a metric's labels."""
    with urllib.request.urlopen(
        f"http://{gateway.environment['MAKEREADY_METRICS_LISTEN']}/metrics", timeout=10
    ) as page:
        lines = page.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{name}[{{ ]", line))


class Hostile:
    """One client that holds a connection, and how."""

    def __init__(self, kind: str, number: int, port: int, tls: ssl.SSLContext, key: str) -> None:
        self.kind = kind
        self.port = port
        self.key = key
        self.tls = None if kind == "handshake" else tls
        self.address = f"127.{number % ADDRESSES // 250}.{number % ADDRESSES + 2}.1"
        self.writer: asyncio.StreamWriter | None = None
        self.reader: asyncio.StreamReader | None = None
        self.number = number

    async def open(self) -> None:
        one = socket.socket()
        one.setblocking(False)
        if self.kind == "unread":
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.bind((self.address, 0))
        await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", self.port))
        name = "localhost" if self.tls else None
        self.reader, self.writer = await asyncio.open_connection(sock=one, ssl=self.tls, server_hostname=name)
        await self._begin()

    async def _begin(self) -> None:
        assert self.writer is not None
        if self.kind == "handshake":
            if self.number % 2:  # the others send nothing at all
                self.writer.write(bytes.fromhex("1603010200010001fc0303") + bytes(100))
        elif self.kind == "head":
            self.writer.write(
                b"GET /api/v1/whoami HTTP/1.1\r\nHost: a\r\n"
                + (b"X-A: " + b"x" * 8100 + b"\r\n") * (3 if self.number % 4 else 95)
            )
        elif self.kind == "body":
            key = f"Authorization: Bearer {self.key}\r\nIdempotency-Key: k{self.number}\r\n"
            head = f"POST /api/v1/tickets HTTP/1.1\r\nHost: a\r\n{key}Content-Length: 262144\r\n\r\n"
            self.writer.write(head.encode() + b'{"title": "' + b"x" * 100_000)
        else:
            assert isinstance(self.writer.transport, asyncio.ReadTransport)
            self.writer.transport.pause_reading()
            self.writer.write(b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: a\r\n\r\n")

    def go_on(self) -> None:
        """Sends a little more, for the connection not to seem idle."""
        assert self.writer is not None
        if not self.writer.is_closing():
            self.writer.write({"head": b"X-B: 1\r\n", "body": b"x"}.get(self.kind, b""))

    def close(self) -> None:
        if self.writer is not None:
            self.writer.transport.abort()


async def in_turns(work: Callable[[Hostile], Awaitable[None]], all_of_them: list[Hostile]) -> int:
    """How many failed."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(hostile: Hostile) -> bool:
        async with room:
            try:
                async with asyncio.timeout(30):
                    await work(hostile)
            except (OSError, TimeoutError):
                return True
            return False

    return sum(await asyncio.gather(*map(one, all_of_them)))


@pytest.fixture
def enough_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + OTHER_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"a process may open {hard} files here, and {CONNECTIONS} connections need {needed}")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@pytest.mark.usefixtures("enough_files")
async def test_hostile_connections_take_little_memory_and_no_answer_from_known_keys(  # noqa: PLR0915 - one story
    harness: GatewayHarness, operator: Operator, company_id: int, tmp_path: Path
) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    (tmp_path / "cert.pem").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    client_tls = ssl.create_default_context()
    authority.configure_trust(client_tls)
    gateway = harness.gateway(
        MAKEREADY_TLS_CERT_FILE=str(tmp_path / "cert.pem"), MAKEREADY_TLS_KEY_FILE=str(tmp_path / "key.pem")
    )
    gateway.start()
    async with asyncio.timeout(30):
        while "port_open" not in (gateway.log.read_text() if gateway.log.exists() else ""):  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.05)
    api = Api(gateway.api_port, client_tls)
    assert (await api.get("/whoami", await operator.key(company_id))).status == 200
    at_rest = resident_bytes(gateway)

    keys = [await operator.key(company_id) for _ in range(max(1, CONNECTIONS // 400))]
    kinds = ("head", "body", "unread", "handshake")
    hostile = [
        Hostile(kinds[n % 4], n // 4, gateway.api_port, client_tls, keys[n // 4 % len(keys)])
        for n in range(CONNECTIONS)
    ]
    known = await operator.key(company_id)
    kept = await api.connect()
    stop = asyncio.Event()
    seen: Counter[int] = Counter()
    slowest = peak = 0.0
    open_most = 0.0

    async def use() -> None:
        """Somebody with a known key, on a connection of old and on new ones."""
        nonlocal slowest, peak, open_most
        while not stop.is_set():
            started = time.monotonic()
            await kept.send(api.bytes("GET", "/whoami", known))
            seen[(await kept.receive()).status] += 1
            seen[(await api.get("/whoami", known)).status] += 1
            slowest = max(slowest, time.monotonic() - started)
            peak = max(peak, resident_bytes(gateway))
            open_most = max(open_most, await asyncio.to_thread(metric, gateway, "makeready_http_connections"))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 1)

    using = asyncio.create_task(use())
    started = time.monotonic()
    failed = await in_turns(Hostile.open, hostile)
    opened_in = time.monotonic() - started
    for _ in range(ROUNDS):
        for one in hostile:
            if one.writer is not None:
                one.go_on()
        await asyncio.sleep(1)
    stop.set()
    await using
    gave_way = await asyncio.to_thread(metric, gateway, "makeready_http_budget_exceeded_total")
    refused = await asyncio.to_thread(metric, gateway, "makeready_http_connections_refused_total")
    for one in hostile:
        one.close()
    after = peak
    async with asyncio.timeout(60):
        while await asyncio.to_thread(metric, gateway, "makeready_http_connections") > 1:  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.2)
        await asyncio.sleep(7)  # memory goes back once in 5 s
        after = resident_bytes(gateway)
    memory = f"at rest {at_rest / 1e6:.0f}, at most {peak / 1e6:.0f}, afterwards {after / 1e6:.0f}"
    print(  # noqa: T201 - the figures
        f"\n{CONNECTIONS} hostile connections in {opened_in:.0f} s, {failed} failed; {open_most:.0f} at once",
        f"gave way {gave_way:.0f}, refused {refused:.0f}; resident MB: {memory}",
        f"answers beside them {dict(seen)}, slowest pair {slowest:.2f} s",
        sep="\n",
    )
    assert set(seen) == {200} and seen[200] >= 2 * ROUNDS
    assert open_most >= min(CONNECTIONS / 4, 500)  # the others have been answered and closed
    assert refused == 0
    assert peak < MEMORY_BYTES_MAX
    assert after < at_rest + max(20_000_000, (peak - at_rest) / 2)
    assert (await api.get("/whoami", known)).status == 200
    assert await gateway.stop() == 0
