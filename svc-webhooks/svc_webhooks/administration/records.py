"""Renders deliveries and attempts for administrators."""

from __future__ import annotations

from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration.queries.deliveries import ShownAttempt, ShownDelivery
from svc_webhooks.administration.rules import held_by
from svc_webhooks.dispatch import rules
from svc_webhooks.events.days import expires_at

_STATES = {state: number for number, state in enumerate(rules.DELIVERY_STATES, start=1)}
_CAUSES = {cause: number for number, cause in enumerate(rules.ATTEMPT_CAUSES, start=1)}


def delivery(row: ShownDelivery) -> pb.Delivery:
    found = pb.Delivery(
        event_id=str(row.event_id),
        sub_id=row.subscription_id,
        event=row.event,
        state=pb.DeliveryState.ValueType(_STATES[row.state]),
        destination_url=row.destination_url,
        held_by=held_by(row.state, row.health, row.active),
    )
    found.occurred_at.FromDatetime(row.occurred_at)
    found.expires_at.FromDatetime(expires_at(row.event_id))
    if row.due_at is not None:
        found.due_at.FromDatetime(row.due_at)
    return found


def attempt(row: ShownAttempt) -> pb.Attempt:
    found = pb.Attempt(
        number=row.number,
        duration_milliseconds=row.duration_milliseconds,
        status=row.status,
        error=row.error,
        response_excerpt=row.response_excerpt.decode(errors="replace"),
        connect_milliseconds=row.connect_milliseconds,
        tls_milliseconds=row.tls_milliseconds,
        first_byte_milliseconds=row.first_byte_milliseconds,
        address=row.address or "",
        state=pb.DeliveryState.ValueType(_STATES[row.state]),
        cause=pb.AttemptCause.ValueType(_CAUSES[row.cause]),
    )
    found.started_at.FromDatetime(row.started_at)
    if row.due_at is not None:
        found.due_at.FromDatetime(row.due_at)
    return found
