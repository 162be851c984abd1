"""HTTP over raw sockets: requests and responses to the byte. Every response is checked against the API's rules."""

from __future__ import annotations

import asyncio
import json as json_module
import re
import ssl
from dataclasses import dataclass
from typing import Any

DEADLINE_SECONDS = 60
MALFORMED_CHUNKS = (b"zz\r\n", b"-1\r\n", b"5\r\nabcdefgh\r\n", b"5\nabcde\n", b"F" * 20 + b"\r\n")


@dataclass(frozen=True)
class Response:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    interim: tuple[int, ...] = ()

    def header(self, name: str) -> str | None:
        """The header's value; asserts that it occurs at most once."""
        values = [value for header, value in self.headers if header.lower() == name.lower()]
        assert len(values) < 2, f"{name} is repeated"
        return values[0] if values else None

    @property
    def json(self) -> Any:
        return json_module.loads(self.body)

    @property
    def code(self) -> str:
        code: str = self.json["error"]["code"]
        return code

    @property
    def message(self) -> str:
        message: str = self.json["error"]["message"]
        return message

    def without_id(self) -> tuple[Any, ...]:
        """The response without the parts that differ between requests."""
        differing = ("x-request-id", "date", "ratelimit")
        same = tuple(header for header in self.headers if header[0].lower() not in differing)
        return self.status, same, self.body


class RawConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, port: int, tls: ssl.SSLContext | None = None) -> RawConnection:
        name = "localhost" if tls else None
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self, method: str = "GET") -> Response:
        """The next response."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            interim = []
            while True:
                head = await self.reader.readuntil(b"\r\n\r\n")
                status, headers = _parsed(head)
                if status >= 200:
                    break
                interim.append(status)
            by_name = {name.lower(): value for name, value in headers}
            if by_name.get("transfer-encoding") == "chunked":
                body = await self.chunks()
            else:
                body = b"" if method == "HEAD" else await self.reader.readexactly(int(by_name.get("content-length", 0)))
        response = Response(status, headers, body, tuple(interim))
        check(response, method)
        return response

    async def chunks(self) -> bytes:
        """A chunked body. Raises IncompleteReadError if it breaks off."""
        chunks = []
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            chunks.append(await self.reader.readexactly(size))
            assert await self.reader.readexactly(2) == b"\r\n"
        assert await self.reader.readexactly(2) == b"\r\n"
        return b"".join(chunks)

    async def is_closed(self) -> bool:
        """Whether the server closes the connection without another byte."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            try:
                received = await self.reader.read(65536)
            except ConnectionResetError:
                return True
        assert received == b"", received
        return True

    def close(self) -> None:
        self.writer.transport.abort()


def _parsed(head: bytes) -> tuple[int, tuple[tuple[str, str], ...]]:
    first, *lines = head[:-4].decode("ascii").split("\r\n")
    version, status, _ = first.split(" ", 2)
    assert version == "HTTP/1.1"
    headers = []
    for line in lines:
        name, colon, value = line.partition(": ")
        assert colon
        headers.append((name, value))
    return int(status), tuple(headers)


def check(response: Response, method: str) -> None:
    """Checks the rules for every response."""
    assert response.header("Cache-Control") == "no-store"
    assert re.fullmatch("[0-9a-f]{24}", response.header("X-Request-Id") or "")
    assert response.header("Date")
    assert not [
        name for name, _ in response.headers if name.lower().startswith(("access-control-", "server", "x-powered"))
    ]
    if response.status == 204:
        assert response.header("Content-Length") is None and response.header("Content-Type") is None
        return
    assert response.header("Content-Type") in (
        "application/json",
        "application/x-ndjson",
        *(f"text/{kind}; charset=utf-8" for kind in ("html", "css", "javascript", "plain")),
    )
    if response.status >= 400 and method != "HEAD" and response.header("Content-Type") == "application/json":
        if set(response.json) == {"status"}:
            return  # of /readyz
        assert set(response.json) == {"error"} and set(response.json["error"]) == {"code", "message"}
        assert response.message.endswith(".") and ". " not in response.message and "\n" not in response.message
        if response.status == 401:
            assert response.header("WWW-Authenticate") == "Bearer"
        if response.status == 405:
            assert response.header("Allow")
        if response.status == 429:
            assert int(response.header("Retry-After") or 0) >= 1


class Api:
    """Requests to one port, each on a connection of its own."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.port = port
        self.tls = tls

    async def connect(self) -> RawConnection:
        return await RawConnection.open(self.port, self.tls)

    async def raw(self, data: bytes, method: str = "GET", *, then_eof: bool = False) -> Response:
        """Sends bytes and returns the first response."""
        connection = await self.connect()
        try:
            await connection.send(data)
            if then_eof:
                connection.writer.write_eof()
            return await connection.receive(method)
        finally:
            connection.close()

    async def request(
        self,
        method: str,
        path: str,
        key: str | None = None,
        body: bytes | None = None,
        **headers: str,
    ) -> Response:
        """path: below the prefix, or the whole path if it starts with two slashes. headers: `_` stands for `-`."""
        return await self.raw(self.bytes(method, path, key, body, **headers), method)

    def bytes(self, method: str, path: str, key: str | None = None, body: bytes | None = None, **headers: str) -> bytes:
        lines = [f"{method} {path[1:] if path.startswith('//') else '/api/v1' + path} HTTP/1.1", "Host: test"]
        if key is not None:
            lines.append(f"Authorization: Bearer {key}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")

    async def get(self, path: str, key: str | None = None, **headers: str) -> Response:
        return await self.request("GET", path, key, None, **headers)
