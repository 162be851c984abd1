"""The ten events as webhooks (spec 6): the envelope of each, its data and its change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
REF = "#/components/schemas/"
TEXT: Schema = {"type": "string"}
DAY: Schema = {"type": ["string", "null"], "format": "date"}


@dataclass(frozen=True, slots=True)
class Event:
    """data: the name of the record, or of an inline shape; change: the field that moved, and the schema of its values;
    None where nothing moved."""

    key: str
    fires_when: str
    data: str
    change: tuple[str, Schema, Schema] | None = None
    example: tuple[Any, Any] = (None, None)


EVENTS = (
    Event(
        "ticket.created", "A ticket was opened by staff, a resident, a failed inspection row, or this API.", "Ticket"
    ),
    Event(
        "ticket.status_changed",
        "A ticket's status moved.",
        "Ticket",
        ("status", {"$ref": REF + "TicketStatus"}, {"$ref": REF + "TicketStatus"}),
        ("Open", "In Progress"),
    ),
    Event(
        "turn.status_changed",
        "A unit with a turn changed status. `from` and `to` are the unit's old and new status; `from` is null where "
        "nothing was known of the unit before.",
        "Turn",
        ("unit_status", {"anyOf": [{"$ref": REF + "UnitStatus"}, {"type": "null"}]}, {"$ref": REF + "UnitStatus"}),
        ("Occupied", "Notice"),
    ),
    Event(
        "turn.schedule_changed",
        "A turn's projected ready date moved. Either date may be null.",
        "Turn",
        ("projected_ready_on", DAY, DAY),
        ("2026-03-14", "2026-03-17"),
    ),
    Event(
        "vendor.hold",
        "A vendor was placed on hold, usually because its insurance lapsed. Once for each hold.",
        "Vendor",
        ("on_hold", {"type": "boolean", "const": False}, {"type": "boolean", "const": True}),
        (False, True),
    ),
    Event(
        "ticket.stale",
        "A ticket that a resident opened has been quiet for longer than the company's threshold. Fires again while the "
        "silence goes on.",
        "Ticket",
    ),
    Event(
        "inspection.stale",
        "An inspection was still open on the morning after its scheduled date. Once for each inspection.",
        "Inspection",
    ),
    Event("property.notice.published", "A property notice was published.", "PropertyNotice"),
    Event(
        "turn.task.stale",
        "A make-ready task was still open on the morning after its scheduled date. Once for each task.",
        "StaleTurnTask",
    ),
    Event(
        "pm.stale",
        "A preventive-maintenance task was still open on the morning after its due date. Once for each task.",
        "StalePmTask",
    ),
)

URL: Schema = {"description": "Link that opens the record for a person.", "type": "string", "format": "uri"}


def _inline(description: str, **properties: Schema) -> Schema:
    described = f"{description} It has no id, and there is nothing to fetch afterwards."
    return {"description": described, "type": "object", "properties": properties, "required": list(properties)}


def _text(description: str) -> Schema:
    return {"description": description, "type": "string"}


INLINE = {
    "PropertyNotice": _inline(
        "A notice to the residents of a property.",
        subject=_text("What the notice is about."),
        property=_text("The property's name."),
        unit=_text("Whom it is for: a unit or an area, a number of units, or the whole property, in words."),
        url=URL,
        created_at={"description": "When it was published.", "type": "string", "format": "date-time"},
        when=_text("When what it tells of takes place, in words."),
    ),
    "StaleTurnTask": _inline(
        "A make-ready task that is overdue.",
        task_type=_text("What kind of work it is."),
        property=_text("The property's name."),
        unit=_text("The unit's name."),
        url=URL,
    ),
    "StalePmTask": _inline(
        "A preventive-maintenance task that is overdue.",
        task_name=_text("What is to be done."),
        property=_text("The property's name."),
        unit=_text("Where: a unit or an area, in words."),
        due_date={"description": "The day by which it was due.", "type": "string", "format": "date"},
        url=URL,
    ),
}


def pascal(key: str) -> str:
    return "".join(word.title() for word in key.replace("_", ".").split("."))


def schema_name(event: Event) -> str:
    return pascal(event.key) + "Event"


def envelope(event: Event) -> Schema:
    """The seven keys in their order (spec 6.2)."""
    change: Schema = {"description": "Always null here.", "type": "null"}
    if event.change:
        field, before, after = event.change
        change = {
            "description": "What moved.",
            "type": "object",
            "properties": {
                "field": {"description": "The field that moved.", "type": "string", "const": field},
                "from": {"description": "Its value before.", **before},
                "to": {"description": "Its value now.", **after},
            },
            "required": ["field", "from", "to"],
        }
    properties = {
        "schema_version": {"description": "Version of the shape: 1.", "type": "integer", "const": 1},
        "event_id": _text("Unique to the event; retries carry the same one. Use it to drop duplicates."),
        "event": {
            "description": "The event key. Ignore events whose key you do not know: new ones may come.",
            "type": "string",
            "const": event.key,
        },
        "occurred_at": {
            "description": "When it happened; the delivery may come an hour later or more. Orders the events of one "
            "record.",
            "type": "string",
            "format": "date-time",
        },
        "company_id": {"description": "The company that it happened in.", "type": "integer", "format": "int64"},
        "data": {"$ref": REF + event.data},
        "change": change,
    }
    return {
        "description": event.fires_when,
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def example(event: Event, data: Any) -> Any:
    """A whole delivery's body around an example of its data."""
    change = None
    if event.change:
        change = {"field": event.change[0], "from": event.example[0], "to": event.example[1]}
    return {
        "schema_version": 1,
        "event_id": "019cb2f0-6c1e-7d3a-9b57-2f4c8e1a6d05",
        "event": event.key,
        "occurred_at": "2026-03-02T14:05:09.120000Z",
        "company_id": 1,
        "data": data,
        "change": change,
    }


SIGNATURE = """\
`t=<unix_timestamp>,v1=<hex_digest>`. The digest is HMAC-SHA256, in hex, over the bytes `<timestamp>.<raw body>` with
the subscription's signing secret. Verify it over the raw body as it came, compare in constant time, and refuse a
timestamp that is older than 300 seconds. Each attempt is signed anew."""
HEADERS: tuple[tuple[str, str, Schema], ...] = (
    ("Service-Signature", SIGNATURE, {"type": "string", "pattern": "^t=[0-9]+,v1=[0-9a-f]{64}$"}),
    (
        "Service-Attempt",
        "Which attempt of this event to this subscription it is; the first is 1.",
        {"type": "integer", "minimum": 1},
    ),
    (
        "X-Request-Id",
        "The request that caused the event, where one did: its response bore the same.",
        {"type": "string"},
    ),
    (
        "User-Agent",
        "`Makeready-Webhooks/1`. It proves nothing: only the signature does.",
        {"type": "string"},
    ),
)
RESPONSES = {
    "2XX": "Delivered. What the body says does not matter, but the whole response must have come within 10 seconds.",
    "3XX": "Not delivered: redirects are not followed. Tried again later.",
    "default": "Not delivered. Tried again 1, 2, 4, 8 and 24 hours after the first attempt, then parked. No response "
    "within 10 seconds counts the same.",
}


def webhook(event: Event, data: Any) -> Schema:
    """One entry of the document's `webhooks`."""
    return {
        "post": {
            "operationId": "on" + pascal(event.key),
            "summary": event.key,
            "description": event.fires_when,
            "tags": ["Events"],
            "security": [],
            "parameters": [
                {
                    "name": name,
                    "in": "header",
                    "required": name.startswith("Service-"),
                    "description": description,
                    "schema": schema,
                }
                for name, description, schema in HEADERS
            ],
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {
                        "schema": {"$ref": REF + schema_name(event)},
                        "examples": {"delivery": {"value": example(event, data)}},
                    }
                },
            },
            "responses": {status: {"description": meaning} for status, meaning in RESPONSES.items()},
        }
    }
