"""Converts request fields to values: instants, event ids, states."""

from __future__ import annotations

import datetime
import uuid
from typing import Any, NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from chassis.refusals import invalid_request
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.rules.deliveries import DELIVERY_STATES
from svc_webhooks.rules.events import ENTITY_TYPES, KINDS, STORED_EVENTS


def instant_of(instant: Timestamp, name: str) -> datetime.datetime:
    """Raises Refusal 400 if the instant lies outside the years 1 to 9999."""
    try:
        return instant.ToDatetime(datetime.UTC)
    except (ValueError, OverflowError):
        raise invalid_request(f"{name} must lie in the years 1 to 9999.", name) from None


def event_id_of(text: str) -> uuid.UUID | None:
    """None unless the text is an event id in canonical form."""
    try:
        event_id = uuid.UUID(text)
    except ValueError:
        return None
    return event_id if str(event_id) == text else None


def state_of(number: int) -> str | None:
    """The requested state; None if the request names none. Raises Refusal 422."""
    if number == pb.DELIVERY_STATE_UNSPECIFIED:
        return None
    if not 0 < number <= len(DELIVERY_STATES):
        raise invalid_request(f"state must be one of: {', '.join(DELIVERY_STATES)}.", "state", status=422)
    return DELIVERY_STATES[number - 1]


def key_of(text: str) -> str | None:
    """The requested event key; None if the request names none. Raises Refusal 422."""
    if not text:
        return None
    if text not in ENTITY_TYPES:
        raise invalid_request(f"event must be one of: {', '.join(STORED_EVENTS)}.", "event", status=422)
    return text


def keys_of(event: str, entity_type: str) -> list[str]:
    """The event keys that a request names by key and by kind of record. Raises Refusal 422."""
    key = key_of(event)
    if entity_type and entity_type not in KINDS:
        raise invalid_request(f"entity_type must be one of: {', '.join(KINDS)}.", "entity_type", status=422)
    keys = [key] if key else STORED_EVENTS
    return [key for key in keys if not entity_type or ENTITY_TYPES[key] == entity_type]


class Stretch(NamedTuple):
    """The event ids from `since` on and before `before`."""

    since: uuid.UUID
    before: uuid.UUID


def limit_of(request: Any, default: int, most: int) -> int:
    return min(request.limit, most) if request.limit > 0 else default
