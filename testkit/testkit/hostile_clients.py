"""One process of clients that hold connections to a server in several ways, each as long as the server lets it.

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
# The first two bytes of a handshake say it all: the rest never comes.
HALF_A_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(100)
UNREAD, SILENT = "unread", "silent"


class Kind(TypedDict):
    """One way to hold a connection. The kind `unread` reads nothing; `silent` sends nothing, or half a handshake."""

    name: str
    first: list[str]
    """What connections of this kind send first, in turn: bytes as Latin-1."""
    more: str
    """What they send each second, for the connection not to seem idle."""


class Plan(TypedDict):
    port: int
    first: int
    """The number of the first connection; the others are `step` apart, up to `end`."""
    step: int
    end: int
    addresses: int
    authority: str
    """A certificate in PEM: the connections use TLS. Empty: they do not."""
    kinds: list[Kind]


class Hostile:
    """One client that holds a connection, and how."""

    def __init__(self, plan: Plan, number: int, tls: ssl.SSLContext | None) -> None:
        self.plan = plan
        self.kind = plan["kinds"][number % len(plan["kinds"])]
        self.number = number // len(plan["kinds"])
        self.tls = None if self.kind["name"] == SILENT else tls
        self.has_tls = tls is not None
        self.writer: asyncio.StreamWriter | None = None
        self.reader: asyncio.StreamReader | None = None

    async def open(self) -> None:
        opened = socket.socket()
        opened.setblocking(False)
        if self.kind["name"] == UNREAD:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        address = self.number % self.plan["addresses"]
        opened.bind((f"127.{address // 250}.{address % 250 + 2}.1", 0))
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", self.plan["port"]))
        self.reader, self.writer = await asyncio.open_connection(
            sock=opened, ssl=self.tls, server_hostname="localhost" if self.tls else None
        )
        self.writer.write(self.first_bytes())
        if self.kind["name"] == UNREAD:
            assert isinstance(self.writer.transport, asyncio.ReadTransport)
            self.writer.transport.pause_reading()

    def first_bytes(self) -> bytes:
        if self.kind["name"] == SILENT:
            return HALF_A_HELLO if self.has_tls and self.number % 2 == 0 else b""
        return self.kind["first"][self.number % len(self.kind["first"])].encode("latin-1")

    def go_on(self) -> None:
        """Sends a little more."""
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(self.kind["more"].encode("latin-1"))


async def main() -> None:
    plan: Plan = json.loads(sys.stdin.readline())
    loop = asyncio.get_running_loop()
    tls = ssl.create_default_context(cadata=plan["authority"]) if plan["authority"] else None
    hostile = [Hostile(plan, number, tls) for number in range(plan["first"], plan["end"], plan["step"])]
    room = asyncio.Semaphore(AT_ONCE)

    async def could_open(client: Hostile) -> bool:
        async with room:
            try:
                async with asyncio.timeout(30):
                    await client.open()
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
        for client in hostile:
            client.go_on()
        try:
            await asyncio.wait_for(stop.wait(), 1)  # short: the time between two bytes
        except TimeoutError:
            continue
    for client in hostile:
        if client.writer is not None:
            client.writer.transport.abort()


if __name__ == "__main__":
    asyncio.run(main())
