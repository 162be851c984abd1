"""Who may come in, and who is evicted: the caps and the budgets."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator
from functools import partial

import pytest
import trustme
from prometheus_client import REGISTRY

from chassis.http import connection_limits as module
from chassis.http import deadlines, holder, replies
from chassis.http.bodies import BodyBroken
from chassis.http.connection_limits import Budget, ConnectionLimits
from chassis.http.port import Listening, Port
from chassis.http.replies import Reply
from chassis.http.requests import Request
from chassis.runtime.settings import Environment, SettingsError, networks, trusted_proxies
from testkit.patience import comes_true
from testkit.processes import free_port
from testkit.raw_http import Api, RawConnection

from .envelope import BYTES_MAX, ERRORS, error


def exceeded(budget: str) -> float:
    return REGISTRY.get_sample_value("makeready_http_budget_exceeded_total", {"budget": budget}) or 0.0


def refused(cap: str) -> float:
    return REGISTRY.get_sample_value("makeready_http_connections_refused_total", {"cap": cap}) or 0.0


def test_who_held_longest_is_evicted_until_the_rest_fits() -> None:
    gone: list[str] = []
    budget = Budget("test", 100)
    holders = {name: (lambda name=name: gone.append(name)) for name in "abc"}
    budget.hold(holders["a"], 40)
    budget.hold(holders["b"], 40)
    budget.hold(holders["a"], 50)
    assert (gone, budget.total) == ([], 90)
    budget.hold(holders["c"], 70)
    assert (gone, budget.total) == (["a", "b"], 70)
    budget.hold(holders["c"], 170)
    assert (gone, budget.total) == (["a", "b"], 170), "one that is alone may hold more: it is one answer"
    budget.release(holders["c"])
    budget.release(holders["c"])
    assert budget.total == 0


@pytest.mark.parametrize(
    ("forwarded_for", "client"),
    [
        ([], ""),
        ([""], ""),
        (["203.0.113.7"], "203.0.113.7"),
        (["198.51.100.1, 203.0.113.7"], "203.0.113.7"),
        (["203.0.113.7, 10.1.2.3, 10.9.9.9"], "203.0.113.7"),
        (["198.51.100.1", "203.0.113.7 , 10.1.2.3"], "203.0.113.7"),
        (["10.1.2.3"], ""),
        (["203.0.113.7:4711"], "203.0.113.7"),
        (["[2001:db8:1:2:3::4]:4711"], "2001:db8:1:2::/64"),
        (["2001:db8:1:2:ffff::1"], "2001:db8:1:2::/64"),
        (["::ffff:203.0.113.7"], "203.0.113.7"),
        (["203.0.113.7, nonsense"], "unknown"),
        (["203.0.113.7, ", ""], "203.0.113.7"),
    ],
)
def test_the_rightmost_address_that_is_no_trusted_proxys_is_the_client(forwarded_for: list[str], client: str) -> None:
    assert (
        ConnectionLimits(trusted_proxies=networks("10.0.0.0/8, 2001:db8:ffff::/48")).client_behind_proxy(forwarded_for)
        == client
    )


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "address"),
    [
        ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"),
        ("::ffff:203.0.113.7", [], "203.0.113.7"),
        ("fe80::1%eth0", [], "fe80::1"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", ["198.51.100.1, 203.0.113.7"], "203.0.113.7"),
        ("10.1.2.3", ["203.0.113.7", "10.9.9.9"], "203.0.113.7"),
        ("10.1.2.3", ["[2001:db8:1:2:3::4]:4711"], "2001:db8:1:2:3::4"),
        ("10.1.2.3", ["<script>"], "10.1.2.3"),
        ("10.1.2.3", ["203.0.113.7, ", ""], "203.0.113.7"),
    ],
)
def test_a_request_comes_from_the_client_that_trusted_proxies_speak_for(
    peer: str, forwarded_for: list[str], address: str
) -> None:
    assert ConnectionLimits(trusted_proxies=networks("10.0.0.0/8")).client_address(peer, forwarded_for) == address


def test_connections_are_counted_in_all_and_by_address() -> None:
    limits = ConnectionLimits(connections_max=4, per_address_max=2, trusted_proxies=networks("10.0.0.0/8"))
    assert [limits.enter("192.0.2.1") for _ in range(3)] == ["192.0.2.1", "192.0.2.1", None]
    assert [limits.enter("10.0.0.1"), limits.enter("::ffff:10.0.0.2")] == ["", ""]
    before = refused("all")
    assert limits.enter("192.0.2.2") is None
    assert refused("all") == before + 1
    limits.leave("")
    limits.leave("192.0.2.1")
    assert limits.enter("192.0.2.1") == "192.0.2.1"
    assert limits.connections == 3


def test_memory_goes_back_once_the_last_of_many_has_gone() -> None:
    """Also where the clock strikes while a crowd is leaving, and too few for another time are left."""
    limits = ConnectionLimits(trusted_proxies=networks("10.0.0.0/8"))

    def leave(count: int) -> None:
        for _ in range(count):
            limits.leave("")

    for _ in range(300):
        limits.enter("10.0.0.1")
    assert not limits.has_memory_to_give_back(1)
    leave(210)
    assert not limits.has_memory_to_give_back(2)  # they are still leaving
    leave(90)
    assert not limits.has_memory_to_give_back(3)
    assert limits.has_memory_to_give_back(4)
    assert not limits.has_memory_to_give_back(10)

    for _ in range(module.TRIM_AFTER_CONNECTIONS - 1):
        limits.enter("10.0.0.1")
    leave(module.TRIM_AFTER_CONNECTIONS - 1)
    assert not any(limits.has_memory_to_give_back(now) for now in (11, 12, 13))  # too few to be worth it


def test_memory_goes_back_at_most_once_in_5_seconds() -> None:
    limits = ConnectionLimits()
    answers = []
    for now in range(1, 13):
        limits.tls.evict(lambda: None)
        answers.append(limits.has_memory_to_give_back(now))
    assert [now for now, due in enumerate(answers, 1) if due] == [1, 6, 11]


@pytest.mark.parametrize("text", ["nonsense", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8;::1"])
def test_bad_networks_stop_the_start_with_one_line(text: str) -> None:
    with pytest.raises(SettingsError, match="MAKEREADY_TRUSTED_PROXIES"):
        trusted_proxies(Environment({"MAKEREADY_TRUSTED_PROXIES": text}))


class Answers:
    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, request: Request) -> Reply:
        path, _ = request.target()
        try:
            if path.startswith("/known"):
                request.is_known = True
            if path.endswith("/wait"):
                await self.go_on.wait()
            if path == "/big":
                return replies.json(b"x" * 8_000_000)
            if path == "/medium":
                return replies.json(b"x" * 20_000)
            if path == "/shared":
                return Reply(200, SHARED, is_shared=True)
            if path.endswith("/body") or path == "/known/wait":
                return replies.json(b"%d" % len(await request.body(BYTES_MAX)))
        except BodyBroken as broken:
            return error(400, "invalid_request", f"The body can't be read: {broken}.")
        return replies.json(b"{}")


SHARED = b"x" * 8_000_000


@pytest.fixture
def limits() -> ConnectionLimits:
    return ConnectionLimits(connections_max=30, per_address_max=5, trusted_proxies=networks("127.9.0.0/16"))


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
async def port(answers: Answers, limits: ConnectionLimits) -> AsyncIterator[Port]:
    opened = Port(Listening("TEST_PORT", "127.0.0.1", free_port()), answers, limits, ERRORS)
    await opened.open()
    yield opened
    answers.go_on.set()
    await opened.close()
    await comes_true(lambda: limits.connections == 0)
    assert (limits.connections, limits.unfinished.total, limits.unread.total) == (0, 0, 0)
    assert limits.count("127.0.0.1") and limits._by_address == {"127.0.0.1": 1}


@pytest.fixture
def api(port: Port) -> Api:
    return Api(port.number)


async def connect(port: Port, address: str, receive_bytes: int = 0) -> RawConnection:
    client_socket = socket.socket()
    client_socket.setblocking(False)
    if receive_bytes:
        client_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client_socket.bind((address, 0))
    await asyncio.get_running_loop().sock_connect(client_socket, ("127.0.0.1", port.number))
    return RawConnection(*await asyncio.open_connection(sock=client_socket))


async def unreading(port: Port, address: str) -> RawConnection:
    """A client that reads nothing until its transport resumes."""
    reader = await connect(port, address, 4096)
    assert isinstance(reader.writer.transport, asyncio.ReadTransport)
    reader.writer.transport.pause_reading()
    return reader


async def test_a_connection_over_the_cap_of_its_address_is_closed_unanswered_and_counted(port: Port, api: Api) -> None:
    before = refused("address")
    open_ones = [await connect(port, "127.0.0.7") for _ in range(5)]
    extra = await connect(port, "127.0.0.7")
    assert await extra.is_closed()
    assert refused("address") == before + 1
    assert (await api.get("//")).status == 200  # another address
    for connection in open_ones:
        await connection.send(api.bytes("GET", "//"))
        assert (await connection.receive()).status == 200
    open_ones.pop().close()
    await comes_true(lambda: port.connections == 4)
    again = await connect(port, "127.0.0.7")
    await again.send(api.bytes("GET", "//"))
    assert (await again.receive()).status == 200


async def test_a_trusted_proxy_has_no_cap_but_the_clients_it_speaks_for_have(
    port: Port, api: Api, answers: Answers
) -> None:
    waiting = [await connect(port, "127.9.0.1") for _ in range(5)]
    for connection in waiting:
        await connection.send(api.bytes("GET", "//wait", X_Forwarded_For="198.51.100.66, 203.0.113.7, 127.9.3.3"))
    await asyncio.sleep(0.2)
    before = refused("address")
    sixth = await connect(port, "127.9.0.1")
    await sixth.send(api.bytes("GET", "//", X_Forwarded_For="203.0.113.7"))
    assert await sixth.is_closed()
    assert refused("address") == before + 1
    for client in ("203.0.113.8", "", "127.9.0.9"):
        other = await connect(port, "127.9.0.1")
        await other.send(api.bytes("GET", "//", X_Forwarded_For=client))
        assert (await other.receive()).status == 200
    answers.go_on.set()
    for connection in waiting:
        assert (await connection.receive()).status == 200
    again = await connect(port, "127.9.0.1")
    await again.send(api.bytes("GET", "//", X_Forwarded_For="203.0.113.7"))
    assert (await again.receive()).status == 200


async def test_forwarded_for_of_anybody_else_does_not_count(port: Port, api: Api) -> None:
    open_ones = [await connect(port, "127.0.0.8") for _ in range(5)]
    for number, connection in enumerate(open_ones):
        await connection.send(api.bytes("GET", "//", X_Forwarded_For=f"203.0.113.{number}"))
        assert (await connection.receive()).status == 200
    assert await (await connect(port, "127.0.0.8")).is_closed()


async def test_unfinished_requests_are_evicted_with_an_answer_the_oldest_first(
    port: Port, api: Api, limits: ConnectionLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits.unfinished, "_most", 60_000)
    head = await connect(port, "127.0.0.2")
    await head.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000)
    body = await connect(port, "127.0.0.3")
    await body.send(b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 30_000)
    await comes_true(lambda: limits.unfinished.total >= 50_000)
    assert (await api.request("POST", "//body", None, b"x" * 200)).body == b"200"
    last = await connect(port, "127.0.0.4")
    await last.send(b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n" + b"x" * 39_000)
    for connection in (head, body):
        response = await connection.receive()
        assert (response.status, response.code) == (400, "invalid_request")
        assert "too many requests are arriving" in response.message
        assert await connection.is_closed()
    await last.send(b"x" * 1000)
    assert (await last.receive()).body == b"40000"


@pytest.mark.parametrize("path", ["/wait", "/body", "/known/wait", "/known/body"])
async def test_an_evicted_body_is_not_kept(
    port: Port, limits: ConnectionLimits, answers: Answers, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """While a look-up is under way or the body is read, with and without a known caller."""
    monkeypatch.setattr(limits.unfinished, "_most", 150_000)
    before = exceeded("unfinished_requests")
    marker = os.urandom(8)
    clients = []
    for number in range(3):
        clients.append(await connect(port, f"127.0.7.{number + 1}"))
        await clients[-1].send(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n".encode())
        await clients[-1].send(marker * 12_500)
        await comes_true(partial(others_were_evicted, limits, before + number))
    for _ in range(10):  # turns of the loop: those that were evicted linger for 2 s, and only then are gone
        await asyncio.sleep(0)
    assert (kept(marker), limits.connections) == (100_000, 3)
    answers.go_on.set()
    for evicted in clients[:2]:
        assert "too many requests are arriving" in (await evicted.receive()).message
    clients[2].close()


def others_were_evicted(limits: ConnectionLimits, for_others: float) -> bool:
    """Whether one body of 100,000 bytes is left."""
    return (exceeded("unfinished_requests"), limits.unfinished.total) == (for_others, 100_000)


def kept(marker: bytes) -> int:
    """The bytes of this process's texts that contain the marker."""
    objects = {
        id(content): content
        for holder in gc.get_objects()
        for content in gc.get_referents(holder)
        if isinstance(content, bytes)
    }
    return sum(len(content) for content in objects.values() if len(content) > len(marker) and marker in content)


async def test_a_reader_that_was_told_of_more_when_its_body_is_evicted_is_told_the_end(
    port: Port, limits: ConnectionLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits.unfinished, "_most", 60_000)
    first, second = [await connect(port, f"127.0.8.{number}") for number in (1, 2)]
    head = b"POST /known/body HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
    await first.send(head + b"x" * 30_000)
    await second.send(head + b"x" * 2000)
    await comes_true(lambda: limits.unfinished.total == 32_000)
    # Both arrive in the same turn of the loop: the first's reader has been told when the second evicts it.
    await asyncio.gather(first.send(b"x" * 1000), second.send(b"x" * 40_000))
    assert "too many requests are arriving" in (await first.receive()).message
    second.close()


async def test_nothing_waits_for_the_rest_of_a_body_whose_client_has_left(port: Port, limits: ConnectionLimits) -> None:
    """aiohttp reads what is left of a body that was answered, for 2 s."""
    client = await connect(port, "127.0.0.6")
    await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + b"x" * 30_000)
    assert (await client.receive()).status == 200
    client.close()
    await comes_true(lambda: limits.connections == 0)
    for _ in range(10):  # turns of the loop
        await asyncio.sleep(0)
    assert port.connections == 0


@pytest.mark.parametrize(("path", "always"), [("/", holder.TLS_BYTES), ("/known/body", 0)])
async def test_with_tls_a_large_burst_counts_until_the_connection_ends(
    answers: Answers, monkeypatch: pytest.MonkeyPatch, path: str, always: int
) -> None:
    """Of known clients too. The oldest is evicted as soon as there are too many, also one whose body was not read."""
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    limits = ConnectionLimits()
    port = Port(Listening("TEST_PORT", "127.0.0.1", free_port(), context), answers, limits, ERRORS)
    await port.open()
    api = Api(port.number, ssl.create_default_context(cadata=authority.cert_pem.bytes().decode()))
    small, large = (api.bytes("POST", f"/{path}", body=b"x" * size) for size in (100, 100_000))
    first = await api.connect()
    await first.send(small)
    assert (await first.receive()).status == 200
    assert limits.tls.total == always
    await first.send(large)
    assert (await first.receive()).status == 200
    counted = limits.tls.total
    assert counted > always + holder.BURST_COPIES * holder.SMALL_BURST_BYTES
    await first.send(small)
    assert (await first.receive()).status == 200
    assert limits.tls.total == counted

    monkeypatch.setattr(limits.tls, "_most", counted + holder.TLS_BYTES)
    second = await api.connect()
    await second.send(large)
    assert await first.is_closed()
    assert (await second.receive()).status == 200
    second.close()
    await comes_true(lambda: (limits.connections, limits.tls.total) == (0, 0))
    await port.close()


async def test_large_heads_that_wait_for_a_look_up_are_evicted_with_an_answer(
    port: Port, api: Api, limits: ConnectionLimits, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits.unfinished, "_most", 100_000)
    waiting = []
    for number in range(3):
        connection = await connect(port, f"127.0.3.{number + 1}")
        await connection.send(api.bytes("GET", "//wait", X_Large="x" * 8000, X_More="x" * 8000))
        waiting.append(connection)
        await comes_true(lambda number=number: limits.unfinished.total >= 40_000 * min(number + 1, 2))  # type: ignore[misc]
    response = await waiting[0].receive()
    assert (response.status, response.code) == (400, "invalid_request")
    assert "too many requests are arriving" in response.message
    assert await waiting[0].is_closed()
    answers.go_on.set()
    for connection in waiting[1:]:
        assert (await connection.receive()).status == 200


async def test_small_answers_that_are_not_read_are_counted(port: Port, api: Api, limits: ConnectionLimits) -> None:
    reader = await unreading(port, "127.0.4.1")
    reader.writer.write(api.bytes("GET", "//medium") * 500)
    await comes_true(lambda: limits.unread.total > 20_000)
    assert isinstance(reader.writer.transport, asyncio.ReadTransport)
    reader.writer.transport.resume_reading()
    for _ in range(500):
        assert len((await reader.receive()).body) == 20_000
    assert limits.unread.total == 0


async def test_answers_that_are_not_read_are_evicted_and_a_page_for_all_takes_no_memory(
    port: Port, api: Api, limits: ConnectionLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits.unread, "_most", 20_000_000)
    readers = []
    for number in range(3):
        reader = await unreading(port, f"127.0.1.{number + 1}")
        await reader.send(api.bytes("GET", "//big"))
        readers.append(reader)
        await comes_true(lambda number=number: limits.unread.total > 8_000_000 * min(number + 1, 2))  # type: ignore[misc]
    await comes_true(lambda: port.connections == 2)
    for number in range(10):
        reader = await unreading(port, f"127.0.1.{number + 1}")
        await reader.send(api.bytes("GET", "//shared"))
        readers.append(reader)
    await comes_true(lambda: port.connections == 12)
    await asyncio.sleep(0.2)
    assert limits.unread.total < 17_000_000
    for reader in readers[1:3]:
        assert isinstance(reader.writer.transport, asyncio.ReadTransport)
        reader.writer.transport.resume_reading()
        assert len((await reader.receive()).body) == 8_000_000
    for reader in readers:  # the port's close would wait for those that read nothing
        reader.close()


async def test_what_is_sent_ahead_stays_unread_until_it_is_its_turn(
    port: Port, api: Api, answers: Answers, limits: ConnectionLimits
) -> None:
    """A request under way lets its connection take in one read at most."""
    ahead = await connect(port, "127.0.0.2")
    ahead.writer.transport.set_write_buffer_limits(high=0)
    ahead.writer.write(api.bytes("GET", "//wait") + api.bytes("GET", "//") * 100_000)
    await asyncio.sleep(0.5)
    assert limits.unfinished.total < 300_000
    answers.go_on.set()
    for _ in range(2000):
        assert (await ahead.receive()).status == 200
    ahead.close()


async def test_silent_connections_are_closed_when_their_time_is_over(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "IDLE_SECONDS", 0.2)
    started = time.monotonic()
    assert await (await connect(port, "127.0.0.2")).is_closed()
    assert time.monotonic() - started < 10
    assert port.connections == 0


def test_the_budgets_fit_the_memory_of_a_pod() -> None:
    """Together with 100 MB at rest, and 45 MB for connections by themselves, they are less than 200 MB."""
    assert module.Sizes().total < 55_000_000
