"""Receivers of deliveries on loopback: real TLS, real HTTP, and many kinds of misbehaviour."""

import asyncio
import contextlib
import hashlib
import hmac
import ssl
import tempfile
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from standardwebhooks import Webhook

HOST = "receiver.test"


@dataclass(frozen=True, slots=True)
class Received:
    """One request as received."""

    request_line: str
    headers: dict[str, str]
    body: bytes
    connection: int

    def is_signed_with(self, secret: str) -> bool:
        timestamp, _, digest = self.headers["service-signature"].removeprefix("t=").partition(",v1=")
        expected = hmac.new(secret.encode(), timestamp.encode() + b"." + self.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(expected, digest)

    def is_standard(self, secret: str) -> bool:
        """Whether the library of Standard Webhooks takes it as genuine. Raises its WebhookVerificationError if not."""
        Webhook(secret).verify(self.body, self.headers)
        same = self.headers["service-signature"].removeprefix("t=").partition(",")[0]
        return self.headers["webhook-timestamp"] == same

    @property
    def standard_headers(self) -> set[str]:
        return {name for name in self.headers if name.startswith("webhook-")}


Answer = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


def answering(status: int, body: bytes = b"", *headers: str) -> Answer:
    """Responds to every request alike and leaves the connection open."""

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Answer", f"Content-Length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()

    return answer


def saying(raw: bytes) -> Answer:
    """Responds with exactly these bytes, in one write."""

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return answer


async def hanging(_: Received, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def trickling(_request: Received, writer: asyncio.StreamWriter) -> None:
    """Sends headers at once, then one byte at a time without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    for _ in range(600):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.1)


async def trickling_headers(_request: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(600):
        writer.write(b"X-%d: x\r\n" % number)
        await writer.drain()
        await asyncio.sleep(0.1)


async def gigabyte(_request: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    chunk = b"x" * 1_048_576
    for _ in range(1024):
        writer.write(chunk)
        await writer.drain()
        await asyncio.sleep(0)  # or the rest is encrypted for a client that has left, while nothing else runs


async def garbage(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff\x16garbage, not a response at all\r\n\r\n")
    await writer.drain()


async def endless_header(_request: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    for _ in range(64):
        writer.write(b"x" * 65536)
        await writer.drain()


async def disconnecting(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.close()


@dataclass
class Receiver:
    """A listening receiver. `answer` may be replaced at any time."""

    port: int
    answer: Answer
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    most_at_once: int = 0
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def override(self) -> dict[str, tuple[str, int]]:
        return {HOST: ("127.0.0.1", self.port)}

    def hang_up(self) -> None:
        """Closes all open connections, as a receiver does with idle ones."""
        for writer in list(self.writers):
            writer.close()


class Authority:
    """A certificate authority of the tests, and contexts with valid and invalid certificates."""

    def __init__(self) -> None:
        self._authority = trustme.CA()
        self._folder = tempfile.TemporaryDirectory()
        self.file = Path(self._folder.name) / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.file))

    def context(self, *names: str, **options: Any) -> ssl.SSLContext:
        certificate = self._authority.issue_cert(*(names or (HOST,)), **options)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        return context


def with_old_tls(context: ssl.SSLContext, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_1) -> ssl.SSLContext:
    """Limits the context to this version of TLS."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


@contextlib.asynccontextmanager
async def receiver(
    context: ssl.SSLContext | None, answer: Answer, port: int = 0, addresses: Sequence[str] = ("127.0.0.1",)
) -> AsyncIterator[Receiver]:
    """A receiver on a free port of 127.0.0.1, closed at the end. Without a context it speaks plain HTTP."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        listening.writers.add(writer)
        listening.connections += 1
        listening.most_at_once = max(listening.most_at_once, len(listening.writers))
        connection = listening.connections
        try:
            while not writer.is_closing():
                request = await _request(reader, connection)
                listening.requests.append(request)
                await listening.answer(request, writer)
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            listening.writers.discard(writer)
            writer.transport.abort()

    server = await asyncio.start_server(serve, addresses, port, ssl=context, backlog=1024)
    listening = Receiver(server.sockets[0].getsockname()[1], answer)
    try:
        yield listening
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _request(reader: asyncio.StreamReader, connection: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.split("\r\n")[:-2]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(request_line, headers, body, connection)
