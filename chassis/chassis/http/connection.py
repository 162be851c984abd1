"""One HTTP/1.1 connection on aiohttp's own server protocol: whatever bytes arrive, the answer is in the error envelope.

aiohttp parses, queues pipelined requests, applies backpressure and keeps connections alive. Only its public server
classes are used. This module adds what aiohttp leaves to its users: the envelope for requests that the parser refuses,
answers to a client that has half-closed, limits of time and bytes for headers, bodies and clients that do not read, and
a close that does not reset the connection before the last answer has arrived.

aiohttp's parser gets one request at a time: its whole head, then its body. Whatever a client sends ahead stays with the
connection, which then stops reading. So the parser never holds a part of a head or a queue of requests, and every byte
that waits for a client is counted in the budgets of `connection_limits`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

import structlog
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter

from chassis.http import replies
from chassis.http.connection_limits import ConnectionLimits
from chassis.http.framing import (
    HEAD_BYTES_MAX,
    HEAD_END,
    SMALL_HEAD_BYTES,
    Chunks,
    Length,
    MalformedChunks,
    begins_with_verb,
    for_parser,
    is_request_line,
    is_whole_and_small,
)
from chassis.http.replies import PIECE_BYTES, ErrorReplies, Reply

LINE_BYTES_MAX = 8190
HEADERS_MAX = 100

# Longer than load balancers keep idle connections (60 s): they must close first, or requests are lost.
IDLE_SECONDS = 75.0
HEAD_SECONDS = 20.0
BODY_SECONDS = 30.0
# The longest pause inside a body. When a chunk is malformed, aiohttp's parser does not notify the body's reader: the
# body just stops growing. This limit ends that wait.
STALL_SECONDS = 10.0
UNREAD_SECONDS = 60.0
LINGER_SECONDS = 2.0
SKIPPED_BYTES_MAX = 1024 * 1024
# aiohttp closes idle connections too, but counts one whose headers have begun to arrive as idle. IDLE_SECONDS and
# HEAD_SECONDS end them first.
AIOHTTP_IDLE_SECONDS = 86_400.0

# A connection holds this many bytes of an unfinished request without being counted, which costs usual requests nothing.
UNCOUNTED_BYTES = 1024
# How far aiohttp reads ahead of the body's reader, and a transport takes in ahead of its client.
READ_AHEAD_BYTES = 32 * 1024
# Held for a client that does not read, besides its answer: objects of the request, and the copies that TLS encrypts.
UNREAD_BYTES, UNREAD_TLS_BYTES = 8 * 1024, 96 * 1024
# With TLS each byte that arrives lies in several buffers, and the connection itself takes this much, as measured.
TLS_COPIES, TLS_BYTES = 3, 40 * 1024
# A burst of more than SMALL_BURST_BYTES lies in uvloop's buffer and in OpenSSL's, which never shrink.
SMALL_BURST_BYTES, BURST_COPIES = 16 * 1024, 2
# The parser's texts of a head take this many times its bytes. They stay until the request is answered.
PARSED_COPIES = 2.5
# How long a connection that gives way may take for its end; its memory is needed.
EVICTION_SECONDS = 1.0

_NEVER = float("inf")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)
_TOO_MANY = "too many requests are arriving at once and this one took longest"

log = structlog.stdlib.get_logger(__name__)


class BodyBroken(Exception):  # noqa: N818 - says what is the matter
    """The body ended early, came too slowly, or its chunks are malformed. The text says which."""


class Request:
    """A request as the process that answers it sees it."""

    __slots__ = (
        "_connection",
        "_request",
        "caller",
        "headers",
        "id",
        "idle_seconds",
        "is_known",
        "limit_headers",
        "method",
        "whole_body",
    )

    def __init__(self, connection: Connection, request: web.BaseRequest) -> None:
        self._connection = connection
        self._request = request
        self.id = new_id()
        self.method = request.method
        self.headers = request.headers
        self.is_known = False
        """Set by what answers, once it knows who asks: nobody unknown is served at the cost of those who are known."""
        self.limit_headers = b""
        """More header lines of the answer: those of a rate limit."""
        self.whole_body: bytes | None = None
        """The body, if all of it has arrived with the head or soon after."""
        self.caller: Any = None
        """Set by what answers, once it knows who asks."""
        self.idle_seconds = 0.0
        """How long the answer waited because its caller wanted it to: for something new, or to read what was sent."""

    @property
    def address(self) -> str:
        """The client's address; empty if it has left."""
        return self._connection.client_address(self._request)

    @property
    def parsed(self) -> web.BaseRequest:
        """The request as aiohttp has it. Its body is for `body` and `pieces` alone: they have the deadlines."""
        return self._request

    def target(self) -> tuple[str, str]:
        """Path and query as received, percent-encoded. The path of CONNECT, which names a host, is empty."""
        path = self._request.raw_path
        if path[0] != "/" or "#" in path:
            url = self._request.rel_url
            return ("" if self.method == "CONNECT" else url.raw_path), url.raw_query_string
        path, _, query = path.partition("?")
        return path, query

    async def body(self, bytes_max: int) -> bytes:
        """The body, cut one byte after the longest allowed. Raises BodyBroken."""
        body = self.whole_body
        if body is None:
            body = await self._connection.read(self._request, bytes_max)
        return body[: bytes_max + 1]

    async def pieces(self, stall_seconds: float, seconds: float) -> AsyncIterator[bytes]:
        """The body as it arrives, of which a little is held at a time; it may be of any length. Raises BodyBroken.

        It never gives way to other requests, so whoever reads one bounds how many there are.
        stall_seconds, seconds: the longest pause, and the longest time for all of it.
        """
        if self.whole_body is not None:
            yield self.whole_body
            return
        async for piece in self._connection.pieces(self._request, stall_seconds, seconds):
            yield piece

    def on_abort(self, on_abort: Callable[[], None] | None) -> None:
        """Calls `on_abort` when nobody waits for the answer any more, or the process stops; now, if that is so already.
        None ends this."""
        self._connection.on_abort(on_abort)

    async def stream(self, reply: Reply, pieces: AsyncIterator[bytes]) -> None:
        """Sends the answer now, piece by piece, each once its client has room for it. reply: without body.

        If it can't be sent to its end, the connection breaks off: no client can take it for whole. Raises
        ConnectionError if the client has left or reads too slowly, and whatever `pieces` raises.
        """
        await self._connection.stream(self._request, self, reply, pieces)


def new_id() -> str:
    return os.urandom(12).hex()


def expects_continue(request: web.BaseRequest) -> bool:
    return request.headers.get("Expect", "").lower() == "100-continue"


Answer = Callable[[Request], Awaitable[Reply]]


class RenderedResponse(web.StreamResponse):
    """A response whose bytes are ready: aiohttp adds nothing to them."""

    def __init__(self, connection: Connection, reply: Reply, parts: tuple[bytes, bytes], *, keep: bool) -> None:
        """parts: see `replies.raw`. keep: whether another request may follow on the connection."""
        super().__init__(status=reply.status)
        self._connection = connection
        self._parts = parts
        self._is_shared = reply.is_shared
        self._keep = keep

    @property
    def keep_alive(self) -> bool:
        return self._keep

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        await self._connection.send(request.writer, *self._parts, is_shared=self._is_shared)
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        await self._connection.sent(keep=self._keep)


class StreamedResponse(web.StreamResponse):
    """A response that `Connection.stream` has sent, or has broken off."""

    def __init__(self, connection: Connection, *, keep: bool) -> None:
        super().__init__()
        self._connection = connection
        self._keep = keep

    @property
    def keep_alive(self) -> bool:
        return self._keep

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        await self._connection.sent(keep=self._keep)


class HttpServer:
    """aiohttp's server of one port: makes the connections, lists them, and hands each request to `answer`."""

    def __init__(
        self,
        answer: Answer,
        limits: ConnectionLimits,
        errors: ErrorReplies,
        stall_seconds: float = STALL_SECONDS,
        application: web.Server | None = None,
    ) -> None:
        """stall_seconds: the longest pause inside a body. application: the server whose requests are made, for an
        `answer` that hands them to a `web.Application`."""
        self._answer = answer
        self._limits, self._errors = limits, errors
        self._stall_seconds = stall_seconds
        factory = None if application is None else application.request_factory
        self._server = web.Server(
            lambda request: cast("Connection", request.protocol).respond(request), request_factory=factory
        )

    def connection(self, client: str) -> Connection:
        """A protocol for a client's connection. client: by which `ConnectionLimits.enter` counted it."""
        return Connection(
            self._server,
            self._answer,
            self._limits,
            self._errors,
            client,
            self._stall_seconds,
            asyncio.get_running_loop(),
        )

    def connections(self) -> list[Connection]:
        """All open connections, and those whose client left before its answer was ready."""
        return cast("list[Connection]", self._server.connections)

    async def abort(self) -> None:
        """Ends the connections that `Connection.drain` has not ended, and the requests under way on them."""
        await self._server.shutdown(0.1)  # 0 would mean no limit


class Connection(web.RequestHandler):
    """Answers the requests of one connection one after the other, in the order of their arrival.

    Attributes and methods that only this class uses begin with two underscores: Python puts the class's name before
    them, so that they can never hide one of aiohttp's.
    """

    def __init__(  # noqa: PLR0915 - one list of what a connection knows
        self,
        server: web.Server,
        answer: Answer,
        limits: ConnectionLimits,
        errors: ErrorReplies,
        client: str,
        stall_seconds: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type] # which aiohttp's documentation allows
            auto_decompress=False,
            keepalive_timeout=AIOHTTP_IDLE_SECONDS,
            lingering_time=LINGER_SECONDS,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
            read_bufsize=READ_AHEAD_BYTES,
        )
        self.__loop, self.__answer, self.__limits, self.__errors = loop, answer, limits, errors
        self.__client = client
        """By which this connection is counted; empty for a trusted proxy's."""
        self.__spoken_for = ""
        """The client behind a trusted proxy whose request is under way."""
        self.__stall_seconds = stall_seconds
        self.__head: bytes | bytearray = b""
        """The head that has not arrived whole."""
        self.__is_at_rest = True
        """Nothing is under way, held or broken: the next bytes begin a request."""
        self.__is_busy = False
        """A request is under way: from the end of its head until its answer is sent."""
        self.__parsed_bytes = self.__skipped = 0
        """What the parser holds of a large head; how many bytes arrived while the connection lingered."""
        self.__asked: Request | None = None
        """The request that `answer` works on."""
        self.__answering: asyncio.Task[Any] | None = None
        """Its task, if bytes of it are counted."""
        self.__body: StreamReader | None = None
        """The body of the request that `answer` works on."""
        self.__is_reading = False
        """Somebody reads it."""
        self.__is_streamed = False
        """It is read piece by piece, and counts nothing."""
        self.__unread_body: StreamReader | None = None
        """The body of a request that was answered before all of it had arrived; aiohttp reads it to its end."""
        self.__frame: Length | Chunks | None = None
        """The part of a body that has not arrived."""
        self.__body_bytes = 0
        """How many bytes of the body have arrived."""
        self.__held = b""
        """What the client sent ahead. While there is any, the connection reads nothing."""
        self.__is_full = False
        """aiohttp takes no more of the body until some of it is read."""
        self.__is_counted = False
        """What has arrived of an unfinished request is counted."""
        self.__is_tls = self.__was_evicted = False
        self.__is_known = False
        """It was known who sent the last request."""
        self.__burst_bytes = SMALL_BURST_BYTES
        """The most that has arrived at once, if it is more than a small burst."""
        self.__has_half_closed = False
        """The client sends no more; it may still read."""
        self.__lingering: asyncio.Future[None] | None = None
        """Done when the client has closed after the last answer, or when LINGER_SECONDS are over."""
        self.__is_draining = False
        """The answer under way is the last one."""
        self.__on_abort: Callable[[], None] | None = None
        """Ends the wait of the answer under way."""
        self.__keeps_after_stream: bool | None = None
        """Whether another request may follow the answer that was streamed; None if none was."""
        self.__broken = ""
        """Why the rest of the body is not taken; nothing that arrives is, until the answer is sent."""
        self.was_made = False
        """The transport has connected it: it is counted until the connection is lost."""
        self.__was_idle = False
        """Nothing was under way at the last `drain`, and nothing has arrived since."""
        self.__wait(IDLE_SECONDS, self.__close)

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.was_made = True
        super().connection_made(transport)
        if transport.get_extra_info("sslcontext") is not None:
            cast("asyncio.WriteTransport", transport).set_write_buffer_limits(READ_AHEAD_BYTES)
            self.__is_tls = True
            self.__count_tls()
        else:
            # An answer that the kernel takes at once costs no memory; of any other, each byte is counted.
            cast("asyncio.WriteTransport", transport).set_write_buffer_limits(0)

    def data_received(self, data: bytes) -> None:
        """aiohttp too calls it, without data, to go on with a body."""
        if self.__is_at_rest and is_whole_and_small(data):
            # Almost all requests: nothing of them is unfinished, so nothing needs to be counted.
            self.__is_at_rest = self.__was_idle = False
            self.__is_busy = True
            self.__deadline = _NEVER
            super().data_received(data)
            return
        if self.__is_tls and len(data) > self.__burst_bytes:
            self.__burst_bytes = len(data)
            self.__count_tls()
        if self.__lingering is not None or self.transport is None:
            self.__skipped += len(data)
            if self.__skipped > SKIPPED_BYTES_MAX:
                self.__close()
        elif not data:
            super().data_received(data)
        else:
            self.__is_at_rest = self.__was_idle = False
            self.__take(data)

    def eof_received(self) -> bool | None:  # type: ignore[override] # aiohttp returns None always
        """The client has half-closed. True keeps the connection open for the answers."""
        if self.transport is None or self.__lingering is not None or self.__is_tls:
            self.__close()
            return None
        self.__has_half_closed = True
        self.__end_wait()
        self.__end_body()
        if not self.__is_busy:
            self.__end_after_half_close()
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        self.__stop_lingering()
        self.__end_wait()
        self.__uncount()
        self.__limits.tls.release(self.__evict)
        self.__held = self.__head = b""
        self.__overdue = (
            _nothing  # a method of its own would keep the connection in memory until a collection of cycles
        )
        self.__deadline = _NEVER
        self.__leave_proxy()
        self.__limits.leave(self.__client)
        if self.__unread_body is not None:
            self.__unread_body.feed_eof()  # else aiohttp waits for it, and keeps all that belongs to the connection
        super().connection_lost(exc)

    # Called by aiohttp's reader of a body

    def pause_reading(self) -> None:
        self.__is_full = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        self.__is_full = False
        super().resume_reading(resume_parser)
        if self.__held:
            self.__stop_reading()
            self.__loop.call_soon(self.__go_on)  # later, because the parser itself calls this

    # Bytes that arrive

    def __take(self, data: bytes) -> None:
        """Gives the parser what it may have now, and holds the rest."""
        while data and not self.__broken:
            if self.__held or self.__is_full:
                self.__hold(data)
                return
            if self.__frame is not None:
                data = self.__take_body(self.__frame, data)
            elif not self.__is_busy and self.__lingering is None:
                data = self.__take_head(data)
            else:
                self.__hold(data)
                return

    def __take_head(self, data: bytes) -> bytes:
        """Takes the next bytes of a head, and hands it to the parser when it is whole. Returns the bytes behind it."""
        begun = len(self.__head)
        whole: bytes | bytearray
        if begun:
            assert isinstance(self.__head, bytearray)
            self.__head += data
            whole = self.__head
        else:
            whole = data.lstrip(b"\r\n")  # which RFC 9112 lets a server skip
            if not whole:
                return b""
        end = whole.find(HEAD_END, max(0, begun - len(HEAD_END))) + len(HEAD_END)
        is_whole = end >= len(HEAD_END)
        if (end if is_whole else len(whole)) > HEAD_BYTES_MAX:
            self.__refuse(f"its first line and headers are longer than {HEAD_BYTES_MAX} bytes together; shorten them")
            return b""
        if not is_whole:
            if not begun and not begins_with_verb(whole):
                self.__refuse("it begins with no method; check that your client speaks HTTP, and not TLS, on this port")
            else:
                if not begun:
                    self.__head = bytearray(whole)
                    self.__wait(HEAD_SECONDS, self.__head_is_late)
                self.__count(len(whole))
            return b""
        head, following = bytes(whole[:end]), bytes(whole[end:])
        line = head[: head.index(b"\r\n")]
        if len(line) <= LINE_BYTES_MAX:  # a longer one is the parser's to refuse
            if not is_request_line(line):
                self.__refuse("its first line must be a method, a target and HTTP/1.1, with one blank between them")
                return b""
            head = for_parser(head)
        self.__head = b""
        self.__is_busy = True
        self.__deadline = _NEVER
        self.__parsed_bytes = int(PARSED_COPIES * end) if end > SMALL_HEAD_BYTES else 0
        self.__uncount()
        self.__count(0)
        super().data_received(head)
        return following

    def __take_body(self, frame: Length | Chunks, data: bytes) -> bytes:
        """Hands the next bytes of a body to the parser. Returns the bytes behind it."""
        try:
            size = frame.take(data)
        except MalformedChunks:
            self.__break_body("its chunks are malformed")
            return b""
        if frame.has_ended:
            self.__frame = None
        self.__body_bytes += size
        if self.__is_busy:
            self.__count(self.__body_bytes)
        if not self.__broken:
            super().data_received(data[:size])
        return data[size:]

    def __hold(self, data: bytes) -> None:
        self.__held += data
        self.__count(self.__body_bytes + len(self.__held))
        if len(self.__held) > READ_AHEAD_BYTES:
            self.__stop_reading()

    def __go_on(self) -> None:
        """Uses the bytes that were held back, as far as they can be used now."""
        if self.transport is None or self.__lingering is not None:
            return
        held, self.__held = self.__held, b""
        self.__take(held)
        if not self.__held and not self.__is_full and self.transport is not None:
            self.transport.resume_reading()
        if self.__has_half_closed:
            self.__end_body()

    def __stop_reading(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()

    def __count(self, size: int) -> None:
        """size: the bytes that have arrived of unfinished requests."""
        if self.__is_tls:
            size *= TLS_COPIES
        size += self.__parsed_bytes
        if size > UNCOUNTED_BYTES and self.transport is not None and not self.__is_streamed:
            self.__is_counted = True
            self.__limits.unfinished.hold(self.__evict, size)

    def __uncount(self) -> None:
        if self.__is_counted:
            self.__is_counted = False
            self.__limits.unfinished.release(self.__evict)

    def __count_tls(self) -> None:
        """Of a known client only the buffers of a large burst count."""
        size = 0 if self.__is_known else TLS_BYTES
        if self.__burst_bytes > SMALL_BURST_BYTES:
            size += BURST_COPIES * self.__burst_bytes
        if not size:
            self.__limits.tls.release(self.__evict)
        elif self.transport is not None:
            self.__limits.tls.hold(self.__evict, size)

    def __evict(self) -> None:
        """All connections together hold too many bytes of unfinished requests, or too much for TLS, and this one has
        held its own for longest."""
        self.__uncount()
        if not self.__is_busy and (self.__is_at_rest or self.__frame is not None):
            # It has TLS, and no request to answer.
            self.__was_evicted = True
            if self.transport is not None and not self.transport.get_write_buffer_size():
                self.transport.abort()  # a close would wait for the client's, with all its buffers
            else:
                self.__close()
        elif not self.__is_busy:
            self.__was_evicted = True
            self.__refuse(f"{_TOO_MANY}; retry")
        elif self.__asked is None or not self.__asked.is_known:
            self.__was_evicted = True
            self.__break_body(_TOO_MANY)
            if self.__answering is not None:
                self.__answering.cancel()
        elif self.__frame is not None:
            self.__was_evicted = True
            self.__break_body(_TOO_MANY)

    # One request after the other

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers a request; aiohttp then sends the answer."""
        asked = Request(self, request)
        if not self.__client and not self.__enter_from_proxy(request):
            if self.transport is not None:
                self.transport.abort()
            return RenderedResponse(self, self.__errors.fault, (b"", b""), keep=False)
        content = self.__body = request.content
        self.__asked = asked
        try:
            if self.__is_counted or not content.is_eof() or "Transfer-Encoding" in request.headers:
                reply = await self.__answer_counted(request, asked)
            else:
                # Read at once: aiohttp forbids reading it after the client has left.
                asked.whole_body = content.read_nowait()
                reply = await self.__answer(asked)
        finally:
            self.__body = self.__asked = self.__on_abort = None
            self.__unread_body = None if content.is_eof() else content
        if self.__keeps_after_stream is not None:
            keep, self.__keeps_after_stream = self.__keeps_after_stream, None
            return StreamedResponse(self, keep=keep)
        keep = self.__may_keep(request)
        headers = self.__headers(request, asked, keep=keep)
        return RenderedResponse(
            self, reply, replies.raw(reply, asked.id, headers, head=request.method == "HEAD"), keep=keep
        )

    def __headers(self, request: web.BaseRequest, asked: Request, *, keep: bool) -> bytes:
        """The header lines that depend on the key and on the connection."""
        headers = asked.limit_headers
        if self.__is_tls and self.__is_known != asked.is_known:
            self.__is_known = asked.is_known
            self.__count_tls()
        if not keep:
            return headers + b"Connection: close\r\n"
        return headers + b"Connection: keep-alive\r\n" if request.version.minor == 0 else headers

    def on_abort(self, on_abort: Callable[[], None] | None) -> None:
        """See `Request.on_abort`."""
        self.__on_abort = on_abort
        if self.__has_half_closed or self.__is_draining or self.transport is None:
            self.__end_wait()

    def __end_wait(self) -> None:
        if self.__on_abort is not None:
            self.__on_abort()

    async def stream(
        self, request: web.BaseRequest, asked: Request, reply: Reply, pieces: AsyncIterator[bytes]
    ) -> None:
        """See `Request.stream`."""
        is_chunked = request.version.minor > 0  # HTTP/1.0 has no chunks: the end of the connection ends the answer
        keep = is_chunked and self.__may_keep(request)
        headers = self.__headers(request, asked, keep=keep)
        if is_chunked:
            headers += b"Transfer-Encoding: chunked\r\n"
        self.__keeps_after_stream = False
        try:
            head = replies.head_of(reply, asked.id, headers)
            await self.__send_piece(asked, request.writer, head, b"")
            if request.method != "HEAD":
                await self.__send_pieces(request, asked, pieces, is_chunked=is_chunked)
        except BaseException:
            self.__break_off(is_chunked)
            raise
        self.__keeps_after_stream = keep

    async def __send_pieces(
        self, request: web.BaseRequest, asked: Request, pieces: AsyncIterator[bytes], *, is_chunked: bool
    ) -> None:
        async for piece in pieces:
            if not piece:
                continue
            if is_chunked:
                await self.__send_piece(asked, request.writer, b"%x\r\n" % len(piece), piece + b"\r\n")
            else:
                await self.__send_piece(asked, request.writer, piece, b"")
        if is_chunked:
            await self.__send_piece(asked, request.writer, _LAST_CHUNK, b"")

    async def __send_piece(self, asked: Request, writer: AbstractStreamWriter, data: bytes, rest: bytes) -> None:
        begun = self.__loop.time()
        await self.send(writer, data, rest, is_shared=False)
        self.__deadline = _NEVER
        asked.idle_seconds += self.__loop.time() - begun

    def __break_off(self, is_chunked: bool) -> None:
        """Ends the connection in the middle of an answer, so that its client can see that something is missing."""
        if self.transport is None:
            return
        if not is_chunked:
            # Where the end of the connection ends the answer, only a reset shows that this is not the end.
            found: socket.socket | None = self.transport.get_extra_info("socket")
            if found is not None:
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        self.transport.abort()

    async def __answer_counted(self, request: web.BaseRequest, asked: Request) -> Reply:
        """Answers a request that may have to give way: until its caller is known and its body has arrived."""
        if self.__was_evicted:
            self.__drop(request.content)
            return self.__errors.malformed(_TOO_MANY)
        if not self.__await_body(request, asked):
            self.__is_draining = True
            return self.__errors.malformed("its Transfer-Encoding is something else than chunked alone")
        if self.__has_half_closed:
            self.__end_body()
        task = self.__answering = asyncio.current_task()
        try:
            return await self.__answer(asked)
        except asyncio.CancelledError:
            if not self.__was_evicted or task is None:
                raise
            task.uncancel()
            return self.__errors.malformed(_TOO_MANY)
        finally:
            self.__answering = None
            self.__parsed_bytes = 0
            self.__uncount()

    def __await_body(self, request: web.BaseRequest, asked: Request) -> bool:
        """Takes in what has arrived of a request's body; False if its framing is not spoken here."""
        if self.__broken:
            request.content.set_exception(BodyBroken(self.__broken))
            return True
        encodings = request.headers.getall("Transfer-Encoding", ())
        if not encodings:
            length = Length(int(request.headers.get("Content-Length", 0)))  # the parser takes plain digits alone
            self.__frame = None if length.has_ended else length
        elif len(encodings) == 1 and encodings[0].lower() == "chunked" and request.version.minor:
            self.__frame = Chunks()
        else:
            return False
        if self.__held:
            self.__go_on()
        if request.content.is_eof():
            asked.whole_body = request.content.read_nowait()
        return True

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The last answer of a connection: to bytes that aiohttp's parser refuses (400), or to a fault of `answer`."""
        if status == 400:
            reply = self.__errors.malformed(_reason(exc))
        else:
            log.error("connection_fault", exc_info=exc)
            reply = self.__errors.fault
        return RenderedResponse(self, reply, _last(reply), keep=False)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Writes aiohttp's errors to the process's log."""
        log.error("connection_fault", reason=args[0] % args[1:] if args else "", exc_info=kw.get("exc_info"))

    async def read(self, request: web.BaseRequest, bytes_max: int) -> bytes:
        """Reads a body until it ends, or until it is longer than allowed. Raises BodyBroken."""
        content = request.content
        broken = content.exception()
        if broken is not None:
            raise broken
        body = b"" if content.at_eof() else await self.__read(request, content, bytes_max)
        self.__uncount()
        return body

    async def __read(self, request: web.BaseRequest, content: StreamReader, bytes_max: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            async with aclosing(self.__arriving(request, content, self.__stall_seconds, BODY_SECONDS)) as arriving:
                async for piece in arriving:
                    chunks.append(piece)
                    size += len(piece)
                    del piece
                    if size > bytes_max:
                        break
            return b"".join(chunks)
        finally:
            # The exception of a broken body keeps this frame, and the body keeps the exception until the connection
            # ends. Nobody counts these bytes any more.
            chunks.clear()

    async def pieces(self, request: web.BaseRequest, stall_seconds: float, seconds: float) -> AsyncIterator[bytes]:
        """See `Request.pieces`."""
        self.__is_streamed = True
        self.__uncount()
        broken = request.content.exception()
        if broken is not None:
            raise broken
        async for piece in self.__arriving(request, request.content, stall_seconds, seconds):
            yield piece

    async def __arriving(
        self, request: web.BaseRequest, content: StreamReader, stall_seconds: float, seconds: float
    ) -> AsyncGenerator[bytes]:
        """What arrives of a body, until it ends. Raises BodyBroken."""
        if expects_continue(request):
            await request.writer.write(_CONTINUE)
        ends_at = self.__loop.time() + seconds
        while not content.at_eof():
            # No frame here has a name for a piece: an exception keeps the frames, and the body keeps the exception.
            yield await self.__next(content, min(ends_at, self.__loop.time() + stall_seconds))

    async def __next(self, content: StreamReader, deadline: float) -> bytes:
        self.__is_reading = True
        try:
            async with asyncio.timeout_at(deadline):
                return await content.readany()
        except TimeoutError:
            # The body gets the exception too: the connection can't be kept if the rest of the body can't be parsed.
            broken = BodyBroken("it came too slowly")
            content.set_exception(broken)
            raise broken from None
        except web.RequestPayloadError:
            raise BodyBroken("its chunks are malformed") from None
        except ConnectionError:
            raise BodyBroken("the connection was lost") from None
        finally:
            self.__is_reading = False

    async def send(self, writer: AbstractStreamWriter, data: bytes, rest: bytes, *, is_shared: bool) -> None:
        """Sends an answer, a long one in pieces. Returns once the transport's buffer has room again.

        rest: what follows `data`. is_shared: no memory becomes free when the client has read it.
        Raises ConnectionError if the client has left, or has not read it in time.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        if rest and not self.__is_tls:
            transport.writelines((data, rest))
            left = b""
        else:
            transport.write(data)
            left = rest
        if left or self.writing_paused:
            size = 0 if is_shared else len(data) + len(rest)
            await self.__send_as_it_is_read(transport, writer, left, size)

    async def __send_as_it_is_read(
        self, transport: asyncio.WriteTransport, writer: AbstractStreamWriter, left: bytes, size: int
    ) -> None:
        """Sends what is left of an answer. size: the bytes that become free when the client has read it."""
        self.__wait(UNREAD_SECONDS, transport.abort)
        unread = self.__limits.unread
        unread.hold(transport.abort, size + (UNREAD_TLS_BYTES if self.__is_tls else UNREAD_BYTES))
        try:
            view = memoryview(left)
            for at in range(0, len(view), PIECE_BYTES):
                if self.writing_paused:
                    await writer.drain()
                if transport.is_closing():
                    raise ConnectionResetError("the client left")
                transport.write(view[at : at + PIECE_BYTES])
            if self.writing_paused:
                await writer.drain()
        finally:
            unread.release(transport.abort)

    async def sent(self, *, keep: bool) -> None:
        """Called after an answer was sent: waits for another request, or ends the connection."""
        self.__is_busy = self.__is_streamed = False
        self.__body_bytes = 0
        if self.__is_counted:
            self.__uncount()
        if self.__spoken_for:
            self.__leave_proxy()
        if not keep or self.__broken:
            self.__linger()
            if self.__lingering is not None:
                await self.__lingering  # aiohttp closes when this returns
            return
        self.__wait(IDLE_SECONDS, self.__close)
        self.__is_at_rest = self.__frame is None and not self.__held
        if self.__held:
            self.__go_on()
        if self.__has_half_closed and not self.__is_busy:
            self.__end_after_half_close()

    def __enter_from_proxy(self, request: web.BaseRequest) -> bool:
        """Counts the request for the client that a trusted proxy speaks for; False if it is one too many."""
        client = self.__limits.client_behind_proxy(request.headers.getall("X-Forwarded-For", ()))
        if client and not self.__limits.count(client):
            return False
        self.__spoken_for = client
        return True

    def client_address(self, request: web.BaseRequest) -> str:
        """The address that a request came from: see `ConnectionLimits.client_address`. Empty if the client has left."""
        peer = self.transport and self.transport.get_extra_info("peername")
        if not peer:
            return ""
        return self.__limits.client_address(str(peer[0]), request.headers.getall("X-Forwarded-For", ()))

    def __leave_proxy(self) -> None:
        if self.__spoken_for:
            self.__limits.uncount(self.__spoken_for)
            self.__spoken_for = ""

    def __may_keep(self, request: web.BaseRequest) -> bool:
        """Whether another request may follow the answer to this one."""
        if not request.keep_alive or self.__is_draining or request.method == "CONNECT" or _asks_to_upgrade(request):
            return False
        content = request.content
        if content.is_eof() and not self.__broken:
            return True
        # A client that expects 100 Continue skips the body and sends its next request, which would be parsed as the
        # body.
        if content.exception() is not None or expects_continue(request):
            return False
        declared = request.headers.get("Content-Length", "")
        return declared.isdigit() and int(declared) <= SKIPPED_BYTES_MAX

    # Failures

    def __end_body(self) -> None:
        """Breaks a body of which no more can arrive."""
        if self.__frame is not None and not self.__held:
            self.__break_body("it ended early")

    def __break_body(self, reason: str) -> None:
        """Takes no more of the body, and no request after it."""
        self.__broken, self.__frame, self.__held = reason, None, b""
        self.__is_draining = True
        if self.__body is not None:
            self.__drop(self.__body)
            self.__body.set_exception(BodyBroken(reason))

    def __drop(self, body: StreamReader) -> None:
        """Frees what has arrived of a body that nobody will read: it would stay until the connection ends.

        A reader takes it out by itself. If it was told of bytes that are gone then, it would wait for others.
        """
        if not self.__is_reading and body.exception() is None:
            body.read_nowait()

    def __head_is_late(self) -> None:
        self.__refuse("its headers came too slowly; send them at once")

    def __end_after_half_close(self) -> None:
        if self.__head:
            self.__refuse("it ended before its headers did; send it whole")
        else:
            self.__close()

    def __refuse(self, reason: str) -> None:
        """Answers bytes that aiohttp could not parse as a request, and lingers."""
        self.__head = b""
        self.__uncount()
        transport = self.transport
        if transport is not None and not transport.is_closing():
            transport.write(_last(self.__errors.malformed(reason))[0])
            self.__linger()

    # The end

    def drain(self) -> None:
        """Closes if nothing is under way, else after the answer. To be called until the connection is gone.

        The second of two calls closes, if nothing happened between them: at the first, aiohttp may be about to begin a
        request.
        """
        self.__is_draining = True
        if self.__is_busy or self.__lingering is not None or self.__frame is not None:
            self.__end_wait()
            return
        if self.__was_idle:
            self.__close()
        self.__was_idle = True

    def look_at_the_clock(self, now: float) -> None:
        """Called once a second, which costs less than a timer for each request. now: by the loop's clock."""
        if now >= self.__deadline:
            self.__deadline = _NEVER
            self.__overdue()

    def __wait(self, seconds: float, overdue: Callable[[], None]) -> None:
        self.__deadline = self.__loop.time() + seconds
        self.__overdue = overdue

    def __linger(self) -> None:
        """Closes so that the last answer arrives: bytes left unread would reset the connection before it."""
        transport = self.transport
        self.__is_at_rest = False
        self.__held = b""
        if transport is None or transport.is_closing():
            return
        if self.__has_half_closed or not transport.can_write_eof():
            self.__close()
            return
        self.__lingering = self.__loop.create_future()
        transport.write_eof()
        transport.resume_reading()
        self.__wait(LINGER_SECONDS, self.__close)

    def __stop_lingering(self) -> None:
        if self.__lingering is not None and not self.__lingering.done():
            self.__lingering.set_result(None)

    def __close(self) -> None:
        """Closes when the client has read what was sent, or after UNREAD_SECONDS.

        With TLS a close waits for the client's too. Once nothing is left to send it waits for LINGER_SECONDS only.
        """
        self.__is_at_rest = False
        self.__stop_lingering()
        if self.transport is not None:
            seconds = UNREAD_SECONDS if self.transport.get_write_buffer_size() else LINGER_SECONDS
            self.__wait(EVICTION_SECONDS if self.__was_evicted else seconds, self.transport.abort)
            self.force_close()


def _nothing() -> None:
    pass


def _last(reply: Reply) -> tuple[bytes, bytes]:
    return replies.raw(reply, new_id(), b"Connection: close\r\n")


def _asks_to_upgrade(request: web.BaseRequest) -> bool:
    return "Upgrade" in request.headers and "upgrade" in request.headers.get("Connection", "").lower()


def _reason(error: BaseException | None) -> str:
    if type(error).__name__ == "LineTooLong":  # a class that aiohttp does not export
        return f"its first line or a header is longer than {LINE_BYTES_MAX} bytes; shorten it"
    return f"the parser can't read it, or it has more than {HEADERS_MAX} headers; check what your client sends"
