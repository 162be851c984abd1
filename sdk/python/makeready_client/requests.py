"""A request, before it is sent."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import msgspec


@dataclass(frozen=True, slots=True)
class Request:
    """One call of an operation. Values of `query` and `body` that are None are not sent."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    idempotency_key: str | None = None

    def parameters(self) -> dict[str, str]:
        """The query, as text. Raises ValueError for an instant without offset."""
        return {name: _text(name, value) for name, value in self.query.items() if value is not None}

    def content(self) -> bytes | None:
        """The body as JSON."""
        if self.body is None:
            return None
        return msgspec.json.encode({name: value for name, value in self.body.items() if value is not None})

    @property
    def wait_seconds(self) -> int:
        """How long the API may wait for something new."""
        return int(self.query.get("wait") or 0)


def path(template: str, *ids: int | str) -> str:
    """The path with its ids. Raises ValueError for an empty one, which would name another operation."""
    parts = template.split("{")
    place = parts[0]
    for entity_id, part in zip(ids, parts[1:], strict=True):
        text = quote(str(entity_id), safe="")
        if entity_id is None or text in ("", ".", ".."):  # None, where the types are not checked
            raise ValueError(f"no id: {entity_id!r}")
        place += text + part.partition("}")[2]
    return place


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} needs an offset from UTC: datetime.now(datetime.UTC), not datetime.now()")
        return value.isoformat()
    return str(value)
