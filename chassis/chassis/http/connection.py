"""One HTTP/1.1 connection on aiohttp's own server protocol: whatever bytes arrive, the answer is in the error envelope.

aiohttp parses, queues pipelined requests, applies backpressure and keeps connections alive. Only its public server
classes are used. This module and the parts that it puts together add what aiohttp leaves to its users: the envelope for
requests that the parser refuses, answers to a client that has half-closed, limits of time and bytes for headers, bodies
and clients that do not read, and a close that does not reset the connection before the last answer has arrived.

aiohttp's parser gets one request at a time: its whole head, then its body. Whatever a client sends ahead stays with the
connection, which then stops reading. So the parser never holds a part of a head or a queue of requests, and every byte
that waits for a client is counted in the budgets of `connection_limits`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import structlog
from aiohttp import web

from chassis.http import deadlines
from chassis.http.answering import TOO_MANY, Answering
from chassis.http.answers import RenderedResponse, Sender
from chassis.http.bodies import Body
from chassis.http.connection_limits import ConnectionLimits
from chassis.http.course import Course, Goes, State
from chassis.http.deadlines import Deadline
from chassis.http.ending import End, last
from chassis.http.framing import is_whole_and_small
from chassis.http.heads import HEADERS_MAX, LINE_BYTES_MAX
from chassis.http.holder import Holder, Unfinished
from chassis.http.intake import READ_AHEAD_BYTES, Intake
from chassis.http.replies import ErrorReplies
from chassis.http.requests import Answer

# aiohttp closes idle connections too, but counts one whose headers have begun to arrive as idle. The deadlines of an
# idle connection and of a head end them first.
AIOHTTP_IDLE_SECONDS = 86_400.0

# A member costs more to find by its class, for each request.
_IDLE, _ANSWERING = State.IDLE, State.ANSWERING
_FEW = Unfinished.FEW

log = structlog.stdlib.get_logger(__name__)


class HttpConnection(web.RequestHandler):
    """Answers the requests of one connection one after the other, in the order of their arrival.

    Attributes and methods that only this class uses begin with two underscores: Python puts the class's name before
    them, so that they can never hide one of aiohttp's.
    """

    def __init__(
        self,
        server: web.Server,
        answer: Answer,
        limits: ConnectionLimits,
        errors: ErrorReplies,
        client: str,
        stall_seconds: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """The connection is counted by `client`, from `ConnectionLimits.enter`. A pause inside a body lasts
        `stall_seconds` at most."""
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type] # which aiohttp's documentation allows
            auto_decompress=False,
            keepalive_timeout=AIOHTTP_IDLE_SECONDS,
            lingering_time=deadlines.LINGER_SECONDS,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
            read_bufsize=READ_AHEAD_BYTES,
        )
        course = self.__course = Course()
        deadline = self.__deadline = Deadline(loop)
        holder = self.__holder = Holder(limits, client)
        body = self.__body = Body(loop, holder, stall_seconds)
        sender = self.__sender = Sender(loop, course, deadline, limits.unread)
        self.__end = End(loop, course, deadline, errors)
        self.__intake = Intake(loop, course, deadline, holder, body, self.__end)
        self.__answering = Answering(answer, errors, course, holder, body, self.__intake, sender)
        self.__errors = errors
        self.__was_idle = False
        """Nothing was under way at the last `drain`, and nothing has arrived since."""

    @property
    def was_made(self) -> bool:
        """The transport has connected it: it is counted until the connection is lost."""
        return self.__course.state is not State.NEW

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        has_tls = transport.get_extra_info("sslcontext") is not None
        # Without TLS an answer that the kernel takes at once costs no memory; of any other, each byte is counted.
        cast("asyncio.WriteTransport", transport).set_write_buffer_limits(READ_AHEAD_BYTES if has_tls else 0)
        self.__course.begin(self, has_tls=has_tls)
        self.__deadline.set(deadlines.IDLE_SECONDS, self.__end.close)
        self.__holder.begin(self.__evict, has_tls=has_tls)

    def data_received(self, data: bytes) -> None:
        """aiohttp too calls it, without data, to go on with a body."""
        course = self.__course
        if course.state is _IDLE and is_whole_and_small(data):
            # Almost all requests: nothing of them is unfinished, so nothing needs to be counted.
            course.state = _ANSWERING
            self.__was_idle = False
            self.__deadline.clear()
            super().data_received(data)
            return
        self.__holder.arrived(len(data))
        if course.state in (State.LINGERING, State.CLOSED) or self.transport is None:
            self.__end.skip(len(data))
        elif not data:
            super().data_received(data)
        else:
            self.__was_idle = False
            self.__intake.take(data)

    def feed(self, data: bytes) -> None:
        """See `Wire.feed`."""
        super().data_received(data)

    def eof_received(self) -> bool | None:  # type: ignore[override] # aiohttp returns None always
        """The client has half-closed. True keeps the connection open for the answers."""
        course = self.__course
        if self.transport is None or course.state is State.LINGERING or course.has_tls:
            self.__end.close()
            return None
        course.has_half_closed = True
        self.__answering.abort()
        self.__intake.end_body()
        if course.state is not _ANSWERING:
            self.__intake.end()
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        self.__end.lost()
        self.__answering.abort()
        self.__intake.forget()
        self.__deadline.forget()
        self.__holder.end()
        self.__body.lost()
        self.__course.end()
        super().connection_lost(exc)

    # Called by aiohttp's reader of a body

    def pause_reading(self) -> None:
        self.__intake.is_full = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        self.__intake.is_full = False
        super().resume_reading(resume_parser)
        self.__intake.resume()

    # One request after the other

    def respond(self, request: web.BaseRequest) -> Coroutine[Any, Any, web.StreamResponse]:
        """Answers a request; aiohttp then sends the answer."""
        return self.__answering.respond(self, request)

    async def sent(self, *, keep: bool) -> None:
        """Called after an answer was sent: waits for another request, or ends the connection."""
        course, body, intake = self.__course, self.__body, self.__intake
        body.size = 0
        if self.__holder.is_proxy or self.__holder.unfinished is not _FEW:
            self.__holder.sent()
        if not keep or body.broken:
            intake.forget()
            self.__end.linger()
            await self.__end.wait()  # aiohttp closes when this returns
            return
        self.__deadline.set(deadlines.IDLE_SECONDS, self.__end.close)
        if not intake.holds and not body.is_arriving:
            course.state = _IDLE
        else:
            course.state = State.SKIPPING
            if intake.holds:
                intake.go_on()
        if course.has_half_closed and course.state is not _ANSWERING:
            intake.end()

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
        return RenderedResponse(self, self.__sender, reply, last(reply), keep=False)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Writes aiohttp's errors to the process's log."""
        log.error("connection_fault", reason=args[0] % args[1:] if args else "", exc_info=kw.get("exc_info"))

    # The end

    def __evict(self) -> None:
        """All connections together hold too many bytes of unfinished requests, or too much for TLS, and this one has
        held its own for longest."""
        self.__holder.uncount()
        state = self.__course.state
        if state is _ANSWERING:
            self.__answering.evict()
            return
        self.__course.goes = Goes.EVICTED
        if state is _IDLE or self.__body.is_arriving:  # it has TLS, and no request to answer
            self.__end.evict()
        else:
            self.__intake.refuse(f"{TOO_MANY}; retry")

    def drain(self) -> None:
        """Closes if nothing is under way, else after the answer. To be called until the connection is gone.

        The second of two calls closes, if nothing happened between them: at the first, aiohttp may be about to begin a
        request.
        """
        self.__course.end_after_answer()
        if self.__course.state in (_ANSWERING, State.LINGERING) or self.__body.is_arriving:
            self.__answering.abort()
            return
        if self.__was_idle:
            self.__end.close()
        self.__was_idle = True

    def look_at_the_clock(self, now: float) -> None:
        """To be called once a second, with the loop's clock."""
        self.__deadline.look(now)


def _reason(error: BaseException | None) -> str:
    if type(error).__name__ == "LineTooLong":  # a class that aiohttp does not export
        return f"its first line or a header is longer than {LINE_BYTES_MAX} bytes; shorten it"
    return f"the parser can't read it, or it has more than {HEADERS_MAX} headers; check what your client sends"
