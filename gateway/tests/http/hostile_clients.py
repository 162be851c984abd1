"""One process of clients that hold connections to a gateway in five ways, each as long as the gateway lets it.

It reads one line of JSON (`Plan`), opens the connections, writes one line of JSON with how many it could not open, then
sends a little on each every second until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
import threading
from typing import TypedDict

AT_ONCE = 50
KINDS = ("head", "body", "stranger", "unread", "silent")
HEADER = b"X-A: " + b"x" * 8100 + b"\r\n"
# The first two bytes of a handshake say it all: the rest never comes.
HALF_A_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(100)


class Plan(TypedDict):
    port: int
    first: int
    """The number of the first connection; the others are `step` apart, up to `end`."""
    step: int
    end: int
    addresses: int
    authority: str
    """A certificate in PEM: the connections use TLS. Empty: they do not."""
    keys: list[str]


class Hostile:
    """One client that holds a connection, and how."""

    def __init__(self, plan: Plan, number: int, tls: ssl.SSLContext | None) -> None:
        self.plan = plan
        self.kind = KINDS[number % len(KINDS)]
        self.number = number // len(KINDS)
        self.tls = None if self.kind == "silent" else tls
        self.has_tls = tls is not None
        self.writer: asyncio.StreamWriter | None = None
        self.reader: asyncio.StreamReader | None = None

    async def open(self) -> None:
        one = socket.socket()
        one.setblocking(False)
        if self.kind == "unread":
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        address = self.number % self.plan["addresses"]
        one.bind((f"127.{address // 250}.{address % 250 + 2}.1", 0))
        await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", self.plan["port"]))
        self.reader, self.writer = await asyncio.open_connection(
            sock=one, ssl=self.tls, server_hostname="localhost" if self.tls else None
        )
        self.writer.write(self.first_bytes())
        if self.kind == "unread":
            assert isinstance(self.writer.transport, asyncio.ReadTransport)
            self.writer.transport.pause_reading()

    def first_bytes(self) -> bytes:
        is_greedy = self.number % 2 == 0
        if self.kind == "silent":
            return HALF_A_HELLO if self.has_tls and is_greedy else b""
        if self.kind == "unread":
            return b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
        if self.kind == "head":
            return b"GET /api/v1/whoami HTTP/1.1\r\nHost: a\r\n" + HEADER * (95 if is_greedy else 3)
        key = "unknown" if self.kind == "stranger" else self.plan["keys"][self.number % len(self.plan["keys"])]
        head = (
            f"POST /api/v1/tickets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n"
            f"Idempotency-Key: k{self.number}\r\nContent-Length: 262144\r\n\r\n"
        )
        return head.encode() + b'{"title": "' + b"x" * (100_000 if is_greedy else 100)

    def go_on(self) -> None:
        """Sends a little more, for the connection not to seem idle."""
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write({"head": b"X-B: 1\r\n", "body": b"x", "stranger": b"x"}.get(self.kind, b""))


async def main() -> None:
    plan: Plan = json.loads(sys.stdin.readline())
    loop = asyncio.get_running_loop()
    tls = ssl.create_default_context(cadata=plan["authority"]) if plan["authority"] else None
    hostile = [Hostile(plan, number, tls) for number in range(plan["first"], plan["end"], plan["step"])]
    room = asyncio.Semaphore(AT_ONCE)

    async def could_open(one: Hostile) -> bool:
        async with room:
            try:
                async with asyncio.timeout(30):
                    await one.open()
            except (OSError, TimeoutError):
                return False
            return True

    could = await asyncio.gather(*map(could_open, hostile))
    sys.stdout.write(json.dumps({"failed": could.count(False)}) + "\n")
    sys.stdout.flush()
    stop = asyncio.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    while not stop.is_set():
        for one in hostile:
            one.go_on()
        try:
            await asyncio.wait_for(stop.wait(), 1)  # short: the time between two bytes
        except TimeoutError:
            continue
    for one in hostile:
        if one.writer is not None:
            one.writer.transport.abort()


if __name__ == "__main__":
    asyncio.run(main())
