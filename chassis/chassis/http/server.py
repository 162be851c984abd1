"""aiohttp's server of one port."""

from __future__ import annotations

import asyncio
from typing import cast

from aiohttp import web

from chassis.http.connection import HttpConnection
from chassis.http.connection_limits import ConnectionLimits
from chassis.http.deadlines import STALL_SECONDS
from chassis.http.replies import ErrorReplies
from chassis.http.requests import Answer


class HttpServer:
    """Makes the connections, lists them, and hands each request to `answer`."""

    def __init__(
        self,
        answer: Answer,
        limits: ConnectionLimits,
        errors: ErrorReplies,
        stall_seconds: float = STALL_SECONDS,
        application: web.Server | None = None,
    ) -> None:
        """A pause inside a body lasts `stall_seconds` at most. The requests are those of the server `application`, for
        an `answer` that hands them to a `web.Application`."""
        self._answer = answer
        self._limits, self._errors = limits, errors
        self._stall_seconds = stall_seconds
        factory = None if application is None else application.request_factory
        self._server = web.Server(
            lambda request: cast("HttpConnection", request.protocol).respond(request), request_factory=factory
        )

    def connection(self, client: str) -> HttpConnection:
        """A protocol for a connection that is counted by `client`, from `ConnectionLimits.enter`."""
        return HttpConnection(
            self._server,
            self._answer,
            self._limits,
            self._errors,
            client,
            self._stall_seconds,
            asyncio.get_running_loop(),
        )

    def connections(self) -> list[HttpConnection]:
        """All open connections, and those whose client left before its answer was ready."""
        return cast("list[HttpConnection]", self._server.connections)

    async def abort(self) -> None:
        """Ends the connections that `HttpConnection.drain` has not ended, and the requests under way on them."""
        await self._server.shutdown(0.1)  # 0 would mean no limit
