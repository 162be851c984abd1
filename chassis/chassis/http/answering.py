"""The request under way on a connection, from the end of its head until its answer is ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from chassis.http import replies
from chassis.http.answers import RenderedResponse, Sender, StreamedResponse, has_chunks
from chassis.http.bodies import Body, expects_continue
from chassis.http.course import Course, Goes, Wire
from chassis.http.ending import SKIPPED_BYTES_MAX
from chassis.http.holder import Holder, Unfinished
from chassis.http.intake import Intake
from chassis.http.replies import ErrorReplies, Reply
from chassis.http.requests import Answer, Request

TOO_MANY = "too many requests are arriving at once and this one took longest"

_COUNTED = Unfinished.COUNTED  # a member costs more to find by its class, for each request


class Answering:
    """Has the requests of one connection answered, one after the other."""

    __slots__ = (
        "_answer",
        "_body",
        "_course",
        "_errors",
        "_holder",
        "_intake",
        "_keeps_after_stream",
        "_request",
        "_sender",
        "_task",
    )

    def __init__(
        self,
        answer: Answer,
        errors: ErrorReplies,
        course: Course,
        holder: Holder,
        body: Body,
        intake: Intake,
        sender: Sender,
    ) -> None:
        self._answer, self._errors, self._course, self._holder = answer, errors, course, holder
        self._body, self._intake, self._sender = body, intake, sender
        self._request: Request | None = None
        """The request that `answer` works on."""
        self._task: asyncio.Task[object] | None = None
        """Its task, if bytes of it are counted."""
        self._keeps_after_stream: bool | None = None
        """Whether another request may follow the answer that was streamed; None if none was."""

    async def respond(self, wire: Wire, parsed: web.BaseRequest) -> web.StreamResponse:
        """Answers a request; aiohttp then sends the answer."""
        holder, content = self._holder, parsed.content
        if holder.is_proxy and not holder.enter_from_proxy(forwarded_for(parsed)):
            transport = self._course.transport
            if transport is not None:
                transport.abort()
            return RenderedResponse(wire, self._sender, self._errors.fault, (b"", b""), keep=False)
        request = self._request = Request(self, self._body, parsed)
        self._body.content = content
        try:
            if holder.unfinished is _COUNTED or not content.is_eof() or "Transfer-Encoding" in parsed.headers:
                reply = await self._answer_counted(parsed, request)
            else:
                # Read at once: aiohttp forbids reading it after the client has left.
                request.whole_body = content.read_nowait()
                reply = await self._answer(request)
        finally:
            self._request = self._body.content = None
            self._body.unread = None if content.is_eof() else content
        if self._keeps_after_stream is not None:
            keep, self._keeps_after_stream = self._keeps_after_stream, None
            return StreamedResponse(wire, keep=keep)
        keep = self._may_keep(parsed)
        parts = replies.raw(reply, request.id, self._headers(request, keep=keep), head=request.method == "HEAD")
        return RenderedResponse(wire, self._sender, reply, parts, keep=keep)

    async def _answer_counted(self, parsed: web.BaseRequest, request: Request) -> Reply:
        """Answers a request that may be evicted: until its caller is known and its body has arrived."""
        if self._course.was_evicted:
            self._body.drop(parsed.content)
            return self._errors.malformed(TOO_MANY)
        if not self._body.expect(parsed):
            self._course.end_after_answer()
            return self._errors.malformed("its Transfer-Encoding is something else than chunked alone")
        if not self._body.broken:
            if self._intake.holds:
                self._intake.go_on()
            if parsed.content.is_eof():
                request.whole_body = parsed.content.read_nowait()
        if self._course.has_half_closed:
            self._intake.end_body()
        task = self._task = asyncio.current_task()
        try:
            return await self._answer(request)
        except asyncio.CancelledError:
            if not self._course.was_evicted or task is None:
                raise
            task.uncancel()
            return self._errors.malformed(TOO_MANY)
        finally:
            self._task = None
            self._holder.finish()

    def _headers(self, request: Request, *, keep: bool) -> bytes:
        """The header lines that depend on the key and on the connection."""
        headers = request.limit_headers
        if self._course.has_tls:
            self._holder.know(is_known=request.is_known)
        if not keep:
            return headers + b"Connection: close\r\n"
        return headers + b"Connection: keep-alive\r\n" if request.parsed.version.minor == 0 else headers

    def _may_keep(self, request: web.BaseRequest) -> bool:
        """Whether another request may follow the answer to this one."""
        if not request.keep_alive or self._course.goes or request.method == "CONNECT" or _asks_to_upgrade(request):
            return False
        content = request.content
        if content.is_eof() and not self._body.broken:
            return True
        # A client that expects 100 Continue skips the body and sends its next request, which would be parsed as the
        # body.
        if content.exception() is not None or expects_continue(request):
            return False
        declared = request.headers.get("Content-Length", "")
        return declared.isdigit() and int(declared) <= SKIPPED_BYTES_MAX

    def evict(self) -> None:
        """Ends the request under way, unless its caller is known and its body has arrived."""
        is_known = self._request is not None and self._request.is_known
        if is_known and not self._body.is_arriving:
            return
        self._course.goes = Goes.EVICTED
        self._intake.break_body(TOO_MANY)
        if self._task is not None and not is_known:
            self._task.cancel()

    def abort(self) -> None:
        """Ends a wait of the answer: see `Request.on_abort`."""
        if self._request is not None:
            self._request.abort()

    # For the request

    @property
    def has_ended(self) -> bool:
        return self._course.has_ended

    def client_address(self, request: web.BaseRequest) -> str:
        transport = self._course.transport
        peer = transport and transport.get_extra_info("peername")
        return self._holder.client_address(str(peer[0]), forwarded_for(request)) if peer else ""

    async def stream(self, request: Request, reply: Reply, pieces: AsyncIterator[bytes]) -> None:
        keep = has_chunks(request.parsed) and self._may_keep(request.parsed)
        headers = self._headers(request, keep=keep)
        self._keeps_after_stream = False
        await self._sender.stream(request, reply, headers, pieces)
        self._keeps_after_stream = keep


def forwarded_for(request: web.BaseRequest) -> list[str]:
    return request.headers.getall("X-Forwarded-For", [])


def _asks_to_upgrade(request: web.BaseRequest) -> bool:
    return "Upgrade" in request.headers and "upgrade" in request.headers.get("Connection", "").lower()
