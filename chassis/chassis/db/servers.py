"""Connections to PostgreSQL: to that server of the URL which can write, over sockets that notice a lost machine."""

from __future__ import annotations

import socket
from typing import Any

import asyncpg

from chassis.runtime.database_urls import servers

# A machine that vanishes closes no connection. Without these, the kernel keeps one for two hours while it is idle, and
# repeats what was sent for a quarter of an hour.
IDLE_SECONDS, PROBE_SECONDS, PROBES = 10, 5, 2
UNACKNOWLEDGED_SECONDS = 15
OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_SECONDS),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_SECONDS),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_SECONDS * 1000),
)
# The same from the server's side. The server waits longer: a dead client only occupies a connection.
SETTINGS = {
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    # Ends a statement whose client is gone; without it the server looks at the socket when the statement has ended.
    "client_connection_check_interval": "10s",
}
# Another server may answer. A wrong password stays wrong.
ELSEWHERE = (
    OSError,  # TimeoutError is one
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.exceptions.TargetServerAttributeNotMatched,
)


class LiveConnection(asyncpg.Connection):
    """A connection whose socket notices that its peer is gone."""

    def __init__(self, protocol: Any, transport: Any, *more: Any) -> None:
        super().__init__(protocol, transport, *more)
        plug = transport.get_extra_info("socket")
        if plug is not None and plug.family != socket.AF_UNIX:
            for level, option, value in OPTIONS:
                plug.setsockopt(level, option, value)


class Servers:
    """The servers of a URL. The one that a connection was last made to is tried first."""

    def __init__(self, url: str) -> None:
        """Raises ValueError: see `database_urls.servers`."""
        self.url = url
        self._servers = servers(url)

    async def connect(self, *_url: str, timeout: float = 5.0, **options: Any) -> Any:  # noqa: ASYNC109 - asyncpg's name
        """A connection; the form is that of asyncpg's `connect`, and of a pool's.

        All attempts together have `timeout` seconds; each server has the same share. asyncpg itself would spend all of
        it on the first server that does not answer. Raises what the only server raises, or ConnectionError of several.
        """
        options["connection_class"] = LiveConnection
        if len(self._servers) == 1:
            try:
                return await asyncpg.connect(self.url, timeout=timeout, **options)
            except TimeoutError:  # without a word of its own
                host, port = self._servers[0]
                raise TimeoutError(f"{host}:{port} did not answer within {timeout:g} s") from None
        reasons = []
        for server in tuple(self._servers):
            options |= {"host": server.host, "port": server.port, "timeout": timeout / len(self._servers)}
            try:
                connection = await asyncpg.connect(self.url, **options)
            except ELSEWHERE as error:
                reasons.append(f"{server.host}:{server.port}: {error or type(error).__name__}")
                continue
            self._servers = [server, *(other for other in self._servers if other != server)]
            return connection
        raise ConnectionError("; ".join(reasons))
