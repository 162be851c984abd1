"""A small HTTP client: keep-alive connections, a bounded number of requests, little CPU of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

REPLY_SECONDS = 30.0

# The requests of one connection: a generator that yields requests and receives the body of each answer.
Script = Generator[bytes, bytes, None]


class LoadError(Exception):
    """An unexpected answer: the run then means nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response. headers: as received, in lower case."""

    status: int
    headers: bytes
    body: bytes


class _Connection(asyncio.Protocol):
    """Sends one request at a time; answers must have a Content-Length."""

    def __init__(self) -> None:
        self._received = b""
        self._whole = 0
        self._head = 0
        self._waiting: asyncio.Future[Answer] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(LoadError(f"the connection was closed: {error or 'by the server'}"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._whole:
            self._head = self._received.find(b"\r\n\r\n") + 4
            if self._head < 4:
                return
            headers = self._received[: self._head].lower()
            _, separator, following = headers.partition(b"\r\ncontent-length:")
            self._whole = self._head + (int(following.partition(b"\r\n")[0]) if separator else 0)
        if len(self._received) >= self._whole and self._waiting is not None:
            head = self._received[: self._head]
            answer = Answer(int(head[9:12]), head.lower(), self._received[self._head : self._whole])
            self._received, self._whole = self._received[self._whole :], 0
            self._waiting.set_result(answer)

    async def ask(self, request: bytes) -> Answer:
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await asyncio.wait_for(self._waiting, REPLY_SECONDS)
        except TimeoutError:
            raise LoadError(f"no answer within {REPLY_SECONDS:.0f} s") from None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Client:
    """Several connections to one server."""

    def __init__(self, base_url: str, connections: int) -> None:
        parts = urlsplit(base_url)
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or 80
        self.path = parts.path
        self._many = connections
        self._connections: list[_Connection] = []

    async def __aenter__(self) -> Client:
        loop = asyncio.get_running_loop()
        for _ in range(self._many):
            _, connection = await loop.create_connection(_Connection, self.host, self.port)
            self._connections.append(connection)
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()

    def request(self, method: str, path: str, key: str, body: bytes = b"", more: str = "") -> bytes:
        """The bytes of a request; more: further header lines, each with its CRLF."""
        if body:
            more += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        head = f"{method} {self.path}{path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
        return f"{head}Authorization: Bearer {key}\r\nAccept: application/json\r\n{more}\r\n".encode() + body

    async def ask(self, request: bytes) -> Answer:
        """The answer to one request, over the first connection."""
        return await self._connections[0].ask(request)

    async def run(self, scripts: Callable[[], Script], requests: int, status: int) -> float:
        """Sends `requests` requests over all connections and returns the seconds that they took.

        Raises LoadError for an answer with another status.
        """
        tickets: Iterator[int] = iter(range(requests))

        async def work(connection: _Connection) -> None:
            script = scripts()
            request = next(script)
            for _ in tickets:
                answer = await connection.ask(request)
                if answer.status != status:
                    raise LoadError(f"{answer.status} where {status} was expected: {answer.body[:300]!r}")
                request = script.send(answer.body)

        started = time.perf_counter()
        try:
            async with asyncio.TaskGroup() as group:
                for connection in self._connections:
                    group.create_task(work(connection))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return time.perf_counter() - started
