"""Snapshots: all records of a kind in one answer of any length."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any, Generic, TypeVar

import httpx
import msgspec

from makeready_client.core import AsyncCore, Core
from makeready_client.errors import ConnectionFailed
from makeready_client.requests import Request

T = TypeVar("T")
# How often in a row a snapshot may break off before it has brought another record.
BREAKS_MAX = 4


class _Last(msgspec.Struct):
    entity_id: int
    meter_id: int | None = None


class _Lines:
    """Cuts chunks into lines, and knows with what to go on after the last one."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._rest = b""
        self._last = b""
        self._breaks = 0

    def cut(self, chunk: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if lines:
            self._last, self._breaks = lines[-1], 0
        return lines

    def broke(self, error: httpx.RequestError) -> None:
        """Prepares the request that goes on. Raises ConnectionFailed if it breaks off again and again."""
        self._breaks += 1
        if self._breaks > BREAKS_MAX:
            raise ConnectionFailed(f"{self.request.path} broke off {self._breaks} times: {error!r}") from error
        self._rest = b""
        if self._last:
            last = msgspec.json.decode(self._last, type=_Last)
            after = {"after_id": last.entity_id} | ({"after_meter_id": last.meter_id} if last.meter_id else {})
            self.request = replace(self.request, query=after)


class _Taken(Generic[T]):
    def __init__(self, request: Request, kind: Any) -> None:
        self._request = request
        self._decode = msgspec.json.Decoder(kind).decode
        self.resume_cursor = ""
        """The `cursor` with which the changes since the snapshot's beginning begin; known from the first record on."""

    def _begun(self, response: httpx.Response) -> httpx.Response:
        # A request that goes on after a record brings none: the first one stays good.
        self.resume_cursor = self.resume_cursor or response.headers.get("Service-Resume-Cursor", "")
        return response


class Snapshot(_Taken[T]):
    """Iterate over it for all records, ascending by id. Goes on by itself where the connection breaks off."""

    def __init__(self, client: Core, request: Request, kind: Any) -> None:
        super().__init__(request, kind)
        self._client = client

    def lines(self) -> Iterator[bytes]:
        """The records as JSON, byte for byte."""
        lines = _Lines(self._request)
        while True:
            response = self._begun(self._client.respond(lines.request, is_stream=True))
            try:
                for chunk in response.iter_bytes():
                    yield from lines.cut(chunk)
            except httpx.RequestError as error:
                lines.broke(error)
            else:
                return
            finally:
                response.close()

    def __iter__(self) -> Iterator[T]:
        yield from map(self._decode, self.lines())


class AsyncSnapshot(_Taken[T]):
    """As Snapshot, with `async for`."""

    def __init__(self, client: AsyncCore, request: Request, kind: Any) -> None:
        super().__init__(request, kind)
        self._client = client

    async def lines(self) -> AsyncIterator[bytes]:
        """The records as JSON, byte for byte."""
        lines = _Lines(self._request)
        while True:
            response = self._begun(await self._client.respond(lines.request, is_stream=True))
            try:
                async for chunk in response.aiter_bytes():
                    for line in lines.cut(chunk):
                        yield line
            except httpx.RequestError as error:
                lines.broke(error)
            else:
                return
            finally:
                await response.aclose()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for line in self.lines():
            yield self._decode(line)
