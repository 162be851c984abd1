"""Renders deliveries and attempts for administrators."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration.queries.deliveries import ShownAttempt, ShownDelivery
from svc_webhooks.administration.queries.events import ListedEvent
from svc_webhooks.administration.queries.subscriptions import DetailedSubscription, StepCounts
from svc_webhooks.administration.rules import EVENT_OUTCOMES, held_by, outcome_of
from svc_webhooks.days import expires_at
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.rules.events import ENTITY_TYPES

_STATES = {state: number for number, state in enumerate(rules.DELIVERY_STATES, start=1)}
OUTCOMES = {outcome: number for number, outcome in enumerate(EVENT_OUTCOMES, start=1)}
_CAUSES = {cause: number for number, cause in enumerate(rules.ATTEMPT_CAUSES, start=1)}


def delivery(row: ShownDelivery, rungs: int) -> pb.Delivery:
    """`rungs` is the ladder's length with the first attempt."""
    document = pb.Delivery(
        event_id=str(row.event_id),
        sub_id=row.subscription_id,
        event=row.event,
        state=pb.DeliveryState.ValueType(_STATES[row.state]),
        destination_url=row.destination_url,
        held_by=held_by(row.state, row.health, row.active),
        entity_type=ENTITY_TYPES.get(row.event, ""),
        entity_id=row.entity_id,
        rungs_used=row.rung,
        rungs=rungs,
    )
    document.occurred_at.FromDatetime(row.occurred_at)
    document.expires_at.FromDatetime(row.expires_at)
    if row.due_at is not None:
        document.due_at.FromDatetime(row.due_at)
    return document


def attempt(row: ShownAttempt) -> pb.Attempt:
    document = pb.Attempt(
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
        actor=row.actor,
        replay_id=row.replay_id,
    )
    document.started_at.FromDatetime(row.started_at)
    document.signed_at.FromDatetime(row.signed_at)
    if row.due_at is not None:
        document.due_at.FromDatetime(row.due_at)
    return document


def undelivered(row: DetailedSubscription) -> pb.Undelivered:
    document = pb.Undelivered(
        sub_id=row.id, waiting=row.waiting, parked=row.parked, held_by=held_by(rules.WAITING, row.health, row.active)
    )
    if row.next_due_at is not None:
        document.next_due_at.FromDatetime(row.next_due_at)
    return document


def subscription(row: DetailedSubscription) -> pb.SubscriptionDetails:
    document = pb.SubscriptionDetails(
        sub_id=row.id,
        company_id=row.company_id,
        destination_url=row.destination_url,
        events=row.events,
        health=row.health,
        failures_in_a_row=row.failures_in_a_row,
        source=row.source,
        created_by=row.created_by or "",
        secret_prefix=row.secret_prefix,
        paused_by=row.paused_by,
        pause_reason=row.pause_reason,
        undelivered=undelivered(row),
        company_active=row.active is not False,
        property_ids=row.property_ids or (),
        categories=row.categories or (),
        priorities=row.priorities or (),
    )
    for name in ("failing_since", "created_at", "secret_since", "paused_at"):
        if (instant := getattr(row, name)) is not None:
            getattr(document, name).FromDatetime(instant)
    return document


def event(row: ListedEvent, states: Mapping[str, int], *, is_sandbox: bool) -> pb.Event:
    """`states` has the number of the event's deliveries by state; `is_sandbox`: whether the company is one."""
    document = pb.Event(
        event_id=str(row.event_id),
        event=row.event,
        entity_type=ENTITY_TYPES.get(row.event, ""),
        entity_id=row.entity_id,
        request_id=row.request_id,
        outcome=pb.EventOutcome.ValueType(OUTCOMES[outcome_of(states)]),
        waiting=states.get(rules.WAITING, 0),
        succeeded=states.get(rules.SUCCEEDED, 0),
        parked=states.get(rules.PARKED, 0),
        failed=states.get(rules.FAILED, 0),
    )
    document.occurred_at.FromDatetime(row.occurred_at)
    document.stored_at.FromDatetime(row.stored_at)
    document.expires_at.FromDatetime(expires_at(row.event_id, row.stored_at if is_sandbox else None))
    return document


def stats(row: StepCounts, began_at: datetime.datetime) -> pb.DeliveryStats:
    document = pb.DeliveryStats(
        succeeded=row.succeeded, failed=row.failed, median_milliseconds=row.median, p95_milliseconds=row.p95
    )
    document.begins_at.FromDatetime(began_at)
    return document
