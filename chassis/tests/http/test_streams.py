"""Answers in pieces, over real sockets: each piece as its client takes it, and never half an answer for a whole one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from chassis.http import deadlines, replies
from chassis.http.bodies import BodyBroken
from chassis.http.connection_limits import ConnectionLimits
from chassis.http.port import Listening, Port
from chassis.http.replies import Reply
from chassis.http.requests import Request
from testkit.patience import comes_true
from testkit.processes import free_port
from testkit.raw_http import Api

from .envelope import ERRORS, error

PIECE = b"x" * 100_000
MANY = 400


class Answers:
    """Streams by path."""

    def __init__(self) -> None:
        self.made = 0
        """How many pieces were taken."""
        self.ends: list[str] = []
        """How each stream ended."""
        self.largest = 0
        """The largest piece of a body."""
        self.waits, self.aborted = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: Request) -> Reply:
        path, _ = request.target()
        if path == "/plain":
            return replies.json(b"{}")
        if path == "/wait":
            self.waits.set()
            aborted = asyncio.Event()
            request.on_abort(aborted.set)
            await aborted.wait()
            self.aborted.set()
            return replies.json(b'{"waited":true}')
        if path == "/upload":
            return await self._taken(request)
        try:
            await request.stream(Reply(200, b""), self._pieces(path))
        except ConnectionError:
            self.ends.append("left")
            raise
        except RuntimeError:
            self.ends.append("fault")
            raise
        self.ends.append("whole")
        return Reply(200, b"")

    async def _taken(self, request: Request) -> Reply:
        size = 0
        try:
            async for piece in request.pieces(stall_seconds=0.4, seconds=30):
                size += len(piece)
                self.largest = max(self.largest, len(piece))
        except BodyBroken as broken:
            return error(400, "invalid_request", f"The body can't be read: {broken}.")
        return replies.json(b"%d" % size)

    async def _pieces(self, path: str) -> AsyncIterator[bytes]:
        yield b""
        for _ in range(MANY if path == "/many" else 3):
            self.made += 1
            yield PIECE
            await asyncio.sleep(0)
        if path == "/fault":
            raise RuntimeError("in the middle of it")


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def limits() -> ConnectionLimits:
    return ConnectionLimits()


@pytest.fixture
async def port(answers: Answers, limits: ConnectionLimits, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Port]:
    monkeypatch.setattr(deadlines, "UNREAD_SECONDS", 0.5)
    opened = Port(Listening("TEST_PORT", "127.0.0.1", free_port()), answers, limits, ERRORS)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def api(port: Port) -> Api:
    return Api(port.number)


async def test_a_streamed_answer_is_whole_and_its_connection_goes_on(api: Api, answers: Answers) -> None:
    connection = await api.connect()
    for _ in range(2):
        await connection.send(api.bytes("GET", "//few"))
        response = await connection.receive()
        assert (response.status, response.body) == (200, PIECE * 3)
        assert response.header("Content-Length") is None
    await connection.send(api.bytes("GET", "//plain"))
    assert (await connection.receive()).body == b"{}"
    assert answers.ends == ["whole", "whole"]


async def test_a_fault_in_the_middle_breaks_the_connection_off(api: Api, answers: Answers) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//fault"))
    with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
        await connection.receive()
    assert answers.ends == ["fault"]
    assert (await api.get("//plain")).status == 200


async def test_a_client_without_chunks_sees_the_end_of_a_whole_answer_and_a_reset_of_half_a_one(api: Api) -> None:
    for path, is_whole in (("/few", True), ("/fault", False)):
        connection = await api.connect()
        await connection.send(f"GET {path} HTTP/1.0\r\nHost: test\r\n\r\n".encode())
        if is_whole:
            head, _, body = (await connection.reader.read()).partition(b"\r\n\r\n")
            assert b"Transfer-Encoding" not in head and b"\r\nConnection: close" in head
            assert body == PIECE * 3
        else:
            with pytest.raises(ConnectionResetError):
                await connection.reader.read()


async def test_no_more_is_made_than_the_client_takes_and_one_that_takes_nothing_is_cut_off(
    api: Api, answers: Answers, port: Port
) -> None:
    connection = await api.connect()
    connection.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    transport = connection.writer.transport
    assert isinstance(transport, asyncio.ReadTransport)
    transport.pause_reading()
    await connection.send(api.bytes("GET", "//many"))
    await comes_true(lambda: answers.ends)
    assert answers.ends == ["left"]
    assert 0 < answers.made < MANY / 2  # the kernel's buffers hold some megabytes
    await comes_true(lambda: port.connections == 0)


async def test_a_client_that_leaves_ends_its_stream(api: Api, answers: Answers) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//many"))
    await connection.reader.readexactly(1000)
    connection.close()
    await comes_true(lambda: answers.ends)
    assert answers.ends == ["left"] and answers.made < MANY


async def test_a_wait_ends_when_its_client_leaves_or_sends_no_more(api: Api, answers: Answers) -> None:
    leaving = await api.connect()
    await leaving.send(api.bytes("GET", "//wait"))
    await comes_true(answers.waits.is_set)
    assert not answers.aborted.is_set()
    leaving.close()
    await comes_true(answers.aborted.is_set)
    answers.aborted.clear()
    # It may still read: its answer is sent.
    assert (await api.raw(api.bytes("GET", "//wait"), then_eof=True)).body == b'{"waited":true}'


async def test_a_wait_ends_when_the_gateway_stops(api: Api, port: Port, answers: Answers) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", "//plain") + api.bytes("GET", "//wait"))
    assert (await connection.receive()).body == b"{}"
    await comes_true(answers.waits.is_set)
    closing = asyncio.ensure_future(port.close())
    response = await connection.receive()
    assert (response.body, response.header("Connection")) == (b'{"waited":true}', "close")
    await closing


async def test_the_answer_to_head_has_no_pieces(api: Api, answers: Answers) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("HEAD", "//few") + api.bytes("GET", "//plain"))
    head = await connection.reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert (await connection.receive()).body == b"{}"
    assert answers.made == 0


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunks"])
async def test_a_body_in_pieces_may_be_longer_than_a_budget_and_holds_little(
    api: Api, answers: Answers, limits: ConnectionLimits, monkeypatch: pytest.MonkeyPatch, is_chunked: bool
) -> None:
    monkeypatch.setattr(limits.unfinished, "_most", 200_000)
    connection = await api.connect()
    framing = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(PIECE) * 40}"
    await connection.send(f"POST /upload HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n".encode())
    for number in range(40):
        await connection.send(b"%x\r\n%b\r\n" % (len(PIECE), PIECE) if is_chunked else PIECE)
        if number == 20:  # others come and are evicted, and it is not
            for _ in range(3):
                other = await api.connect()
                await other.send(b"POST /upload HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 30_000)
    await connection.send(b"0\r\n\r\n" if is_chunked else b"")
    assert (await connection.receive()).body == b"%d" % (len(PIECE) * 40)
    assert answers.largest < 300_000
    await connection.send(api.bytes("GET", "//plain"))
    assert (await connection.receive()).body == b"{}"


async def test_a_body_in_pieces_may_not_pause_for_long(api: Api) -> None:
    connection = await api.connect()
    await connection.send(b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50_000)
    response = await connection.receive()
    assert response.status == 400 and "slowly" in response.message
    assert await connection.is_closed()


async def test_a_small_body_is_one_piece(api: Api) -> None:
    assert (await api.request("POST", "//upload", None, b"x" * 100)).body == b"100"
