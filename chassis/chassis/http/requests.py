"""A request as the process that answers it sees it."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from aiohttp import web

from chassis.http.bodies import Body
from chassis.http.replies import Reply


class Carrier(Protocol):
    """The connection that a request came on."""

    @property
    def has_ended(self) -> bool:
        """Whether nobody waits for the answer any more, or the process stops."""

    def client_address(self, request: web.BaseRequest) -> str:
        """The address that the request came from; empty if the client has left."""

    async def stream(self, request: Request, reply: Reply, pieces: AsyncIterator[bytes]) -> None:
        """See `Request.stream`."""


class Request:
    """One request, until it is answered."""

    __slots__ = (
        "_body",
        "_carrier",
        "_on_abort",
        "_request",
        "caller",
        "headers",
        "id",
        "idle_seconds",
        "is_known",
        "limit_headers",
        "logged_body",
        "method",
        "whole_body",
    )

    def __init__(self, carrier: Carrier, body: Body, request: web.BaseRequest) -> None:
        self._carrier, self._body = carrier, body
        self._request = request
        self._on_abort: Callable[[], None] | None = None
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
        self.logged_body = b""
        """Set by what answers: the body, if a log may have it."""
        self.idle_seconds = 0.0
        """How long the answer waited because its caller wanted it to: for something new, or to read what was sent."""

    @property
    def address(self) -> str:
        """The client's address; empty if it has left."""
        return self._carrier.client_address(self._request)

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
            body = await self._body.read(self._request, bytes_max)
        return body[: bytes_max + 1]

    async def pieces(self, stall_seconds: float, seconds: float) -> AsyncIterator[bytes]:
        """The body as it arrives, of which a little is held at a time; it may be of any length. Raises BodyBroken.

        It is never evicted, so whoever reads one bounds how many there are. A pause lasts `stall_seconds` at most, and
        all of it `seconds`.
        """
        if self.whole_body is not None:
            yield self.whole_body
            return
        async for piece in self._body.pieces(self._request, stall_seconds, seconds):
            yield piece

    def on_abort(self, on_abort: Callable[[], None] | None) -> None:
        """Calls `on_abort` when nobody waits for the answer any more, or the process stops; now, if that is so already.
        None ends this."""
        self._on_abort = on_abort
        if self._carrier.has_ended:
            self.abort()

    def abort(self) -> None:
        """Ends a wait of the answer, if it has said how."""
        if self._on_abort is not None:
            self._on_abort()

    async def stream(self, reply: Reply, pieces: AsyncIterator[bytes]) -> None:
        """Sends the answer now, piece by piece, each once its client has room for it. The reply has no body.

        If it can't be sent to its end, the connection breaks off: no client can take it for whole. Raises
        ConnectionError if the client has left or reads too slowly, and whatever `pieces` raises.
        """
        await self._carrier.stream(self, reply, pieces)


Answer = Callable[[Request], Awaitable[Reply]]


def new_id() -> str:
    """24 hex digits: 12 of the milliseconds since 1970, so that ids ascend with time, and 12 at random."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(6).hex()}"
