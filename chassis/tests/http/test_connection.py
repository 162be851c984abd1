"""A connection's time limits and its end, over real sockets, with short waits."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from chassis.http import deadlines, replies
from chassis.http.bodies import BodyBroken
from chassis.http.connection import HttpConnection
from chassis.http.connection_limits import ConnectionLimits
from chassis.http.heads import LINE_BYTES_MAX
from chassis.http.port import Listening, Port
from chassis.http.replies import Reply
from chassis.http.requests import Request
from testkit.patience import comes_true
from testkit.processes import free_port
from testkit.raw_http import MALFORMED_CHUNKS, Api

from .envelope import BYTES_MAX, ERRORS, error

STALL_SECONDS, BODY_SECONDS = 0.4, 30
BIG = b'"' + b"x" * 20_000_000 + b'"'


class Answers:
    """Answers by path; counts the requests begun and finished."""

    def __init__(self) -> None:
        self.begun = 0
        self.finished = 0
        self.bodies: list[bytes] = []
        self.go_on = asyncio.Event()

    async def __call__(self, request: Request) -> Reply:
        self.begun += 1
        path, _ = request.target()
        try:
            if path == "/body":
                body = await request.body(BYTES_MAX)
                return replies.json(b"%d" % len(body))
            if path == "/wait":
                await self.go_on.wait()
                self.bodies.append(await request.body(BYTES_MAX))
            if path == "/big":
                return replies.json(BIG)
            if path == "/fault":
                raise RuntimeError("never of the edge")
        except BodyBroken as broken:
            return error(400, "invalid_request", f"The body can't be read: {broken}.")
        finally:
            self.finished += 1
        return replies.json(b"{}")


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IDLE_SECONDS", "HEAD_SECONDS", "BODY_SECONDS", "LINGER_SECONDS", "UNREAD_SECONDS"):
        monkeypatch.setattr(deadlines, name, 0.3)


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
async def port(answers: Answers) -> AsyncIterator[Port]:
    opened = Port(Listening("TEST_PORT", "127.0.0.1", free_port()), answers, ConnectionLimits(), ERRORS, STALL_SECONDS)
    await opened.open()
    yield opened
    answers.go_on.set()
    await opened.close()


@pytest.fixture
def api(port: Port) -> Api:
    return Api(port.number)


async def test_an_idle_connection_is_closed(api: Api) -> None:
    connection = await api.connect()
    assert await connection.is_closed()
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//"))
    assert (await connection.receive()).status == 200
    assert await connection.is_closed()


async def test_headers_that_come_too_slowly_are_answered(api: Api, answers: Answers) -> None:
    connection = await api.connect()
    for byte in b"GET / HTTP/1.1\r\nHost":
        await connection.send(bytes([byte]))
        await asyncio.sleep(0.02)
    response = await connection.receive()
    assert (response.status, response.code) == (400, "invalid_request")
    assert "slowly" in response.message
    assert await connection.is_closed()
    assert answers.begun == 0


async def test_a_body_that_comes_too_slowly_is_answered(api: Api) -> None:
    connection = await api.connect()
    await connection.send(b"POST /body HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n")
    response = asyncio.ensure_future(connection.receive())
    while not response.done():
        await connection.send(b"x")
        await asyncio.sleep(0.05)
    assert (response.result().status, response.result().code) == (400, "invalid_request")
    assert await connection.is_closed()


async def test_an_unread_body_may_not_keep_the_connection(api: Api) -> None:
    connection = await api.connect()
    await connection.send(b"GET / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n")
    assert (await connection.receive()).status == 200
    assert await connection.is_closed()


@pytest.mark.parametrize("before", [(), (b"2\r\nab\r\n",)], ids=["first", "second"])
@pytest.mark.parametrize("junk", MALFORMED_CHUNKS)
async def test_a_malformed_chunk_is_answered_when_its_body_has_paused_for_too_long(
    api: Api, monkeypatch: pytest.MonkeyPatch, before: tuple[bytes, ...], junk: bytes
) -> None:
    monkeypatch.setattr(deadlines, "BODY_SECONDS", BODY_SECONDS)
    connection = await api.connect()
    for part in (b"POST /body HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n", *before, junk):
        await connection.send(part)
        await asyncio.sleep(0.05)
    sent = time.monotonic()
    response = await connection.receive()
    assert time.monotonic() - sent < BODY_SECONDS / 2
    assert (response.status, response.code) == (400, "invalid_request")
    assert "malformed" in response.message
    assert await connection.is_closed()


async def test_a_body_may_pause_for_less_than_the_limit(api: Api, port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "BODY_SECONDS", 30)
    monkeypatch.setattr(port._http, "_stall_seconds", 20)
    connection = await api.connect()
    await connection.send(b"POST /body HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n")
    for byte in b"12345":
        await asyncio.sleep(STALL_SECONDS / 2)
        await connection.send(bytes([byte]))
    assert (await connection.receive()).body == b"5"


async def test_a_skipped_body_that_came_late_is_not_taken_for_headers(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "IDLE_SECONDS", 30)
    monkeypatch.setattr(deadlines, "LINGER_SECONDS", 2)
    connection = await api.connect()
    await connection.send(b"GET / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n")
    assert (await connection.receive()).status == 200
    await asyncio.sleep(0.1)
    await connection.send(b"0123456789")
    with pytest.raises(TimeoutError):  # far longer than HEAD_SECONDS
        await asyncio.wait_for(connection.reader.read(1), deadlines.HEAD_SECONDS + 2)
    await connection.send(api.bytes("GET", "//"))
    assert (await connection.receive()).status == 200


@pytest.mark.parametrize("count", [3, 200])
async def test_pipelined_requests_before_a_half_close_are_all_answered(api: Api, answers: Answers, count: int) -> None:
    """200 are more than aiohttp queues at a time."""
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//") * count)
    connection.writer.write_eof()
    for _ in range(count):
        assert (await connection.receive()).status == 200
    assert await connection.is_closed()
    assert answers.finished == count


async def test_a_request_before_a_half_close_may_take_its_time(api: Api, answers: Answers) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//") + api.bytes("GET", "//wait"))
    connection.writer.write_eof()
    assert (await connection.receive()).status == 200
    await asyncio.sleep(0.15)
    answers.go_on.set()
    assert (await connection.receive()).status == 200


async def test_a_request_behind_an_answer_that_is_read_late_is_not_a_slow_one(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "UNREAD_SECONDS", 30)
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//big"))
    await asyncio.sleep(0.2)
    await connection.send(api.bytes("GET", "//"))
    await asyncio.sleep(deadlines.HEAD_SECONDS + 1.5)
    assert (await connection.receive()).body == BIG
    assert (await connection.receive()).body == b"{}"


async def test_headers_that_are_broken_off_are_answered(api: Api, answers: Answers) -> None:
    response = await api.raw(b"GET / HTTP/1.1\r\nHost: te", then_eof=True)
    assert (response.status, response.code) == (400, "invalid_request")
    assert "ended" in response.message
    assert answers.begun == 0


async def test_too_long_a_line_has_an_answer_of_its_own(api: Api) -> None:
    response = await api.get("//", X_Long="x" * (LINE_BYTES_MAX + 1))
    assert f"longer than {LINE_BYTES_MAX} bytes" in response.message
    assert "longer than" not in (await api.raw(b"nonsense\r\n\r\n")).message


async def test_a_whole_body_can_be_read_even_where_its_client_has_left(api: Api, port: Port, answers: Answers) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("POST", "//wait", None, b"0123456789"))
    await comes_true(lambda: answers.begun == 1)
    connection.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()  # with a reset: the server sees at once that the client is gone
    await asyncio.sleep(0.05)
    answers.go_on.set()
    await comes_true(lambda: port.connections == 0)
    assert answers.bodies == [b"0123456789"]


def test_no_name_of_ours_hides_one_of_aiohttps() -> None:
    """aiohttp's protocol is the base class: a name that a later aiohttp adds would silently replace it."""
    mangled = f"_{HttpConnection.__name__}__"
    ours = {name for name in vars(HttpConnection) if not name.startswith((mangled, "__"))}
    overridden = {
        *("connection_made", "data_received", "eof_received", "connection_lost", "pause_reading", "resume_reading"),
        *("handle_error", "log_exception"),
    }
    assert ours & set(dir(web.RequestHandler)) == overridden
    assert ours - overridden == {
        *("drain", "feed", "look_at_the_clock", "respond", "sent", "was_made"),
    }


async def test_a_client_that_does_not_read_is_dropped_and_its_answer_forgotten(
    api: Api, port: Port, answers: Answers
) -> None:
    connection = await api.connect()
    connection.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    transport = connection.writer.transport
    assert isinstance(transport, asyncio.ReadTransport)
    transport.pause_reading()
    await connection.send(api.bytes("GET", "//big"))
    await comes_true(lambda: answers.begun == 1)
    await comes_true(lambda: port.connections == 0)


async def test_a_big_answer_arrives_whole_before_the_connection_closes(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "UNREAD_SECONDS", 30)
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//big", Connection="close"))
    response = await connection.receive()
    assert response.body == BIG
    assert await connection.is_closed()


async def test_a_fault_of_the_answer_closes_the_connection_alone(api: Api) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//fault"))
    assert (await connection.receive()).code == "internal_error"
    assert await connection.is_closed()
    assert (await api.get("//")).status == 200


async def test_closing_lets_the_request_under_way_finish(
    api: Api, port: Port, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "BODY_SECONDS", 30)
    monkeypatch.setattr(port._http, "_stall_seconds", 20)
    idle, busy, sending = [await api.connect() for _ in range(3)]
    await idle.send(api.bytes("GET", "//"))
    await idle.receive()
    await busy.send(api.bytes("GET", "//wait"))
    await sending.send(b"POST /body HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n12")
    await comes_true(lambda: answers.begun == 3)
    closing = asyncio.ensure_future(port.close())
    assert await idle.is_closed()
    with pytest.raises(ConnectionError):
        await api.connect()
    await sending.send(b"345")
    response = await sending.receive()
    assert (response.body, response.header("Connection")) == (b"5", "close")
    assert not closing.done()
    answers.go_on.set()
    response = await busy.receive()
    assert (response.status, response.header("Connection")) == (200, "close")
    assert await busy.is_closed()
    await closing


async def test_closing_waits_for_a_request_whose_client_left(api: Api, port: Port, answers: Answers) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//wait"))
    await comes_true(lambda: answers.begun == 1)
    connection.close()
    await asyncio.sleep(0.05)
    closing = asyncio.ensure_future(port.close())
    await asyncio.sleep(0.1)
    assert not closing.done()
    answers.go_on.set()
    await closing
    assert answers.finished == 1
