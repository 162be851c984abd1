"""A DNS server on loopback for one name, and a node that can vanish."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from types import TracebackType
from typing import Self

NAME = "svc-tickets.test"
A = 1


class Names:
    """Answers with the addresses in `live`, or with an earlier answer, as a cache does."""

    def __init__(self) -> None:
        self.live: list[str] = []
        self._stale_seconds = 0.0
        self._cached: list[str] = []
        self._until = 0.0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.1)  # short: until it looks whether it ends
        self._ends = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def target(self, port: int) -> str:
        """The name as a gRPC target, with the server to ask."""
        return f"dns://127.0.0.1:{self._socket.getsockname()[1]}/{NAME}:{port}"

    def cache(self, seconds: float) -> None:
        """From now on an answer is repeated for so long; 0: each is new."""
        self._stale_seconds, self._until = seconds, 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ends = True
        self._thread.join()
        self._socket.close()

    def _addresses(self) -> list[str]:
        if time.monotonic() >= self._until:
            self._cached, self._until = list(self.live), time.monotonic() + self._stale_seconds
        return self._cached

    def _serve(self) -> None:
        while not self._ends:
            try:
                query, client = self._socket.recvfrom(512)
            except TimeoutError:
                continue
            end = query.index(0, 12) + 1  # the question's name, after the header
            (kind,) = struct.unpack("!H", query[end : end + 2])
            addresses = self._addresses() if kind == A else []
            records = b"".join(
                b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 0, 4) + socket.inet_aton(address) for address in addresses
            )
            head = query[:2] + struct.pack("!HHHHH", 0x8580, 1, len(addresses), 0, 0)
            self._socket.sendto(head + query[12 : end + 4] + records, client)


class Node:
    """The way to a pod: passes on bytes until it vanishes, and then neither bytes nor the end of a connection."""

    def __init__(self, target: str) -> None:
        """target: the pod's own address."""
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._is_there = asyncio.Event()
        self._is_there.set()
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self, address: str, port: int) -> None:
        self._server = await asyncio.start_server(self._connected, address, port)

    @property
    def is_used(self) -> bool:
        return bool(self._writers)

    def vanish(self) -> None:
        self._is_there.clear()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self._is_there.set()
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        await self._is_there.wait()
        there, back = await asyncio.open_connection(self._host, self._port)
        self._writers.append(back)
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while received := await reader.read(65536):
                await self._is_there.wait()
                writer.write(received)
                await writer.drain()
        except OSError:
            pass
        await self._is_there.wait()
        writer.close()
