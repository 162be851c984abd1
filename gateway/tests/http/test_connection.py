"""A connection's clocks and its end, over real sockets, with waits made short."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from gateway.http import connection as module
from gateway.http import replies
from gateway.http.connection import Request
from gateway.http.ports import Port
from gateway.http.replies import Reply
from testkit.processes import free_port
from testkit.raw_http import Api

BIG = b'"' + b"x" * 20_000_000 + b'"'


class Answers:
    """Answers by path; counts what was begun and what was finished."""

    def __init__(self) -> None:
        self.begun = 0
        self.finished = 0
        self.go_on = asyncio.Event()

    async def __call__(self, request: Request) -> Reply:
        self.begun += 1
        path, _ = request.target()
        try:
            if path == "/body":
                body = await request.body()
                return replies.json(b"%d" % len(body))
            if path == "/wait":
                await self.go_on.wait()
            if path == "/big":
                return replies.json(BIG)
            if path == "/fault":
                raise RuntimeError("never of the edge")
        except module.BodyBroken as broken:
            return replies.error(400, "invalid_request", f"The body can't be read: {broken}.")
        finally:
            self.finished += 1
        return replies.json(b"{}")


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IDLE_SECONDS", "HEAD_SECONDS", "BODY_SECONDS", "LINGER_SECONDS", "UNREAD_SECONDS"):
        monkeypatch.setattr(module, name, 0.3)


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
async def port(answers: Answers) -> AsyncIterator[Port]:
    opened = Port("TEST_PORT", "127.0.0.1", free_port(), answers, None)
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


async def test_a_body_that_nobody_reads_may_not_keep_the_connection(api: Api) -> None:
    connection = await api.connect()
    await connection.send(b"GET / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n")
    assert (await connection.receive()).status == 200
    assert await connection.is_closed()


async def test_a_client_that_does_not_read_is_dropped_and_its_answer_forgotten(api: Api, port: Port) -> None:
    connection = await api.connect()
    connection.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.reader._transport.pause_reading()  # type: ignore[attr-defined]
    await connection.send(api.bytes("GET", "//big"))
    await asyncio.sleep(0.1)
    assert port.connections == 1
    async with asyncio.timeout(5):
        while port.connections:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)


async def test_a_big_answer_arrives_whole_before_the_connection_closes(api: Api) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//big", Connection="close"))
    response = await connection.receive()
    assert response.body == BIG
    assert await connection.is_closed()


async def test_a_fault_of_the_answer_closes_the_connection_alone(api: Api) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//fault"))
    assert await connection.is_closed()
    assert (await api.get("//")).status == 200


async def test_closing_lets_the_request_under_way_finish(api: Api, port: Port, answers: Answers) -> None:
    idle, busy, sending = [await api.connect() for _ in range(3)]
    await idle.send(api.bytes("GET", "//"))
    await idle.receive()
    await busy.send(api.bytes("GET", "//wait"))
    await sending.send(b"POST /body HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n12")
    await asyncio.sleep(0.05)
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
    await asyncio.sleep(0.05)
    connection.close()
    await asyncio.sleep(0.05)
    closing = asyncio.ensure_future(port.close())
    await asyncio.sleep(0.1)
    assert not closing.done()
    answers.go_on.set()
    await closing
    assert answers.finished == 1
