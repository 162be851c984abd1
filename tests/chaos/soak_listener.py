"""The process behind a soak's endpoints: serves good paths and bad ones, and logs a line for every request.

`python soak_listener.py SETTINGS` runs it, on loopback. A path ends with the kind of its endpoint: `/soak/3-7-good`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import signal
import socket
import ssl
import struct
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvloop

SLOW_SECONDS, TRICKLE_SECONDS = 2.0, 0.5
FLUSH_SECONDS = 0.2
SIGNED_SECONDS_MAX = 300  # spec 6.4

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_BROKEN = b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"
_MOVED = b"HTTP/1.1 302 Elsewhere\r\nLocation: https://receiver.test/elsewhere\r\nContent-Length: 0\r\n\r\n"
_TRICKLE = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
_GARBAGE = b"\x00\xff\x16 this is no response at all\r\n\r\n"
_HEADER = re.compile(rb"\r\n(content-length|service-signature|service-attempt): *([^\r]*)", re.IGNORECASE)


class Arrival(NamedTuple):
    """One request that was received completely."""

    at: float
    path: str
    attempt: int
    answered: int
    """The status; 0 where no complete response was sent."""
    signed: bool
    event_id: str
    digest: str
    event: str
    entity_id: int
    to: str
    """The new value of a change; else empty."""


class _Change(msgspec.Struct):
    to: Any


class _Data(msgspec.Struct):
    entity_id: int


class _Envelope(msgspec.Struct):
    event_id: str
    event: str
    data: _Data
    change: _Change | None


_decoder = msgspec.json.Decoder(_Envelope)


class _Log:
    """A log of JSON lines, flushed a few times a second."""

    def __init__(self, file: Path, secrets_file: Path) -> None:
        self._stream = file.open("ab")
        self._secrets_file = secrets_file
        self._secrets: dict[str, bytes] = {}
        self._lines: list[bytes] = []

    def add(self, path: str, headers: dict[bytes, bytes], body: bytes, answered: int) -> None:
        event = _decoder.decode(body)
        arrival = Arrival(
            round(time.time(), 3),
            path,
            int(headers.get(b"service-attempt", b"0")),
            answered,
            self._signed(path, headers.get(b"service-signature", b""), body),
            event.event_id,
            hashlib.blake2b(body, digest_size=8).hexdigest(),
            event.event,
            event.data.entity_id,
            str(event.change.to) if event.change else "",
        )
        self._lines.append(msgspec.json.encode(arrival))

    def _signed(self, path: str, header: bytes, body: bytes) -> bool:
        """Checks the signature as receivers must (spec 6.4)."""
        if path not in self._secrets:
            secrets: dict[str, str] = json.loads(self._secrets_file.read_text())
            self._secrets = {name: secret.encode() for name, secret in secrets.items()}
        parts = dict(part.split(b"=", 1) for part in header.split(b",") if b"=" in part)
        told_at = parts.get(b"t", b"0")
        digest = hmac.digest(self._secrets[path], told_at + b"." + body, "sha256").hex()
        fresh = abs(time.time() - int(told_at)) <= SIGNED_SECONDS_MAX
        return fresh and hmac.compare_digest(digest.encode(), parts.get(b"v1", b""))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            self.flush()

    def flush(self) -> None:
        if self._lines:
            self._stream.write(b"\n".join(self._lines) + b"\n")
            self._stream.flush()
            self._lines = []


class _Connection(asyncio.Protocol):
    """One connection with any number of requests, one after another."""

    def __init__(self, log: _Log) -> None:
        self._log = log
        self._received = b""
        self._transport: Any = None
        self._later: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._later is not None:
            self._later.cancel()
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._received += data
        while self._transport is not None:
            head, ended, following = self._received.partition(b"\r\n\r\n")
            headers = {name.lower(): value for name, value in _HEADER.findall(head)}
            length = int(headers.get(b"content-length", b"0"))
            if not ended or len(following) < length:
                return
            self._received = following[length:]
            self._answer(head.split(b" ", 2)[1].decode(), headers, following[:length])

    def _answer(self, path: str, headers: dict[bytes, bytes], body: bytes) -> None:
        kind = path.rpartition("-")[2]
        if kind == "good" or (kind == "flaky" and headers.get(b"service-attempt") != b"1"):
            self._say(path, headers, body, 200, _OK)
        elif kind in ("broken", "flaky"):
            self._say(path, headers, body, 500, _BROKEN)
        elif kind == "redirects":
            self._say(path, headers, body, 302, _MOVED)
        elif kind == "garbage":
            self._say(path, headers, body, 0, _GARBAGE)
        elif kind == "slow":
            # Logged when it is answered: a client that disconnects before that gets no answer.
            self._later = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._say, path, headers, body, 200, _OK)
        else:
            self._log.add(path, headers, body, 0)
            if kind == "resets":
                linger = struct.pack("ii", 1, 0)
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._transport.abort()
            elif kind == "trickles":
                self._transport.write(_TRICKLE)
                self._trickle()

    def _say(self, path: str, headers: dict[bytes, bytes], body: bytes, status: int, response: bytes) -> None:
        self._log.add(path, headers, body, status)
        self._transport.write(response)

    def _trickle(self) -> None:
        self._transport.write(b"x")
        self._later = asyncio.get_running_loop().call_later(TRICKLE_SECONDS, self._trickle)


async def _serve(settings: dict[str, Any]) -> None:
    log = _Log(Path(settings["log"]), Path(settings["secrets"]))
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    writing = asyncio.create_task(log.run())
    for port, certificate in settings["listens"]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        await loop.create_server(lambda: _Connection(log), "127.0.0.1", port, ssl=context, backlog=1000)
    await ended.wait()
    writing.cancel()
    log.flush()


if __name__ == "__main__":
    uvloop.run(_serve(json.loads(Path(sys.argv[1]).read_text())))
