"""An answer on its way to the client: whole or in pieces, as fast as the client reads, within a time and a budget."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from chassis.http import deadlines, replies
from chassis.http.connection_limits import Budget
from chassis.http.course import Course, Wire
from chassis.http.deadlines import Deadline
from chassis.http.replies import PIECE_BYTES, Reply
from chassis.http.requests import Request

# Held for a client that does not read, besides its answer: objects of the request, and the copies that TLS encrypts.
UNREAD_BYTES, UNREAD_TLS_BYTES = 8 * 1024, 96 * 1024

_LAST_CHUNK = b"0\r\n\r\n"
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Sender:
    """Sends the answers of one connection, one after the other."""

    __slots__ = ("_course", "_deadline", "_loop", "_unread")

    def __init__(self, loop: asyncio.AbstractEventLoop, course: Course, deadline: Deadline, unread: Budget) -> None:
        self._loop, self._course, self._deadline, self._unread = loop, course, deadline, unread

    async def send(self, writer: AbstractStreamWriter, data: bytes, tail: bytes, *, is_shared: bool) -> None:
        """Sends an answer, a long one in pieces. Returns once the transport's buffer has room again.

        `tail` follows `data`. If it `is_shared`, no memory becomes free when the client has read it.
        Raises ConnectionError if the client has left, or has not read it in time.
        """
        wire = self._course.wire
        transport = None if wire is None else wire.transport
        if wire is None or transport is None or transport.is_closing():
            raise ConnectionResetError("the client left")
        if tail and not self._course.has_tls:
            transport.writelines((data, tail))
            unsent = b""
        else:
            transport.write(data)
            unsent = tail
        if unsent or wire.writing_paused:
            size = 0 if is_shared else len(data) + len(tail)
            await self._send_as_it_is_read(wire, transport, writer, unsent, size)

    async def _send_as_it_is_read(
        self, wire: Wire, transport: asyncio.Transport, writer: AbstractStreamWriter, unsent: bytes, size: int
    ) -> None:
        """When the client has read the answer, `size` bytes become free."""
        self._deadline.set(deadlines.UNREAD_SECONDS, transport.abort)
        self._unread.hold(transport.abort, size + (UNREAD_TLS_BYTES if self._course.has_tls else UNREAD_BYTES))
        try:
            view = memoryview(unsent)
            for at in range(0, len(view), PIECE_BYTES):
                if wire.writing_paused:
                    await writer.drain()
                if transport.is_closing():
                    raise ConnectionResetError("the client left")
                transport.write(view[at : at + PIECE_BYTES])
            if wire.writing_paused:
                await writer.drain()
        finally:
            self._unread.release(transport.abort)

    async def stream(self, request: Request, reply: Reply, headers: bytes, pieces: AsyncIterator[bytes]) -> None:
        """See `Request.stream`. The `headers` are more whole lines."""
        is_chunked = has_chunks(request.parsed)
        if is_chunked:
            headers += b"Transfer-Encoding: chunked\r\n"
        try:
            await self._send_piece(request, replies.head_of(reply, request.id, headers), b"")
            if request.method != "HEAD":
                await self._send_pieces(request, pieces, is_chunked=is_chunked)
        except BaseException:
            self._break_off(is_chunked)
            raise

    async def _send_pieces(self, request: Request, pieces: AsyncIterator[bytes], *, is_chunked: bool) -> None:
        async for piece in pieces:
            if not piece:
                continue
            if is_chunked:
                await self._send_piece(request, b"%x\r\n" % len(piece), piece + b"\r\n")
            else:
                await self._send_piece(request, piece, b"")
        if is_chunked:
            await self._send_piece(request, _LAST_CHUNK, b"")

    async def _send_piece(self, request: Request, data: bytes, tail: bytes) -> None:
        begun = self._loop.time()
        await self.send(request.parsed.writer, data, tail, is_shared=False)
        self._deadline.clear()
        request.idle_seconds += self._loop.time() - begun

    def _break_off(self, is_chunked: bool) -> None:
        """Ends the connection in the middle of an answer, so that its client can see that something is missing."""
        transport = self._course.transport
        if transport is None:
            return
        if not is_chunked:
            # Where the end of the connection ends the answer, only a reset shows that this is not the end.
            its_socket: socket.socket | None = transport.get_extra_info("socket")
            if its_socket is not None:
                its_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        transport.abort()


def has_chunks(request: web.BaseRequest) -> bool:
    """Whether an answer may come in chunks. HTTP/1.0 has none: there the end of the connection ends the answer."""
    return request.version.minor > 0


class RenderedResponse(web.StreamResponse):
    """A response whose bytes are ready: aiohttp adds nothing to them."""

    def __init__(self, wire: Wire, sender: Sender, reply: Reply, parts: tuple[bytes, bytes], *, keep: bool) -> None:
        """For `parts` see `replies.raw`. Another request may follow on the connection if `keep`."""
        super().__init__(status=reply.status)
        self._wire, self._sender = wire, sender
        self._parts = parts
        self._is_shared = reply.is_shared
        self._keep = keep

    @property
    def keep_alive(self) -> bool:
        return self._keep

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        await self._sender.send(request.writer, *self._parts, is_shared=self._is_shared)
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        await self._wire.sent(keep=self._keep)


class StreamedResponse(web.StreamResponse):
    """A response that `Sender.stream` has sent, or has broken off."""

    def __init__(self, wire: Wire, *, keep: bool) -> None:
        super().__init__()
        self._wire = wire
        self._keep = keep

    @property
    def keep_alive(self) -> bool:
        return self._keep

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        await self._wire.sent(keep=self._keep)
