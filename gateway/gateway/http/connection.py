"""One HTTP/1.1 connection on aiohttp's own server protocol: whatever bytes arrive, the answer is in the error envelope.

aiohttp parses, queues pipelined requests, applies backpressure and keeps connections alive. Only its public server
classes are used. This module adds what aiohttp leaves to its users: the envelope for requests that the parser refuses,
answers to a client that has half-closed, time limits for headers, bodies and clients that do not read, and a close that
does not reset the connection before the last answer has arrived.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, cast

import structlog
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter

from chassis.records.bodies import BODY_BYTES_MAX
from gateway.http import replies
from gateway.http.replies import Reply

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
# After a half-close aiohttp does not say whether requests are still queued. It begins a queued request within a few
# turns of the event loop: if none begins in this time, none is queued.
NEXT_REQUEST_SECONDS = 0.05
# aiohttp closes idle connections too, but counts one whose headers have begun to arrive as idle. IDLE_SECONDS and
# HEAD_SECONDS end them first.
AIOHTTP_IDLE_SECONDS = 86_400.0

_NEVER = float("inf")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

log = structlog.stdlib.get_logger(__name__)


class BodyBroken(Exception):  # noqa: N818 - says what is the matter
    """The body ended early, came too slowly, or its chunks are malformed. The text says which."""


class Request:
    """A request as the edge sees it."""

    __slots__ = ("_body", "_connection", "_request", "headers", "id", "limit_headers", "method")

    def __init__(self, connection: Connection, request: web.BaseRequest) -> None:
        self._connection = connection
        self._request = request
        self._body = request.content.read_nowait() if request.content.is_eof() else None
        """The body, if all of it has arrived. Read at once: aiohttp forbids reading it after the client has left."""
        self.id = new_id()
        self.method = request.method
        self.headers = request.headers
        self.limit_headers = b""
        """The header lines of the key's rate limit, once the request was counted."""

    def target(self) -> tuple[str, str]:
        """Path and query as received, percent-encoded. The path of CONNECT, which names a host, is empty."""
        path = self._request.raw_path
        if path[0] != "/" or "#" in path:
            url = self._request.rel_url
            return ("" if self.method == "CONNECT" else url.raw_path), url.raw_query_string
        path, _, query = path.partition("?")
        return path, query

    async def body(self) -> bytes:
        """The body, cut one byte after the longest allowed. Raises BodyBroken."""
        body = await self._connection.read(self._request) if self._body is None else self._body
        return body[: BODY_BYTES_MAX + 1]


def new_id() -> str:
    return os.urandom(12).hex()


def expects_continue(request: web.BaseRequest) -> bool:
    return request.headers.get("Expect", "").lower() == "100-continue"


Answer = Callable[[Request], Awaitable[Reply]]


class RenderedResponse(web.StreamResponse):
    """A response whose bytes are ready: aiohttp adds nothing to them."""

    def __init__(self, connection: Connection, status: int, data: bytes, *, keep: bool) -> None:
        """keep: whether another request may follow on the connection."""
        super().__init__(status=status)
        self._connection = connection
        self._data = data
        self._keep = keep

    @property
    def keep_alive(self) -> bool:
        return self._keep

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        await self._connection.send(request.writer, self._data)
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        await self._connection.sent(keep=self._keep)


class HttpServer:
    """aiohttp's server of one port: makes the connections, lists them, and hands each request to `answer`."""

    def __init__(self, answer: Answer, stall_seconds: float = STALL_SECONDS) -> None:
        """stall_seconds: the longest pause inside a body."""
        self._answer = answer
        self._stall_seconds = stall_seconds
        self._server = web.Server(lambda request: cast("Connection", request.protocol).respond(request))

    def __call__(self) -> Connection:
        """Makes a connection; for `loop.create_server`."""
        return Connection(self._server, self._answer, self._stall_seconds, asyncio.get_running_loop())

    def connections(self) -> list[Connection]:
        """All open connections, and those whose client left before its answer was ready."""
        return cast("list[Connection]", self._server.connections)

    async def abort(self) -> None:
        """Ends the connections that `Connection.retire` has not ended, and the requests under way on them."""
        await self._server.shutdown(0.1)  # 0 would mean no limit


class Connection(web.RequestHandler):
    """Answers the requests of one connection one after the other, in the order of their arrival.

    Attributes and methods that only this class uses begin with two underscores: Python puts the class's name before
    them, so that they can never hide one of aiohttp's.
    """

    def __init__(
        self, server: web.Server, answer: Answer, stall_seconds: float, loop: asyncio.AbstractEventLoop
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
        )
        self.__loop = loop
        self.__answer = answer
        self.__stall_seconds = stall_seconds
        self.__body: StreamReader | None = None
        """The body of the request that `answer` works on."""
        self.__is_busy = False
        """A request is being answered, or its answer is being sent."""
        self.__has_begun = False
        """Bytes have arrived since the last request, and aiohttp has made no request of them yet."""
        self.__rest: StreamReader | None = None
        """The body that the last answer left unread; aiohttp reads it to its end."""
        self.__has_half_closed = False
        """The client sends no more; it may still read."""
        self.__next_request: asyncio.TimerHandle | None = None
        """After a half-close, between two requests: closes unless another one begins."""
        self.__lingering: asyncio.Future[None] | None = None
        """Done when the client has closed after the last answer, or when LINGER_SECONDS are over."""
        self.__skipped = 0
        """How many bytes arrived while the connection lingered."""
        self.__is_retiring = False
        self.__was_idle = False
        """Nothing was under way at the last `retire`, and nothing has arrived since."""
        self.__wait(IDLE_SECONDS, self.__close)

    # Called by the transport

    def data_received(self, data: bytes) -> None:
        """aiohttp too calls it, without data, when a place in its queue of requests is free."""
        if self.__lingering is not None or self.transport is None:
            self.__skipped += len(data)
            if self.__skipped > SKIPPED_BYTES_MAX:
                self.__close()
            return
        self.__was_idle = False
        if data and not (self.__is_busy or self.__has_begun or self.__skips_body()):
            self.__has_begun = True
            self.__wait(HEAD_SECONDS, self.__head_is_late)
        super().data_received(data)

    def eof_received(self) -> bool | None:  # type: ignore[override] # aiohttp returns None always
        """The client has half-closed. True keeps the connection open for the answers."""
        transport = self.transport
        if transport is None or self.__lingering is not None or transport.get_extra_info("sslcontext") is not None:
            self.__close()
            return None
        self.__has_half_closed = True
        self.__end_body()
        if not self.__is_busy:
            self.__close_unless_another_begins()
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        self.__stop_lingering()
        super().connection_lost(exc)

    # One request after the other

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers a request; aiohttp then sends the answer."""
        self.__begin()
        self.__body = request.content
        if self.__has_half_closed:
            self.__end_body()
        try:
            asked = Request(self, request)
            reply = await self.__answer(asked)
        finally:
            self.__body = None
        keep = self.__may_keep(request)
        headers = asked.limit_headers
        if not keep:
            headers += b"Connection: close\r\n"
        elif request.version.minor == 0:
            headers += b"Connection: keep-alive\r\n"
        self.__rest = request.content
        data = replies.raw(reply, asked.id, headers, head=request.method == "HEAD")
        return RenderedResponse(self, reply.status, data, keep=keep)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The last answer of a connection: to bytes that aiohttp's parser refuses (400), or to a fault of `answer`."""
        self.__begin()
        if status == 400:
            reply = replies.malformed(_reason(exc))
        else:
            log.error("connection_fault", exc_info=exc)
            reply = replies.FAULT
        return RenderedResponse(self, reply.status, _last(reply), keep=False)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Writes aiohttp's errors to the gateway's log."""
        log.error("connection_fault", reason=args[0] % args[1:] if args else "", exc_info=kw.get("exc_info"))

    async def read(self, request: web.BaseRequest) -> bytes:
        """Reads a body until it ends, or until it is longer than allowed. Raises BodyBroken."""
        content = request.content
        chunks, size = [], 0
        ends_at = self.__loop.time() + BODY_SECONDS
        try:
            async with asyncio.timeout_at(ends_at) as limit:
                if expects_continue(request):
                    await request.writer.write(_CONTINUE)
                while size <= BODY_BYTES_MAX and not content.at_eof():
                    limit.reschedule(min(ends_at, self.__loop.time() + self.__stall_seconds))
                    chunk = await content.readany()
                    chunks.append(chunk)
                    size += len(chunk)
        except TimeoutError:
            # The body gets the exception too: the connection can't be kept if the rest of the body can't be parsed.
            broken = BodyBroken("it came too slowly, or its chunks are malformed")
            content.set_exception(broken)
            raise broken from None
        except web.RequestPayloadError:
            raise BodyBroken("its chunks are malformed") from None
        except ConnectionError:
            raise BodyBroken("the connection was lost") from None
        return b"".join(chunks)

    async def send(self, writer: AbstractStreamWriter, data: bytes) -> None:
        """Returns once the transport's buffer has room again. Raises ConnectionError if the client has left."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        transport.write(data)
        if self.writing_paused:
            self.__wait(UNREAD_SECONDS, transport.abort)
            await writer.drain()

    async def sent(self, *, keep: bool) -> None:
        """Called after an answer was sent: waits for another request, or ends the connection."""
        self.__is_busy = False
        if not keep:
            self.__linger()
            if self.__lingering is not None:
                await self.__lingering  # aiohttp closes when this returns
        elif self.__has_half_closed:
            self.__close_unless_another_begins()
        else:
            self.__wait(IDLE_SECONDS, self.__close)

    def __begin(self) -> None:
        """aiohttp has taken the next request from its queue."""
        self.__is_busy, self.__has_begun, self.__deadline = True, False, _NEVER
        if self.__next_request is not None:
            self.__next_request.cancel()

    def __may_keep(self, request: web.BaseRequest) -> bool:
        """Whether another request may follow the answer to this one."""
        if not request.keep_alive or self.__is_retiring or request.method == "CONNECT" or _asks_to_upgrade(request):
            return False
        content = request.content
        if content.is_eof():
            return True
        # A client that expects 100 Continue skips the body and sends its next request, which would be parsed as the
        # body.
        if content.exception() is not None or expects_continue(request):
            return False
        declared = request.headers.get("Content-Length", "")
        return declared.isdigit() and int(declared) <= SKIPPED_BYTES_MAX

    def __skips_body(self) -> bool:
        return self.__rest is not None and not self.__rest.is_eof()

    # Failures

    def __end_body(self) -> None:
        """Ends the body: no more of it can arrive."""
        if self.__body is not None and not self.__body.is_eof():
            self.__body.set_exception(BodyBroken("it ended early"))

    def __head_is_late(self) -> None:
        self.__refuse("its headers came too slowly; send them at once")

    def __close_unless_another_begins(self) -> None:
        self.__next_request = self.__loop.call_later(NEXT_REQUEST_SECONDS, self.__none_began)

    def __none_began(self) -> None:
        if self.__has_begun:
            self.__refuse("it ended before its headers did; send it whole")
        else:
            self.__close()

    def __refuse(self, reason: str) -> None:
        """Answers bytes that aiohttp could not parse as a request, and lingers."""
        transport = self.transport
        if transport is not None and not transport.is_closing():
            transport.write(_last(replies.malformed(reason)))
            self.__linger()

    # The end

    def retire(self) -> None:
        """Closes if nothing is under way, else after the answer. To be called until the connection is gone.

        The second of two calls closes, if nothing happened between them: at the first, aiohttp may be about to begin a
        request.
        """
        self.__is_retiring = True
        if self.__is_busy or self.__lingering is not None or self.__skips_body():
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
        """Closes when the client has read what was sent, or after UNREAD_SECONDS."""
        self.__stop_lingering()
        if self.transport is not None:
            self.__wait(UNREAD_SECONDS, self.transport.abort)
            self.force_close()


def _last(reply: Reply) -> bytes:
    return replies.raw(reply, new_id(), b"Connection: close\r\n")


def _asks_to_upgrade(request: web.BaseRequest) -> bool:
    return "Upgrade" in request.headers and "upgrade" in request.headers.get("Connection", "").lower()


def _reason(error: BaseException | None) -> str:
    if type(error).__name__ == "LineTooLong":  # a class that aiohttp does not export
        return f"its first line or a header is longer than {LINE_BYTES_MAX} bytes; shorten it"
    return f"the parser can't read it, or it has more than {HEADERS_MAX} headers; check what your client sends"
