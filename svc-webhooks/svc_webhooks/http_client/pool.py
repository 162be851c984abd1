"""Retains connections for the next request to the same address, port and name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from svc_webhooks.http_client.connection import ReceiverConnection
from svc_webhooks.http_client.sockets import Endpoint

IDLE_SECONDS_MAX = 15.0
KEPT_MAX = 256


class Pool:
    """One for each process; made inside the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[ReceiverConnection, None] = {}  # longest idle first
        self._by_key: dict[tuple[Endpoint, str], list[ReceiverConnection]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, endpoints: Iterable[Endpoint], name: str) -> ReceiverConnection | None:
        """The most recently used connection to one of `endpoints`, for this name."""
        for endpoint in endpoints:
            while idle := self._by_key.get((endpoint, name)):
                connection = idle[-1]
                self._forget(connection)
                if not connection.closed:
                    return connection
        return None

    def keep(self, connection: ReceiverConnection) -> None:
        """Retains the connection for the next request. If there are too many, closes the longest idle one."""
        if connection.closed:
            return
        if self._closed:
            connection.close()
            return
        connection.idle_since = self._loop.time()
        self._idle[connection] = None
        self._by_key.setdefault((connection.endpoint, connection.name), []).append(connection)
        if len(self._idle) > KEPT_MAX:
            self._let_go(next(iter(self._idle)))
        if self._timer is None:
            self._timer = self._loop.call_later(IDLE_SECONDS_MAX, self._close_idle)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._idle):
            self._let_go(connection)

    def _close_idle(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._idle:
            longest = next(iter(self._idle))
            seconds = longest.idle_since + IDLE_SECONDS_MAX - now
            if seconds > 0:
                self._timer = self._loop.call_later(seconds, self._close_idle)
                return
            self._let_go(longest)

    def _let_go(self, connection: ReceiverConnection) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: ReceiverConnection) -> None:
        del self._idle[connection]
        key = connection.endpoint, connection.name
        idle = self._by_key[key]
        idle.remove(connection)
        if not idle:
            del self._by_key[key]
