"""The body of the request under way: where it ends, who reads it, and what becomes of the rest of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from aiohttp import StreamReader, web

from chassis.http import deadlines
from chassis.http.framing import Chunks, Length
from chassis.http.holder import Holder

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BodyBroken(Exception):  # noqa: N818 - says what is the matter
    """The body ended early, came too slowly, or its chunks are malformed. The text says which."""


class Body:
    """The body of one request after the other."""

    __slots__ = (
        "_frame",
        "_has_waiting_reader",
        "_holder",
        "_loop",
        "_stall_seconds",
        "broken",
        "content",
        "size",
        "unread",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, holder: Holder, stall_seconds: float) -> None:
        self._loop, self._holder, self._stall_seconds = loop, holder, stall_seconds
        self._frame: Length | Chunks | None = None
        """The part that has not arrived."""
        self.content: StreamReader | None = None
        """Where the answer under way reads it."""
        self._has_waiting_reader = False
        self.unread: StreamReader | None = None
        """Of a request that was answered before all of it had arrived; aiohttp reads it to its end."""
        self.broken = ""
        """Why the rest is not taken; nothing that arrives is, until the answer is sent."""
        self.size = 0
        """How many bytes have arrived."""

    @property
    def is_arriving(self) -> bool:
        return self._frame is not None

    # Between the client and the parser

    def expect(self, request: web.BaseRequest) -> bool:
        """Finds out where the body ends, behind its head; False if its framing is not spoken here."""
        if self.broken:
            request.content.set_exception(BodyBroken(self.broken))
            return True
        encodings = request.headers.getall("Transfer-Encoding", ())
        if not encodings:
            length = Length(int(request.headers.get("Content-Length", 0)))  # the parser takes plain digits alone
            self._frame = None if length.has_ended else length
        elif len(encodings) == 1 and encodings[0].lower() == "chunked" and request.version.minor:
            self._frame = Chunks()
        else:
            return False
        return True

    def take(self, data: bytes) -> int:
        """How many of the next bytes are the body's. Raises MalformedChunks."""
        assert self._frame is not None
        size = self._frame.take(data)
        if self._frame.has_ended:
            self._frame = None
        self.size += size
        return size

    def break_off(self, reason: str) -> None:
        """No more of it is taken, and no request after it."""
        self.broken, self._frame = reason, None
        if self.content is not None:
            self.drop(self.content)
            self.content.set_exception(BodyBroken(reason))

    def drop(self, content: StreamReader) -> None:
        """Frees what has arrived of a body that nobody will read: it would stay until the connection ends.

        A waiting reader takes it out by itself. If it was told of bytes that are gone then, it would wait for others.
        """
        if not self._has_waiting_reader and content.exception() is None:
            content.read_nowait()

    def lost(self) -> None:
        """No more can arrive."""
        if self.unread is not None:
            self.unread.feed_eof()  # else aiohttp waits for it, and keeps all that belongs to the connection

    # For who answers

    async def read(self, request: web.BaseRequest, bytes_max: int) -> bytes:
        """Reads it until it ends, or until it is longer than allowed. Raises BodyBroken."""
        content = request.content
        broken = content.exception()
        if broken is not None:
            raise broken
        body = b"" if content.at_eof() else await self._read(request, bytes_max)
        self._holder.uncount()
        return body

    async def _read(self, request: web.BaseRequest, bytes_max: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            async with aclosing(self._arriving(request, self._stall_seconds, deadlines.BODY_SECONDS)) as arriving:
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
        self._holder.exempt()
        broken = request.content.exception()
        if broken is not None:
            raise broken
        async for piece in self._arriving(request, stall_seconds, seconds):
            yield piece

    async def _arriving(self, request: web.BaseRequest, stall_seconds: float, seconds: float) -> AsyncGenerator[bytes]:
        """What arrives of a body, until it ends. Raises BodyBroken."""
        content = request.content
        if expects_continue(request):
            await request.writer.write(_CONTINUE)
        ends_at = self._loop.time() + seconds
        while not content.at_eof():
            # No frame here has a name for a piece: an exception keeps the frames, and the body keeps the exception.
            yield await self._next(content, min(ends_at, self._loop.time() + stall_seconds))

    async def _next(self, content: StreamReader, deadline: float) -> bytes:
        self._has_waiting_reader = True
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
            self._has_waiting_reader = False


def expects_continue(request: web.BaseRequest) -> bool:
    return request.headers.get("Expect", "").lower() == "100-continue"
