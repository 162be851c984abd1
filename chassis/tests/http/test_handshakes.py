"""TLS handshakes: whose turn it is, and what those take that do not end."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator

import pytest
import trustme
from prometheus_client import REGISTRY

from chassis.http import handshakes, replies
from chassis.http import port as ports
from chassis.http.connection_limits import HANDSHAKE_BYTES, KNOWN_CLIENTS_MAX, ConnectionLimits, Sizes
from chassis.http.handshakes import BEGUN_AT_ONCE, Handshakes
from chassis.http.port import Listening, Port
from chassis.http.replies import Reply
from chassis.http.requests import Request
from testkit.patience import PATIENCE_SECONDS, comes_true
from testkit.processes import free_port

from .envelope import ERRORS

PLACES = 4


def evicted() -> float:
    return REGISTRY.get_sample_value("makeready_http_budget_exceeded_total", {"budget": "handshakes"}) or 0.0


def hello() -> bytes:
    """The first message of a client."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


async def answer(request: Request) -> Reply:
    request.is_known = True
    return replies.json(b"{}")


class Served:
    """A port with TLS and few places for handshakes."""

    def __init__(self) -> None:
        self.authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.authority.issue_cert("localhost").configure_cert(context)
        self.limits = ConnectionLimits(sizes=Sizes(handshakes=PLACES * HANDSHAKE_BYTES))
        self.port = Port(Listening("TEST_PORT", "127.0.0.1", free_port(), context), answer, self.limits, ERRORS)

    async def begin(self, address: str, sent: bytes) -> asyncio.StreamWriter:
        """A client that sends this and nothing more."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.port.number, local_addr=(address, 0))
        writer.write(sent)
        return writer

    async def visit(self, address: str) -> None:
        """A client that ends its handshake and asks for something."""
        trust = ssl.create_default_context(cadata=self.authority.cert_pem.bytes().decode())
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", self.port.number, ssl=trust, server_hostname="localhost", local_addr=(address, 0)
            )
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    for module, name in ((handshakes, "SLOW_SECONDS"), (ports, "HANDSHAKE_SECONDS")):
        monkeypatch.setattr(module, name, 2 * PATIENCE_SECONDS)  # no end of them decides
    serving = Served()
    await serving.port.open()
    yield serving
    await serving.port.close()
    assert (serving.limits.connections, serving.limits.handshakes.total) == (0, 0)


async def test_half_a_hello_takes_no_place(served: Served) -> None:
    """A visitor from the same address is served next to more of them than there are places."""
    whole = hello()
    halves = (whole[:1], whole[:4], whole[:6], whole[:-1])
    hostile = [await served.begin("127.0.6.1", halves[number % 4]) for number in range(4 * PLACES)]
    await comes_true(lambda: served.port.connections == len(hostile))
    await served.visit("127.0.6.1")
    assert served.limits.handshakes.total == 0
    for writer in hostile:
        writer.close()
    await comes_true(lambda: served.port.connections == 0)


async def test_a_hello_may_come_in_pieces_and_what_is_none_is_closed(served: Served) -> None:
    whole = hello()
    writer = await served.begin("127.0.6.1", whole[:3])
    for begin, end in ((3, 5), (5, 40), (40, len(whole))):
        await asyncio.sleep(0.02)
        assert served.limits.handshakes.total == 0
        writer.write(whole[begin:end])
    await comes_true(lambda: served.limits.handshakes.total == HANDSHAKE_BYTES)
    writer.close()
    for junk in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(100), b"x"):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port.number)
        writer.write(junk)
        if len(junk) < 5:
            writer.write_eof()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reader.read()
        writer.close()
    await comes_true(lambda: served.port.connections == 0)


async def test_handshakes_that_do_not_end_keep_no_other_client_out(served: Served) -> None:
    before, whole = evicted(), hello()
    hostile = [await served.begin("127.0.5.1", whole) for _ in range(2 * PLACES)]
    limits, port = served.limits, served.port
    await comes_true(lambda: port.connections == 2 * PLACES and limits.handshakes.total == PLACES * HANDSHAKE_BYTES)
    await served.visit("127.0.5.2")
    assert evicted() == before + 1, "the oldest of those who have most was evicted"
    for writer in hostile:
        writer.close()
    await comes_true(lambda: port.connections == 0)

    # Where all have the same number, clients take turns.
    others = [await served.begin(f"127.0.5.{number}", whole) for number in range(1, PLACES + 1)]
    await comes_true(lambda: limits.handshakes.total == PLACES * HANDSHAKE_BYTES)
    hostile = [await served.begin("127.0.5.1", whole) for _ in range(4)]
    await comes_true(lambda: port.connections == PLACES + 4)
    visitor = asyncio.ensure_future(served.visit("127.0.5.5"))
    await comes_true(lambda: port.connections == PLACES + 5)
    others[1].close()
    others[2].close()
    await visitor
    assert evicted() == before + 1
    for writer in (*others, *hostile):
        writer.close()
    await comes_true(lambda: (port.connections, limits.connections, limits.handshakes.total) == (0, 0, 0))


async def test_a_handshake_that_is_evicted_before_its_first_step_is_not_counted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = served.port._begin

    def evict(accepted: socket.socket) -> asyncio.Task[None]:
        task = begin(accepted)
        task.cancel()
        return task

    monkeypatch.setattr(served.port._handshakes, "_begin", evict)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port.number)
    writer.write(hello())
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(1)
    await comes_true(lambda: (served.port.connections, served.limits.connections) == (0, 0))
    writer.close()


class Begun:
    """Handshakes that never end; which clients' have begun is noted in their order."""

    def __init__(self) -> None:
        self.limits = ConnectionLimits()
        self.handshakes = Handshakes(self.limits, self._begin)
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._clients: dict[socket.socket, str] = {}

    def _begin(self, accepted: socket.socket) -> asyncio.Task[None]:
        async def never_ends() -> None:
            await asyncio.Event().wait()

        self.order.append(self._clients[accepted])
        accepted.close()
        self.tasks.append(asyncio.get_running_loop().create_task(never_ends()))
        return self.tasks[-1]

    def wait(self, client: str) -> None:
        accepted = socket.socket()
        self._clients[accepted] = client
        self.handshakes.wait(accepted, client)


@pytest.fixture
async def begun() -> AsyncIterator[Begun]:
    counted = Begun()
    yield counted
    for task in counted.tasks:
        task.cancel()
    await asyncio.gather(*counted.tasks, return_exceptions=True)
    assert counted.limits.handshakes.total == 0


async def test_a_few_begin_in_each_turn_of_the_loop(begun: Begun) -> None:
    for number in range(10 * BEGUN_AT_ONCE):
        begun.wait(f"192.0.2.{number}")
    assert begun.order == []
    for turn in range(1, 11):
        await asyncio.sleep(0)
        assert len(begun.order) <= turn * BEGUN_AT_ONCE
    await comes_true(lambda: len(begun.order) == 10 * BEGUN_AT_ONCE)
    assert begun.handshakes.waiting == 0


async def test_known_clients_have_every_second_turn(begun: Begun) -> None:
    for client in ("known 1", "known 2"):
        begun.limits.recognise(client)
    for number in range(50):
        begun.wait(f"stranger {number}")
    for _ in range(5):
        begun.wait("known 1")
    begun.wait("known 2")
    await comes_true(lambda: len(begun.order) == 56)
    assert begun.order[:4] == ["known 1", "stranger 0", "known 2", "stranger 1"]
    assert sum(client.startswith("known") for client in begun.order[:12]) == 6
    assert begun.order[12:] == [f"stranger {number}" for number in range(6, 50)]


def test_so_many_clients_are_known_and_those_for_longest_are_forgotten() -> None:
    limits = ConnectionLimits()
    assert limits.is_known("") and not limits.is_known("192.0.2.1"), "proxies are trusted"
    limits.recognise("192.0.2.1")
    limits.recognise("192.0.2.2")
    limits.recognise("192.0.2.1")
    for number in range(KNOWN_CLIENTS_MAX - 1):
        limits.recognise(f"client {number}")
    assert limits.is_known("192.0.2.1") and not limits.is_known("192.0.2.2")
