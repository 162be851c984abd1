"""The public JSON of deliveries, their attempts and replays, and the bodies of tests and replays."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from chassis.records.bodies import SENSITIVE
from chassis.schedule.instants import printed
from svc_webhooks.administration.queries.deliveries import ShownAttempt, ShownDelivery
from svc_webhooks.feed.queries.replays import Replay
from svc_webhooks.rules.deliveries import ReplayState
from svc_webhooks.rules.subscriptions import EventKey

SCHEMA_VERSION: Literal[1] = 1
DeliveryState = Literal["waiting", "succeeded", "parked", "failed"]
AttemptCause = Literal["sweep", "retry", "manual", "resend", "test", "replay"]
Instant = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
ReplayStatus = Literal["under_way", "finished"]


class WebhookAttempt(msgspec.Struct, kw_only=True):
    """One attempt of a delivery."""

    number: int
    """1 is the first; the header `Service-Attempt`."""
    cause: AttemptCause
    """Why it was made: `sweep` on its date, `replay` and `test` over this API, the others in the administrator
    interface."""
    replay_id: int | None
    """The replay that it was made for; the header `Service-Replay`."""
    started_at: str
    """When it began."""
    duration_milliseconds: int
    """Of the whole attempt."""
    first_byte_milliseconds: int | None
    """From the start to the first byte of the response; null if none arrived."""
    status: int | None
    """The HTTP status of the response; null if none arrived."""
    error: str | None
    """Why it failed, for example `status`, `timeout` or `certificate`; null after a success."""


class WebhookAttemptAnswer(WebhookAttempt, kw_only=True):
    """One attempt of a delivery, with the response to it."""

    response_excerpt: Annotated[str, SENSITIVE]
    """The first 4 KiB of the response's body."""


class WebhookDelivery(msgspec.Struct, kw_only=True):
    """An event's delivery to a subscription, without the event itself."""

    schema_version: Literal[1] = SCHEMA_VERSION
    entity_type: Literal["webhook_delivery"] = "webhook_delivery"
    entity_id: int
    """The id of the subscription, the same in all deliveries of one list."""
    delivery_id: str
    """The delivery's own id, which stays for as long as the delivery exists. It has at most 64 characters; treat it as
    opaque."""
    event_id: str
    """The event's id, as its envelope has it."""
    event: str
    """The event's key; `webhook.test` for a test."""
    occurred_at: str
    """When the event happened."""
    state: DeliveryState
    """`waiting` for its next attempt; `parked` when the retries are used up; `failed`: a test that did not arrive."""
    next_attempt_at: str | None
    """When the next attempt is due; null unless the delivery waits."""
    expires_at: str
    """When the delivery is deleted."""
    attempts: Sequence[WebhookAttempt]
    """Ascending by number."""


class WebhookDeliveryAnswers(WebhookDelivery, kw_only=True):
    """An event's delivery to a subscription, with the responses to its attempts."""

    attempts: Sequence[WebhookAttemptAnswer]
    """Ascending by number."""


class TestCreate(msgspec.Struct, kw_only=True):
    """A test of a subscription: an object without keys."""

    __test__ = False  # for pytest


class ReplayCreate(msgspec.Struct, kw_only=True):
    """Which events to send to a subscription again."""

    since: datetime.datetime
    """Only events that were stored at this instant or later. It must carry a UTC offset."""
    until: datetime.datetime | None = None
    """Only events that were stored before this instant; left out: until now."""
    events: list[str] | None = None
    """Only events with these keys, which the subscription must name; left out: all that it names."""
    state: ReplayState | None = None
    """`all`: every event, whether it arrived, failed or was never sent to this subscription. `parked`: those whose
    delivery is parked. `failed`: those whose delivery is parked or waits after a failed attempt. Left out: `all`."""


class WebhookReplay(msgspec.Struct, kw_only=True):
    """A replay: the events of a period, sent to a subscription once more."""

    schema_version: Literal[1] = SCHEMA_VERSION
    entity_type: Literal["webhook_replay"] = "webhook_replay"
    entity_id: int
    subscription_id: int
    """The subscription that the events are sent to."""
    since: Instant
    """Only events that were stored at this instant or later."""
    until: Instant
    """Only events that were stored before this instant."""
    events: Sequence[EventKey]
    """Only events with these keys; sorted, each once."""
    state: ReplayState
    """Which deliveries it is about; see ReplayCreate."""
    status: ReplayStatus
    """`finished` when each delivery was attempted."""
    matched: int
    """The deliveries that it was about when it was requested. Those whose events do not pass the subscription's filter
    are taken off while it runs."""
    waiting: int
    """Those that were not attempted yet."""
    succeeded: int
    """Attempts of this replay that arrived."""
    failed: int
    """Attempts of this replay that failed. Such a delivery is parked, or goes on with the retries that it had left."""
    created_at: str
    """When it was requested."""
    finished_at: str | None
    """When each delivery had been attempted; null until then."""


def delivery(row: ShownDelivery, attempts: Sequence[ShownAttempt]) -> WebhookDelivery:
    return WebhookDelivery(**_delivery(row), attempts=[WebhookAttempt(**_attempt(attempt)) for attempt in attempts])


def delivery_with_answers(row: ShownDelivery, attempts: Sequence[ShownAttempt]) -> WebhookDeliveryAnswers:
    answers = [
        WebhookAttemptAnswer(**_attempt(attempt), response_excerpt=attempt.response_excerpt.decode(errors="replace"))
        for attempt in attempts
    ]
    return WebhookDeliveryAnswers(**_delivery(row), attempts=answers)


def _delivery(row: ShownDelivery) -> dict[str, Any]:
    return {
        "entity_id": row.subscription_id,
        "delivery_id": f"{row.event_id}:{row.subscription_id}",
        "event_id": str(row.event_id),
        "event": row.event,
        "occurred_at": printed(row.occurred_at),
        "state": row.state,
        "next_attempt_at": None if row.due_at is None else printed(row.due_at),
        "expires_at": printed(row.expires_at),
    }


def _attempt(row: ShownAttempt) -> dict[str, Any]:
    return {
        "number": row.number,
        "cause": row.cause,
        "replay_id": row.replay_id,
        "started_at": printed(row.started_at),
        "duration_milliseconds": row.duration_milliseconds,
        "first_byte_milliseconds": row.first_byte_milliseconds,
        "status": row.status,
        "error": row.error or None,
    }


def replay(row: Replay, waiting: int, succeeded: int, failed: int) -> WebhookReplay:
    return WebhookReplay(
        entity_id=row.id,
        subscription_id=row.subscription_id,
        since=printed(row.since),
        until=printed(row.until),
        events=row.events,  # type: ignore[arg-type] # which were checked when it was stored
        state=row.state,  # type: ignore[arg-type] # likewise
        status="under_way" if row.finished_at is None else "finished",
        matched=row.matched,
        waiting=waiting,
        succeeded=succeeded,
        failed=failed,
        created_at=printed(row.created_at),
        finished_at=None if row.finished_at is None else printed(row.finished_at),
    )
