"""Holds events to the published document: its keys, no more and no fewer, in their order; its data to the record's GET.

For the tests of the services too: it knows the document alone. What comes from an outbox is read by whoever has it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from testkit.api_contract import Contract

DOCUMENT = Path(__file__).parents[2] / "gateway" / "gateway" / "pages" / "openapi.json"
# Where the record in `data` is served, by its entity_type; an inline dict has none.
PLACES = {"ticket": "/tickets", "turn": "/turns", "vendor": "/vendors", "inspection": "/inspections"}
_BEFORE_DATA = ',"data":'


class Told(Protocol):
    """An outbox's message, as makeready.events.v1.Event has it."""

    event_id: str
    company_id: int
    occurred_at: Any
    public: Any

    def HasField(self, field_name: Any) -> bool: ...


@functools.cache
def published() -> Contract:
    """The committed document; a running system serves the same."""
    return Contract(json.loads(DOCUMENT.read_text()))


def check_envelope(body: bytes) -> dict[str, Any]:
    """A delivery's body, read. Raises AssertionError where it is not exactly as documented."""
    published().check_delivery(body)
    found: dict[str, Any] = json.loads(body)
    assert found["occurred_at"].endswith("Z"), found["occurred_at"]
    change = found["change"]
    assert change is None or change["from"] != change["to"], f"nothing moved: {found['event']} {change}"
    if change and change["field"] in found["data"]:
        assert found["data"][change["field"]] == change["to"], "data is the record after the change"
    return found


def check_event(event: Told) -> dict[str, Any]:
    """A public event of an outbox, as the envelope that is delivered of it. Raises AssertionError as above."""
    occurred_at = event.occurred_at.ToDatetime(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    head = {"schema_version": 1, "event_id": event.event_id, "event": event.public.event}
    head |= {"occurred_at": occurred_at, "company_id": event.company_id}
    body = json.dumps(head, separators=(",", ":")).encode()[:-1]
    body += _BEFORE_DATA.encode() + event.public.data + b',"change":' + (event.public.change or b"null") + b"}"
    found = check_envelope(body)
    entity_id = found["data"].get("entity_id")
    assert entity_id in (None, event.public.entity_id), f"{found['event']} is filed under {event.public.entity_id}"
    return found


def data_of(body: bytes) -> bytes:
    """The bytes of `data` in a delivery's body. No key before it has a free text."""
    text = body.decode()
    start = text.index(_BEFORE_DATA) + len(_BEFORE_DATA)
    _, end = json.JSONDecoder().raw_decode(text, start)
    return text[start:end].encode()


def check_same_as_get(body: bytes, got: bytes) -> None:
    """Raises AssertionError unless the data of a delivery are what the record's GET answered, to the byte."""
    assert data_of(body) == got, f"data {data_of(body)!r}\nGET  {got!r}"


def check_unless_changed(found: dict[str, Any], got: dict[str, Any]) -> bool:
    """Whether the record has stood as it is since this event; then the data must be what its GET serves now, but for
    the names of what it names. Of records without updated_at nobody can tell."""
    data = found["data"]
    if "updated_at" not in data or data["updated_at"] != got["updated_at"]:
        return False
    assert _by_ids(data) == _by_ids(got), f"data {data}\nGET  {got}"
    return True


def _by_ids(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value["id"] if isinstance(value, dict) else value for name, value in record.items()}


def place_of(data: dict[str, Any]) -> str | None:
    """The path of the GET that serves what `data` is; None for an inline dict."""
    return f"{PLACES[data['entity_type']]}/{data['entity_id']}" if "entity_type" in data else None


async def checked_outbox(url: str, read: Callable[[bytes], Any]) -> AsyncIterator[dict[str, Any]]:
    """Every public event in a producer's database, in their order, checked; read: parses an outbox's message."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("SELECT message FROM outbox WHERE subject LIKE '%.public.%' ORDER BY event_id")
    finally:
        await connection.close()
    for row in rows:
        event = read(row["message"])
        if event.HasField("public"):
            yield check_event(event)


async def check_outbox(url: str, read: Callable[[bytes], Any]) -> int:
    """Checks every public event in a producer's database; how many there were."""
    return len([event async for event in checked_outbox(url, read)])
