"""Deliveries and their attempts: as objects for programs, and as short text for people."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready_cli.errors import printable
from makeready_cli.output import Record, labels
from makeready_cli.rpc.rendering import picked

STATES = labels(pb.DeliveryState.DESCRIPTOR)
CAUSES = labels(pb.AttemptCause.DESCRIPTOR)
_DELIVERY = "event_id sub_id event destination_url state held_by? occurred_at due_at expires_at entity_type? entity_id?"
_ATTEMPT = (
    "number cause actor? started_at duration_milliseconds connect_milliseconds tls_milliseconds "
    "first_byte_milliseconds address? status error? response_excerpt state due_at"
)


def delivery_record(delivery: pb.Delivery) -> Record:
    return picked(delivery, _DELIVERY) | {"attempts": [picked(attempt, _ATTEMPT) for attempt in delivery.attempts]}


def minute(timestamp: Timestamp) -> str:
    """Month, day and minute in UTC; a table has no room for more."""
    return f"{timestamp.ToDatetime(datetime.UTC):%m-%d %H:%M}"


def second(timestamp: Timestamp) -> str:
    return f"{timestamp.ToDatetime(datetime.UTC):%m-%d %H:%M:%S}"


def day(timestamp: Timestamp) -> str:
    return f"{timestamp.ToDatetime(datetime.UTC):%Y-%m-%d}"


def outcome(attempt: pb.Attempt) -> str:
    """The receiver's status if it explains the outcome, else the class of the error."""
    if attempt.HasField("status") and attempt.error in ("", "status", "redirect"):
        return str(attempt.status)
    return f"{attempt.status} {attempt.error}" if attempt.HasField("status") else attempt.error


def last(attempts: Sequence[pb.Attempt]) -> str | None:
    """The number of attempts and the outcome of the last one, abbreviated."""
    if not attempts:
        return None
    return f"{attempts[-1].number}x {outcome(attempts[-1]).replace('destination_refused', 'refused')}"


def due(delivery: pb.Delivery) -> str | None:
    """The instant of the next attempt, or the reason why there is none yet."""
    return held(delivery) or (minute(delivery.due_at) if delivery.HasField("due_at") else None)


def attempted(delivery: pb.Delivery) -> str:
    """The result of an attempt that was requested."""
    if held_by := held(delivery):
        return f"waits for a later sweep: {held_by}"
    attempt = delivery.attempts[-1]
    ended = f"{printable(outcome(attempt))} after {attempt.duration_milliseconds} ms"
    state = STATES.get(delivery.state, "unknown")
    return f"{state}: attempt {attempt.number} ended with {ended}"


def held(delivery: pb.Delivery) -> str:
    return {"company_inactive": "inactive"}.get(delivery.held_by, delivery.held_by)
