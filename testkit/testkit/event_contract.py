"""Checks events against the published document (exactly its keys, in order), and their data against the record's GET.

The services' tests use it too: it knows only the document. The caller parses an outbox's messages.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from testkit.api_contract import Contract

DOCUMENT = Path(__file__).parents[2] / "gateway" / "gateway" / "pages" / "openapi.json"
# The path that serves the record in `data`, by its entity_type; an inline dict has none.
PLACES = {"ticket": "/tickets", "turn": "/turns", "vendor": "/vendors", "inspection": "/inspections"}
_BEFORE_DATA = ',"data":'


def public_fields(schema: str) -> list[str]:
    """The fields of a schema of the document, `Vendor` for one, in its order."""
    return list(json.loads(DOCUMENT.read_text())["components"]["schemas"][schema]["properties"])


class OutboxEvent(Protocol):
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
    """Parses a delivery's body. Raises AssertionError if it is not exactly as documented."""
    published().check_delivery(body)
    envelope: dict[str, Any] = json.loads(body)
    assert envelope["occurred_at"].endswith("Z"), envelope["occurred_at"]
    change = envelope["change"]
    # A ticket that is closed again keeps its status.
    is_closed_again = envelope["event"] == "ticket.status_changed" and change["to"] in ("Completed", "Cancelled")
    assert change is None or change["from"] != change["to"] or is_closed_again, f"nothing moved: {envelope['event']}"
    if change and change["field"] in envelope["data"]:
        assert envelope["data"][change["field"]] == change["to"], "data is the record after the change"
    return envelope


def check_event(event: OutboxEvent) -> dict[str, Any]:
    """The envelope of a public event in an outbox, parsed. Raises AssertionError as above."""
    occurred_at = event.occurred_at.ToDatetime(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    head = {"schema_version": 1, "event_id": event.event_id, "event": event.public.event}
    head |= {"occurred_at": occurred_at, "company_id": event.company_id}
    body = json.dumps(head, separators=(",", ":")).encode()[:-1]
    body += _BEFORE_DATA.encode() + event.public.data + b',"change":' + (event.public.change or b"null") + b"}"
    envelope = check_envelope(body)
    entity_id = envelope["data"].get("entity_id")
    assert entity_id in (None, event.public.entity_id), f"{envelope['event']} is filed under {event.public.entity_id}"
    return envelope


def data_of(body: bytes) -> bytes:
    """The bytes of `data` in a delivery's body. The keys before it hold no free text."""
    text = body.decode()
    start = text.index(_BEFORE_DATA) + len(_BEFORE_DATA)
    _, end = json.JSONDecoder().raw_decode(text, start)
    return text[start:end].encode()


def check_same_as_get(body: bytes, got: bytes) -> None:
    """Raises AssertionError unless a delivery's data equal the response of the record's GET, to the byte."""
    assert data_of(body) == got, f"data {data_of(body)!r}\nGET  {got!r}"


def check_unless_changed(envelope: dict[str, Any], got: dict[str, Any]) -> bool:
    """Whether the record is unchanged since this event. Then the data must equal its GET now, except the names of
    related records. For a record without updated_at it is unknown, and the result is False."""
    data = envelope["data"]
    if "updated_at" not in data or data["updated_at"] != got["updated_at"]:
        return False
    assert _by_ids(data) == _by_ids(got), f"data {data}\nGET  {got}"
    return True


def _by_ids(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value["id"] if isinstance(value, dict) else value for name, value in record.items()}


def place_of(data: dict[str, Any]) -> str | None:
    """The path of the GET that serves the record in `data`; None for an inline dict."""
    return f"{PLACES[data['entity_type']]}/{data['entity_id']}" if "entity_type" in data else None


async def checked_outbox(url: str, read: Callable[[bytes], Any]) -> AsyncIterator[dict[str, Any]]:
    """Checks and yields every public event in a producer's database, in order; read: parses an outbox's message."""
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
    """Checks every public event in a producer's database, and that no two of one object share occurred_at, by which
    receivers order them; returns how many."""
    events = [event async for event in checked_outbox(url, read)]
    # Tests move some records into the future, where no clock orders their events.
    now = datetime.now(UTC).isoformat()
    of_objects = [event for event in events if "entity_id" in event["data"] and event["occurred_at"] < now]
    instants = Counter(
        (event["company_id"], event["data"]["entity_type"], event["data"]["entity_id"], event["occurred_at"])
        for event in of_objects
    )
    shared = [instant for instant, many in instants.items() if many > 1]
    assert not shared, f"several events at one instant: {shared}"
    return len(events)
