"""The console's application behind the limits of `chassis.http`: its connections, its budgets and its deadlines.

aiohttp's application routes requests and runs the middlewares. It neither reads a body nor writes an answer: a page
reads what it takes from the `Request` of `chassis.http`, and its answer is sent by that connection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import cast

import structlog
from aiohttp import web

from chassis.http import memory
from chassis.http.connection_limits import ConnectionLimits, Sizes
from chassis.http.port import Listening, Port
from chassis.http.replies import ErrorReplies, Reply
from chassis.http.requests import Request
from chassis.refusals import Unavailable
from console import config
from console.kit.statics import PREFIX

REQUEST: web.RequestKey[Request] = web.RequestKey("request", Request)
"""Where a request's connection is found."""
OF_CONNECTION = frozenset({"connection", "content-length", "date", "server", "transfer-encoding"})
"""Headers that the connection writes."""
CACHING = "cache-control"
# A page that is made takes more memory than an answer of the API, and forms are fewer than an integration's requests.
SIZES = Sizes(unfinished=8 * 1024 * 1024, unread=8 * 1024 * 1024)
_TEXT = b"Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"

log = structlog.stdlib.get_logger(__name__)


class Streamed(web.StreamResponse):
    """An answer that is sent piece by piece, each once the browser has room for it."""

    def __init__(self, pieces: AsyncGenerator[bytes], headers: Mapping[str, str]) -> None:
        super().__init__(headers=headers)
        self.pieces = pieces


class Server:
    """The application at its port."""

    def __init__(self, application: web.Application, settings: config.Config) -> None:
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False)
        self._settings = settings
        self._port: Port | None = None

    async def open(self) -> None:
        """Raises SettingsError if the port can't be listened on."""
        await self._runner.setup()
        settings = self._settings
        if settings.tls is not None:
            memory.return_large_blocks()  # each TLS connection has one, mostly unused
        limits = ConnectionLimits(
            settings.connections_max, settings.connections_per_address_max, settings.trusted_proxies, SIZES
        )
        self._port = Port(
            Listening("MAKEREADY_ADMIN_PORT", settings.host, settings.port, settings.tls),
            self._answer,
            limits,
            ERRORS,
            application=self._runner.server,
        )
        await self._port.open()

    async def close(self) -> None:
        """Lets requests under way finish, and ends the application."""
        if self._port is not None:
            await self._port.close()
        await self._runner.cleanup()

    async def _answer(self, request: Request) -> Reply:
        parsed = cast("web.Request", request.parsed)
        assert self._runner.server is not None
        parsed[REQUEST] = request
        try:
            response = await self._runner.server.request_handler(parsed)
        except web.HTTPException as error:
            response = error
        finally:
            del parsed[REQUEST]  # each would keep the other in memory
        reply = reply_of(response)
        if isinstance(response, Streamed):
            try:
                async with aclosing(response.pieces) as pieces:
                    await request.stream(reply, pieces)
            except (ConnectionError, Unavailable) as error:
                log.info("stream_broken_off", request_id=request.id, reason=str(error) or type(error).__name__)
        elif parsed.path.startswith(PREFIX):
            return reply._replace(is_shared=True)
        return reply


def reply_of(response: web.StreamResponse) -> Reply:
    """An answer of the application's as its connection sends it."""
    lines, caching = [], Reply(200, b"").caching
    pairs = [(name, value) for name, value in response.headers.items() if name.lower() not in OF_CONNECTION]
    pairs += [("Set-Cookie", cookie.OutputString()) for cookie in response.cookies.values()]
    for name, value in pairs:
        if "\r" in value or "\n" in value:
            raise ValueError(f"a line end in the header {name}")
        line = f"{name}: {value}\r\n".encode()
        if name.lower() == CACHING:
            caching = line
        else:
            lines.append(line)
    body = response.body if isinstance(response, web.Response) else None
    assert body is None or isinstance(body, bytes), "an answer's body is whole, or Streamed"
    return Reply(response.status, body or b"", b"".join(lines), caching=caching)


def _malformed(reason: str) -> Reply:
    return Reply(400, f"The request is not well-formed HTTP/1.1: {reason}.\n".encode(), _TEXT)


ERRORS = ErrorReplies(_malformed, Reply(500, b"Something went wrong here.\n", _TEXT))
