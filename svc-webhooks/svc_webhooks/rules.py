"""What may be subscribed to, when an attempt is due, and how a subscription fares. Pure."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
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
Source = Literal["api"]

EVENTS: tuple[EventKey, ...] = get_args(EventKey)
HEALTHS: tuple[Health, ...] = get_args(Health)
HEALTHY, RETRYING, DEAD_LETTERED, PAUSED = HEALTHS
WAITING, SUCCEEDED, PARKED = DELIVERY_STATES = ("waiting", "succeeded", "parked")
BY_SWEEP, BY_RETRY = ATTEMPT_CAUSES = ("sweep", "retry")
SOURCES: tuple[str, ...] = get_args(Source)

DEAD_AFTER_FAILURES = 20  # in a row, over all deliveries of the subscription
LADDER_HOURS = "1,2,4,8,24"

Ladder = tuple[datetime.timedelta, ...]


# Subscribing


def event_set(events: Sequence[str] | None) -> list[EventKey]:
    """The events sorted and deduplicated. Raises Refusal 422 where there are none or one is unknown."""
    if not events:
        raise Refusal(422, "events_empty", f"events must name at least one of: {', '.join(EVENTS)}.", "events")
    if not set(events) <= set(EVENTS):
        raise Refusal(422, "events_unknown_key", f"events may name only: {', '.join(EVENTS)}.", "events")
    return sorted(key for key in EVENTS if key in events)


def invalid_destination_url(reason: str) -> Refusal:
    """reason: completes "destination_url …"; never a value of the caller's."""
    return Refusal(422, "invalid_destination_url", f"destination_url {reason}.", "destination_url")


def vault_unavailable(left_undone: str = "nothing was created") -> Refusal:
    return Refusal(
        503,
        "vault_unavailable",
        f"The signing secret could not be encrypted and {left_undone}; retry with backoff.",
    )


# Slots and the ladder


def first_due(occurred_at: datetime.datetime) -> datetime.datetime:
    """A sweep attempts what happened up to its slot, to the second: `--now` is often given in seconds."""
    return occurred_at.replace(microsecond=0)


def due_after(slot: datetime.datetime) -> datetime.datetime:
    """When to try again after a fault of ours: with the next sweep, whoever starts it, and not twice in this one."""
    return slot + datetime.timedelta(microseconds=1)


def next_due(slot: datetime.datetime, rung: int, ladder: Ladder) -> datetime.datetime | None:
    """When to try again after attempt number `rung` on the ladder failed; None: the ladder is used up.

    The ladder counts from the first attempt's slot. The difference of two rungs is added to this attempt's
    slot, so that after an outage the later rungs keep their distance instead of burning in one hour.
    """
    if rung > len(ladder):
        return None
    before = ladder[rung - 2] if rung > 1 else datetime.timedelta()
    return slot + ladder[rung - 1] - before


def cause_of_due(rung: int, ladder: Ladder) -> str:
    """What started the attempt of a delivery that is due, `rung` steps done: beyond the ladder lead retries alone."""
    return BY_RETRY if rung > len(ladder) else BY_SWEEP


# Health


@dataclass(frozen=True, slots=True)
class Standing:
    """How a subscription fares. failures_in_a_row: attempts that failed since the last success or resume."""

    health: str
    failures_in_a_row: int


HEALTHY_STANDING = Standing(HEALTHY, 0)


def paused() -> Standing:
    """Whatever it was: what failed before counts for nothing once it is resumed."""
    return Standing(PAUSED, 0)


def resumed() -> Standing:
    """Whatever it was. What became due in the meantime goes with the next sweep."""
    return HEALTHY_STANDING


def after_success(standing: Standing) -> Standing:
    """An attempt under way while an administrator pauses may still end: it does not resume anything."""
    return standing if standing.health == PAUSED else HEALTHY_STANDING


def after_failure(standing: Standing, *, parked: bool) -> Standing:
    """healthy → retrying → dead_lettered: on a parked delivery, or on 20 failures in a row."""
    if standing.health == PAUSED:
        return standing
    failures = standing.failures_in_a_row + 1
    dead = parked or failures >= DEAD_AFTER_FAILURES or standing.health == DEAD_LETTERED
    return Standing(DEAD_LETTERED if dead else RETRYING, failures)


# What an administrator sees and asks for


def held_by(state: str, health: str, company_active: bool | None) -> str:
    """Why a delivery waits though it may be due; empty where nothing holds it back.

    company_active: None where the company is not known yet, which counts as active.
    """
    if state != WAITING:
        return ""
    if health == PAUSED:
        return "paused"
    return "company_inactive" if company_active is False else ""


def check_retry(state: str, health: str, company_active: bool | None) -> None:
    """Raises Refusal 422 where a delivery may not be attempted once more."""
    if state != PARKED:
        raise _not_retried("Only a parked delivery is retried; this one is waiting or has succeeded.")
    check_retries(health, company_active)


def check_retries(health: str, company_active: bool | None) -> None:
    """Raises Refusal 422 where nothing of a subscription would be attempted."""
    if health == PAUSED:
        raise _not_retried("The subscription is paused; resume it before a retry.")
    if company_active is False:
        raise _not_retried("The company is inactive; activate it before a retry.")


def _not_retried(message: str) -> Refusal:
    return invalid_request(message, status=422)


def no_such_subscription() -> Refusal:
    """For an operator, who has no key that it could be hidden from."""
    return Refusal(404, "not_found", "There is no webhook subscription with that id; check the id.")


def no_such_delivery() -> Refusal:
    return Refusal(404, "not_found", "No delivery of that event to that subscription is kept; check both ids.")


def no_such_event() -> Refusal:
    return Refusal(
        404, "not_found", "No event with that id is kept; check the id, and that the event is not older than 30 days."
    )


def secret_just_rotated() -> Refusal:
    """Whoever rotates at the same moment is told the secret that signs from now on; a second one would not."""
    return invalid_request(
        "The secret was rotated by somebody else at this moment; rotate again if need be.", status=422
    )


def drop_held_up() -> Refusal:
    return Refusal(
        503,
        "days_held_up",
        "A statement that takes long holds up the drop of a day of events; try again, or leave it to the next hour.",
    )
