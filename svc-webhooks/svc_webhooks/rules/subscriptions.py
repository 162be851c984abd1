"""The events of a subscription, and its health. Pure."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from chassis.refusals import Refusal, invalid_request

EventKey = Literal[
    "inspection.stale",
    "pm.stale",
    "property.notice.published",
    "ticket.created",
    "ticket.stale",
    "ticket.status_changed",
    "turn.schedule_changed",
    "turn.status_changed",
    "turn.task.stale",
    "vendor.hold",
]
Health = Literal["healthy", "retrying", "dead_lettered", "paused"]
Source = Literal["api", "administrator"]

EVENTS: tuple[EventKey, ...] = get_args(EventKey)
HEALTHS: tuple[Health, ...] = get_args(Health)
HEALTHY, RETRYING, DEAD_LETTERED, PAUSED = HEALTHS
SOURCES: tuple[str, ...] = get_args(Source)
API, ADMINISTRATOR = SOURCES

KIND = "webhook_subscription"  # in hints and in the audit log
SUBSCRIPTIONS_MAX = 1000  # of a company; the setting may change it
DEAD_AFTER_SWEEPS = 5  # in a row, each with a failure and without a success


# Subscribing


def event_set(events: Sequence[str] | None) -> list[EventKey]:
    """The events, sorted and deduplicated. Raises Refusal 422 if there are none or one is unknown."""
    if not events:
        raise Refusal(422, "events_empty", f"events must name at least one of: {', '.join(EVENTS)}.", "events")
    if not set(events) <= set(EVENTS):
        raise Refusal(422, "events_unknown_key", f"events may name only: {', '.join(EVENTS)}.", "events")
    return sorted(key for key in EVENTS if key in events)


def invalid_destination_url(reason: str) -> Refusal:
    """reason: completes "destination_url …"; never contains a value of the caller's."""
    return Refusal(422, "invalid_destination_url", f"destination_url {reason}.", "destination_url")


def no_such_subscription() -> Refusal:
    """For callers without an API key: the message mentions none."""
    return Refusal(404, "not_found", "There is no webhook subscription with that id; check the id.")


def check_count(subscriptions: int, subscriptions_max: int) -> None:
    """Raises Refusal 422 if a company that has so many may create no other."""
    if subscriptions >= subscriptions_max:
        message = f"A company has at most {subscriptions_max:,} webhook subscriptions; delete one that is not needed."
        raise invalid_request(message, status=422)


# Health


@dataclass(frozen=True, slots=True)
class SubscriptionHealth:
    """A subscription's health. failures_in_a_row: attempts that failed since the last success or resume.

    failed_sweeps: the sweeps in which they did, by their `now`, as far as they count; the first DEAD_AFTER_SWEEPS.
    delivering_sweep: one in which an attempt succeeded, so that its failures do not count; noted once there are any.
    """

    health: str
    failures_in_a_row: int
    failed_sweeps: tuple[datetime.datetime, ...] = ()
    delivering_sweep: datetime.datetime | None = None


HEALTHY_AGAIN = SubscriptionHealth(HEALTHY, 0)


def paused() -> SubscriptionHealth:
    """From every health. Earlier failures do not count after a resume."""
    return SubscriptionHealth(PAUSED, 0)


def resumed() -> SubscriptionHealth:
    """From every health. Deliveries that became due meanwhile go with the next sweep."""
    return HEALTHY_AGAIN


def after_success(standing: SubscriptionHealth, sweep: datetime.datetime | None = None) -> SubscriptionHealth:
    """An attempt that runs while an administrator pauses may still succeed: it does not resume the subscription.

    sweep: the `now` of the sweep that made the attempt; None if a person requested it.
    """
    if standing.health in (PAUSED, HEALTHY):
        return standing
    return replace(HEALTHY_AGAIN, delivering_sweep=sweep)


def after_failure(
    standing: SubscriptionHealth, *, parked: bool, sweep: datetime.datetime | None = None
) -> SubscriptionHealth:
    """healthy → retrying → dead_lettered, when a delivery is parked or after failures in five sweeps in a row.

    A sweep counts once, however many deliveries fail in it, and not at all if one succeeds. sweep: see `after_success`.
    """
    if standing.health == PAUSED:
        return standing
    sweeps = standing.failed_sweeps
    if sweep is not None and sweep != standing.delivering_sweep and sweep not in sweeps:
        sweeps = (*sweeps, sweep)[:DEAD_AFTER_SWEEPS]
    dead = parked or len(sweeps) == DEAD_AFTER_SWEEPS or standing.health == DEAD_LETTERED
    health = DEAD_LETTERED if dead else RETRYING
    return SubscriptionHealth(health, standing.failures_in_a_row + 1, sweeps, standing.delivering_sweep)
