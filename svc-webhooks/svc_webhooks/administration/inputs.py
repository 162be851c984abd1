"""Converts request fields to values: instants, event ids, states."""

from __future__ import annotations

import datetime
import uuid

from google.protobuf.timestamp_pb2 import Timestamp

from chassis.refusals import invalid_request
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.dispatch.rules import DELIVERY_STATES


def instant_of(given: Timestamp, name: str) -> datetime.datetime:
    """Raises Refusal 400 if the instant lies outside the years 1 to 9999."""
    try:
        return given.ToDatetime(datetime.UTC)
    except (ValueError, OverflowError):
        raise invalid_request(f"{name} must lie in the years 1 to 9999.", name) from None


def event_id_of(text: str) -> uuid.UUID | None:
    """None unless the text is an event id in canonical form."""
    try:
        found = uuid.UUID(text)
    except ValueError:
        return None
    return found if str(found) == text else None


def state_of(number: int) -> str | None:
    """The requested state; None if the request names none. Raises Refusal 422."""
    if number == pb.DELIVERY_STATE_UNSPECIFIED:
        return None
    if not 0 < number <= len(DELIVERY_STATES):
        raise invalid_request(f"state must be one of: {', '.join(DELIVERY_STATES)}.", "state", status=422)
    return DELIVERY_STATES[number - 1]
