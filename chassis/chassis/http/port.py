"""A port for HTTP: open from the start, closed without dropping requests under way."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import Counter
from typing import Any

import structlog
from aiohttp import web

from chassis.http import deadlines, memory
from chassis.http.connection_limits import HANDSHAKE_BYTES, ConnectionLimits
from chassis.http.deadlines import STALL_SECONDS
from chassis.http.replies import ErrorReplies
from chassis.http.requests import Answer
from chassis.http.server import HttpServer
from chassis.runtime import open_files
from chassis.runtime.settings import SettingsError

GRACE_SECONDS = 10.0
BACKLOG = 1024
HANDSHAKE_SECONDS = 10.0
# A handshake that takes longer is evicted if others wait.
HANDSHAKE_SLOW_SECONDS = 4.0
# How many connections are accepted before the requests of others go on.
ACCEPTED_AT_ONCE = 64
ACCEPT_AGAIN_SECONDS = 1.0
# The kernel holds this much for a connection that is not read, and one read returns no more: it fits most requests.
RECEIVE_BYTES = 64 * 1024
# Files of the process that are no clients' connections: databases, NATS, other services, logs.
OTHER_FILES = 256
LOG_REFUSED_SECONDS = 60.0

log = structlog.stdlib.get_logger(__name__)


class Port:
    """One listening port and its connections.

    A connection is a bare socket until the client sends something: only then it gets a protocol and, with TLS, the
    memory that a handshake takes.
    """

    def __init__(
        self,
        setting: str,
        host: str,
        port: int,
        answer: Answer,
        tls: ssl.SSLContext | None,
        limits: ConnectionLimits,
        errors: ErrorReplies,
        stall_seconds: float = STALL_SECONDS,
        application: web.Server | None = None,
    ) -> None:
        """setting: the variable that sets the port, for the operator. stall_seconds,
        application: see `HttpServer`."""
        self._setting = setting
        self._host = host
        self.number = port
        self._tls = tls
        self._limits = limits
        self._http = HttpServer(answer, limits, errors, stall_seconds, application)
        self._listening: list[socket.socket] = []
        self._silent: dict[socket.socket, tuple[str, float]] = {}
        """Connections whose client has sent nothing: by which name it is counted, and until when it may be silent."""
        self._waiting: dict[str, dict[socket.socket, None]] = {}
        """Those of `_silent` whose client has sent something, by client: they wait for room in the budget of
        handshakes. The client whose turn is next comes first."""
        self._beginning: dict[asyncio.Task[None], tuple[float, str]] = {}
        """When each began, in that order, and whose it is."""
        self._watch: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        """The number of connections, including those whose client left before its answer was ready."""
        return len(self._http.connections()) + len(self._silent) + len(self._beginning)

    async def open(self) -> None:
        """Opens the port. Raises SettingsError if it can't."""
        loop = asyncio.get_running_loop()
        self._limits.limit(open_files.allow_many() - OTHER_FILES)
        try:
            found = await loop.getaddrinfo(self._host, self.number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, _, _, _, address in dict.fromkeys(found):
                self._listening.append(_listen(family, address))
        except OSError as error:
            number = error.errno or 0  # below 0: the name can't be resolved
            reason = os.strerror(number) if number > 0 else error.strerror
            for listening in self._listening:
                listening.close()
            raise SettingsError(
                f"{self._setting}: {self._host}:{self.number} can't be listened on: {reason}."
            ) from None
        for listening in self._listening:
            loop.add_reader(listening, self._accept, listening)
        self._watch = asyncio.create_task(self._look_at_the_clock())
        log.info("port_open", setting=self._setting, host=self._host, port=self.number)

    async def close(self) -> None:
        """Accepts no more connections, closes the idle ones, and lets requests under way finish for 10 s."""
        if self._watch is None:
            return
        loop = asyncio.get_running_loop()
        for listening in self._listening:
            loop.remove_reader(listening)
            listening.close()
        self._listening.clear()
        deadline = loop.time() + GRACE_SECONDS
        was_silent: set[socket.socket] = set()
        while self.connections and loop.time() < deadline:
            for connection in self._http.connections():
                connection.drain()
            for silent in was_silent & self._silent.keys():  # twice, as `Connection.drain`
                self._drop(silent)
            was_silent = set(self._silent)
            await asyncio.sleep(0.02)
        for task in list(self._beginning):
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
                log.error("accept_failed", setting=self._setting, reason=str(error))
                loop.remove_reader(listening)
                loop.call_later(ACCEPT_AGAIN_SECONDS, self._accept_again, listening)
                return
            client = self._limits.enter(address[0])
            if client is None:
                accepted.close()
                continue
            accepted.setblocking(False)
            seconds = HANDSHAKE_SECONDS if self._tls else deadlines.IDLE_SECONDS
            self._silent[accepted] = client, loop.time() + seconds
            loop.add_reader(accepted, self._begin, accepted)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _begin(self, accepted: socket.socket) -> None:
        """The client has sent something, or has left."""
        asyncio.get_running_loop().remove_reader(accepted)
        client, _ = self._silent[accepted]
        if self._tls and not self._has_room_for(client):
            self._waiting.setdefault(client, {})[accepted] = None
        else:
            self._begin_now(accepted)

    def _has_room_for(self, client: str) -> bool:
        """Whether a handshake of the client may begin now.

        If there is no room, the client with the most handshakes gives one up, the oldest, to one that has at least two
        fewer. So nobody waits for handshakes that another one does not end.
        """
        if self._limits.handshakes.has_room(HANDSHAKE_BYTES):
            return True
        counts = Counter(other for _, other in self._beginning.values())
        busiest = max(counts, key=counts.__getitem__, default=client)
        if counts[busiest] - counts[client] < 2:
            return False
        self._evict(next(task for task, (_, other) in self._beginning.items() if other == busiest))
        return True

    def _evict(self, task: asyncio.Task[None]) -> None:
        del self._beginning[task]
        self._limits.handshakes.evict(task.cancel)

    def _begin_now(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        client, silent_until = self._silent.pop(accepted)
        seconds = max(1.0, silent_until - loop.time()) if self._tls else None
        task = loop.create_task(self._connect(accepted, client, seconds))
        if self._tls:
            self._limits.handshakes.hold(task.cancel, HANDSHAKE_BYTES)
        self._beginning[task] = loop.time(), client
        task.add_done_callback(self._begun)

    def _begin_waiting(self) -> None:
        while self._waiting and self._limits.handshakes.has_room(HANDSHAKE_BYTES):
            client, waiting = next(iter(self._waiting.items()))
            accepted = next(iter(waiting))
            self._no_longer_waits(accepted, client)
            if client in self._waiting:  # the others' turns come first
                self._waiting[client] = self._waiting.pop(client)
            self._begin_now(accepted)

    def _no_longer_waits(self, accepted: socket.socket, client: str) -> None:
        waiting = self._waiting.get(client, {})
        waiting.pop(accepted, None)
        if not waiting:
            self._waiting.pop(client, None)

    async def _connect(self, accepted: socket.socket, client: str, handshake_seconds: float | None) -> None:
        connection = self._http.connection(client)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=handshake_seconds
            )
        except (OSError, asyncio.CancelledError):  # no TLS, too slow, or one handshake too many
            accepted.close()
        finally:
            if not connection.was_made:
                self._limits.leave(client)

    def _begun(self, task: asyncio.Task[None]) -> None:
        self._beginning.pop(task, None)
        self._limits.handshakes.release(task.cancel)
        self._begin_waiting()

    def _drop(self, silent: socket.socket) -> None:
        client, _ = self._silent.pop(silent)
        self._no_longer_waits(silent, client)
        asyncio.get_running_loop().remove_reader(silent)
        silent.close()
        self._limits.leave(client)

    async def _look_at_the_clock(self) -> None:
        loop = asyncio.get_running_loop()
        log_again_at = 0.0
        while True:
            await asyncio.sleep(1)
            now = loop.time()
            for connection in self._http.connections():
                connection.look_at_the_clock(now)
            for silent in [one for one, (_, until) in self._silent.items() if until <= now]:
                self._drop(silent)
            slow = [task for task, (begun, _) in self._beginning.items() if begun <= now - HANDSHAKE_SLOW_SECONDS]
            for task in slow[: sum(map(len, self._waiting.values()))]:
                self._evict(task)
            self._begin_waiting()
            if self._limits.refused and now >= log_again_at:
                log.warning("connections_refused", count=self._limits.take_refused(), open=self._limits.connections)
                log_again_at = now + LOG_REFUSED_SECONDS
            if self._limits.has_memory_to_give_back(now):
                memory.give_back()


def _listen(family: int, address: tuple[Any, ...]) -> socket.socket:
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
