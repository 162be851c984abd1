"""Fields of requests as values: instants, ids of events, states."""

from __future__ import annotations

import datetime
import uuid

from google.protobuf.timestamp_pb2 import Timestamp

from chassis.refusals import invalid_request
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.dispatch.rules import DELIVERY_STATES


def instant_of(given: Timestamp, name: str) -> datetime.datetime:
    """Raises Refusal 400 where no calendar has it."""
    try:
        return given.ToDatetime(datetime.UTC)
    except (ValueError, OverflowError):
        raise invalid_request(f"{name} must lie in the years 1 to 9999.", name) from None


def event_id_of(text: str) -> uuid.UUID | None:
    """None where the text is not as an event's id is printed."""
    try:
        found = uuid.UUID(text)
    except ValueError:
        return None
    return found if str(found) == text else None


def state_of(number: int) -> str | None:
    """The state that a request names; None where it names none. Raises Refusal 422."""
    if number == pb.DELIVERY_STATE_UNSPECIFIED:
        return None
    if not 0 < number <= len(DELIVERY_STATES):
        raise invalid_request(f"state must be one of: {', '.join(DELIVERY_STATES)}.", "state", status=422)
    return DELIVERY_STATES[number - 1]
