"""HTTP over a raw socket: sends requests that `http.client` would refuse, and reads answers byte by byte."""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from .system import Answer, System

DEADLINE_SECONDS = 60


class Wire:
    """One connection to the API of a running system."""

    def __init__(self, system: System) -> None:
        self._system = system
        parts = urlsplit(system.base_url)
        self._prefix = parts.path
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=DEADLINE_SECONDS)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def head(self, method: str, path: str, key: str, *lines: str) -> bytes:
        """Request line and headers. path: below the base URL. lines: more headers, sent raw."""
        first = [f"{method} {self._prefix}{path} HTTP/1.1", "Host: test", f"Authorization: Bearer {key}"]
        return "".join(f"{line}\r\n" for line in (*first, *lines)).encode("latin-1") + b"\r\n"

    def send(self, data: bytes) -> None:
        """Sends all data. Ignores a closed connection: a server may answer before it has read everything."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def end(self) -> None:
        """Ends the client's side of the connection."""
        self._socket.shutdown(socket.SHUT_WR)

    def receive(self, method: str, path: str) -> Answer:
        """The next final answer, checked against the contract; skips interim (1xx) ones."""
        while True:
            line = self._file.readline()
            assert line.startswith(b"HTTP/1.1 "), line
            status = int(line.split()[1])
            headers = http.client.parse_headers(self._file)
            if status >= 200:
                break
        body = self._file.read(int(headers.get("Content-Length", 0)))
        assert self._system.contract is not None
        self._system.contract.check(method, path, status, headers, body)
        return Answer(status, headers, body)

    def has_answer(self) -> bool:
        """Whether there is data to receive."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def is_closed(self) -> bool:
        """Waits for the server to close; fails on another byte."""
        try:
            received = self._file.read(1)
        except ConnectionResetError:
            return True
        assert received == b"", received
        return True


def lengthy(body: bytes) -> str:
    return f"Content-Length: {len(body)}"
