"""The events as the document's `webhooks` (spec 6.2 to 6.4): each envelope, the headers, the meaning of an answer."""

from __future__ import annotations

import datetime
import hashlib
import uuid

from reference.events import REF, Event, Schema


def _text(description: str) -> Schema:
    return {"description": description, "type": "string"}


def pascal(key: str) -> str:
    return "".join(word.title() for word in key.replace("_", ".").split("."))


def schema_name(event: Event) -> str:
    return pascal(event.key) + "Event"


def envelope(event: Event) -> Schema:
    """The seven keys in their order (spec 6.2)."""
    change: Schema = {"description": "Always null here.", "type": "null"}
    if moved := event.change:
        change = {
            "description": "What moved.",
            "type": "object",
            "properties": {
                "field": {"description": "The field that moved.", "type": "string", "const": moved.field},
                "from": {"description": "Its value before.", **moved.before},
                "to": {"description": "Its value now.", **moved.after},
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
        "description": event.description,
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def example(event: Event, data: Schema) -> Schema:
    """The body of a whole delivery, around the example of its data."""
    change = None
    if moved := event.change:
        change = {"field": moved.field, "from": moved.example[0], "to": moved.example[1]}
    return {
        "schema_version": 1,
        "event_id": str(_event_id(event)),
        "event": event.key,
        "occurred_at": event.occurred_at,
        "company_id": 1,
        "data": {**data, **event.differing},
        "change": change,
    }


def _event_id(event: Event) -> uuid.UUID:
    """A UUIDv7 of the event's instant; its other bits come from the event's key, so they never change."""
    happened_at = datetime.datetime.fromisoformat(event.occurred_at)
    digest = int.from_bytes(hashlib.blake2b(event.key.encode(), digest_size=10).digest(), "big")
    number = int(happened_at.timestamp() * 1000) << 80 | digest
    number = number & ~(0xF << 76) | 0x7 << 76
    return uuid.UUID(int=number & ~(0x3 << 62) | 0x2 << 62)


SIGNATURE = """\
`t=<unix_timestamp>,v1=<hex_digest>`. The digest is HMAC-SHA256, in hex, over the bytes `<timestamp>.<raw body>` with
the subscription's signing secret. Verify it over the raw body as it came, compare in constant time, and refuse a
timestamp that is older than 300 seconds. Each attempt is signed anew."""
STANDARD = """\
`v1,<base64>`, the signature of Standard Webhooks, for its libraries; there may be several, separated by blanks. The
digest is HMAC-SHA256 over the bytes `<webhook-id>.<webhook-timestamp>.<raw body>` with the 32 bytes that the secret's
base64 encodes. Absent, with its two companions, for secrets made before 2026-11-23."""
HEADERS: tuple[tuple[str, str, Schema], ...] = (
    ("Service-Signature", SIGNATURE, {"type": "string", "pattern": "^t=[0-9]+,v1=[0-9a-f]{64}$"}),
    ("webhook-id", "The `event_id`; Standard Webhooks signs it.", {"type": "string"}),
    ("webhook-timestamp", "The `t` of `Service-Signature`.", {"type": "string", "pattern": "^[0-9]+$"}),
    ("webhook-signature", STANDARD, {"type": "string", "pattern": "^v1,[A-Za-z0-9+/]{43}=$"}),
    (
        "Service-Attempt",
        "Which attempt of this event to this subscription it is; the first is 1.",
        {"type": "integer", "minimum": 1},
    ),
    (
        "Service-Replay",
        "The replay that the attempt was made for, where it was: see `POST /webhooks/{sub_id}/replay`.",
        {"type": "integer", "minimum": 1},
    ),
    (
        "X-Request-Id",
        "The request that caused the event, where one did: its response bore the same.",
        {"type": "string"},
    ),
    (
        "traceparent",
        "W3C Trace Context. The trace is that of the request that caused the event, in every attempt, retry and "
        "replay; each attempt has a parent id of its own.",
        {"type": "string", "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$"},
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


def webhook(event: Event, data: Schema) -> Schema:
    """One entry of the document's `webhooks`."""
    return {
        "post": {
            "operationId": "on" + pascal(event.key),
            "summary": event.key,
            "description": event.description,
            "tags": ["Events"],
            "security": [],
            "parameters": [
                {
                    "name": name,
                    "in": "header",
                    "required": name in ("Service-Signature", "Service-Attempt"),
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
