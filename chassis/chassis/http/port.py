"""A port for HTTP: open from the start, closed without dropping requests under way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from dataclasses import dataclass

import structlog
from aiohttp import web

from chassis.http import deadlines, memory
from chassis.http.connection_limits import ConnectionLimits
from chassis.http.deadlines import STALL_SECONDS
from chassis.http.handshakes import Handshakes, hello_bytes
from chassis.http.replies import ErrorReplies
from chassis.http.requests import Answer
from chassis.http.server import HttpServer
from chassis.runtime import open_files
from chassis.runtime.settings import SettingsError

GRACE_SECONDS = 10.0
BACKLOG = 1024
HANDSHAKE_SECONDS = 10.0
# How many connections are accepted before the requests of others go on.
ACCEPTED_AT_ONCE = 64
ACCEPT_AGAIN_SECONDS = 1.0
# The kernel holds this much for a connection that is not read, and one read returns no more: it fits most requests.
RECEIVE_BYTES = 64 * 1024
# Files of the process that are no clients' connections: databases, NATS, other services, logs.
OTHER_FILES = 256
LOG_REFUSED_SECONDS = 60.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class _Silent:
    """A connection without a protocol."""

    client: str
    """By which it is counted."""
    until: float
    """When its time is over, by the loop's clock."""
    arrived: int = 0
    """How many bytes of its client's first message of TLS had arrived when it was last looked at."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a port listens. `setting` is the variable that sets it, for the operator."""

    setting: str
    host: str
    port: int
    tls: ssl.SSLContext | None = None


class Port:
    """One listening port and its connections.

    A connection is a bare socket until the client sends something: only then it gets a protocol and, with TLS, its turn
    at a handshake.
    """

    def __init__(
        self,
        listening: Listening,
        answer: Answer,
        limits: ConnectionLimits,
        errors: ErrorReplies,
        stall_seconds: float = STALL_SECONDS,
        application: web.Server | None = None,
    ) -> None:
        """For `stall_seconds` and `application` see `HttpServer`."""
        self._where = listening
        self.number = listening.port
        self._tls = listening.tls
        self._limits = limits
        self._http = HttpServer(answer, limits, errors, stall_seconds, application)
        self._sockets: list[socket.socket] = []
        self._silent: dict[socket.socket, _Silent] = {}
        """Connections without a protocol: their client has sent nothing, or they wait for their handshake."""
        self._connecting: set[asyncio.Task[None]] = set()
        """They get their protocol."""
        self._handshakes = Handshakes(limits, self._begin)
        self._watch: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        """The number of connections, including those whose client left before its answer was ready."""
        return len(self._http.connections()) + len(self._silent) + len(self._connecting)

    async def open(self) -> None:
        """Opens the port. Raises SettingsError if it can't."""
        loop = asyncio.get_running_loop()
        self._limits.limit(open_files.allow_many() - OTHER_FILES)
        try:
            addresses = await loop.getaddrinfo(
                self._where.host, self.number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, _, _, _, address in dict.fromkeys(addresses):
                self._sockets.append(_listen(family, address))
        except OSError as error:
            number = error.errno or 0  # below 0: the name can't be resolved
            reason = os.strerror(number) if number > 0 else error.strerror
            for listening in self._sockets:
                listening.close()
            raise SettingsError(
                f"{self._where.setting}: {self._where.host}:{self.number} can't be listened on: {reason}."
            ) from None
        for listening in self._sockets:
            loop.add_reader(listening, self._accept, listening)
        self._watch = asyncio.create_task(self._look_at_the_clock())
        log.info("port_open", setting=self._where.setting, host=self._where.host, port=self.number)

    async def close(self) -> None:
        """Accepts no more connections, closes the idle ones, and lets requests under way finish for 10 s."""
        if self._watch is None:
            return
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()
        deadline = loop.time() + GRACE_SECONDS
        was_silent: set[socket.socket] = set()
        while self.connections and loop.time() < deadline:
            for connection in self._http.connections():
                connection.drain()
            for silent in was_silent & self._silent.keys():  # twice, as `HttpConnection.drain`
                self._drop(silent)
            was_silent = set(self._silent)
            await asyncio.sleep(0.02)
        for task in list(self._connecting):
            task.cancel()
        await self._http.abort()
        self._watch.cancel()

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no more files or memory; the listening socket would stay readable
                log.error("accept_failed", setting=self._where.setting, reason=str(error))
                loop.remove_reader(listening)
                loop.call_later(ACCEPT_AGAIN_SECONDS, self._accept_again, listening)
                return
            client = self._limits.enter(address[0])
            if client is None:
                accepted.close()
                continue
            accepted.setblocking(False)
            seconds = HANDSHAKE_SECONDS if self._tls else deadlines.IDLE_SECONDS
            self._silent[accepted] = _Silent(client, loop.time() + seconds)
            loop.add_reader(accepted, self._arrived, accepted)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _arrived(self, accepted: socket.socket) -> None:
        """The client has sent something, or has left."""
        silent = self._silent[accepted]
        if self._tls is None:
            asyncio.get_running_loop().remove_reader(accepted)
            self._begin(accepted)
            return
        arrived, size = hello_bytes(accepted)
        if not size:
            self._drop(accepted)
        elif silent.arrived < arrived < size:
            silent.arrived = arrived
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)  # it is not readable before
        else:  # all has arrived, or no more will
            asyncio.get_running_loop().remove_reader(accepted)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            self._handshakes.wait(accepted, silent.client)

    def _begin(self, accepted: socket.socket) -> asyncio.Task[None]:
        """Gives a socket its protocol; with TLS that is its handshake."""
        loop = asyncio.get_running_loop()
        silent = self._silent.pop(accepted)
        connection = self._http.connection(silent.client)
        seconds = max(1.0, silent.until - loop.time()) if self._tls else None

        async def connect() -> None:
            with contextlib.suppress(OSError):  # no TLS, or too slow
                await loop.connect_accepted_socket(
                    lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=seconds
                )

        def connected(task: asyncio.Task[None]) -> None:
            self._connecting.discard(task)
            if not connection.was_made:  # or it was evicted, maybe before its first step
                accepted.close()
                self._limits.leave(silent.client)

        task = loop.create_task(connect())
        self._connecting.add(task)
        task.add_done_callback(connected)
        return task

    def _drop(self, accepted: socket.socket) -> None:
        silent = self._silent.pop(accepted)
        self._handshakes.forget(accepted, silent.client)
        asyncio.get_running_loop().remove_reader(accepted)
        accepted.close()
        self._limits.leave(silent.client)

    async def _look_at_the_clock(self) -> None:
        loop = asyncio.get_running_loop()
        log_again_at = 0.0
        while True:
            await asyncio.sleep(1)
            now = loop.time()
            for connection in self._http.connections():
                connection.look_at_the_clock(now)
            for accepted in [accepted for accepted, silent in self._silent.items() if silent.until <= now]:
                self._drop(accepted)
            self._handshakes.evict_slow(now)
            if self._limits.refused and now >= log_again_at:
                log.warning("connections_refused", count=self._limits.take_refused(), open=self._limits.connections)
                log_again_at = now + LOG_REFUSED_SECONDS
            if self._limits.has_memory_to_give_back(now):
                memory.give_back()


def _listen(family: int, address: tuple[object, ...]) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setblocking(False)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening
