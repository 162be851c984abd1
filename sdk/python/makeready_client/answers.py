"""What the answers of the API have beside their own fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
import msgspec

S = TypeVar("S", bound=msgspec.Struct)


class Model(msgspec.Struct):
    """A record, or a part of one."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON has them: instants and days are texts."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    def to_json(self) -> str:
        """The fields as JSON."""
        return msgspec.json.encode(self).decode()


def _copied(kind: type[S], fields: dict[str, Any], details: dict[str, Any]) -> S:
    """A record with what came beside its fields."""
    record = kind(**fields)
    record.__dict__.update(details)
    return record


class _Detailed(Model, dict=True):
    """A record with details beside its fields, which copies and other processes get, too."""

    def __copy__(self: S) -> S:
        return _copied(type(self), msgspec.structs.asdict(self), self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:
        return _copied, (type(self), msgspec.structs.asdict(self), dict(self.__dict__))


@dataclass(frozen=True, slots=True)
class Response:
    """What came over the network."""

    status: int
    headers: httpx.Headers
    body: bytes


class Answer(_Detailed):
    """The record that a call returns. In a page, only the page has these properties."""

    @property
    def response(self) -> Response | None:
        """The status, the headers and the bytes; None for a record that no call returned."""
        return self.__dict__.get("_response")

    @property
    def request_id(self) -> str | None:
        """Names the request in the logs of the API; quote it when you ask for help."""
        return self._header("X-Request-Id")

    @property
    def replayed(self) -> bool:
        """Whether an earlier request with the same Idempotency-Key had the effect, and this is its answer again."""
        return self._header("X-Idempotent-Replay") == "1"

    def _header(self, name: str) -> str | None:
        return self.response.headers.get(name) if self.response else None


class Envelope(_Detailed):
    """An event, as deliveries and `GET /events` carry it."""

    @property
    def raw(self) -> bytes:
        """The bytes that the envelope was read from."""
        return bytes(self.__dict__.get("_raw", b""))
