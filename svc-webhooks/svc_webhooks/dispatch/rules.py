"""When an attempt is due, and how it changes its delivery. Pure."""

import datetime
import uuid
from typing import NamedTuple

WAITING, SUCCEEDED, PARKED = DELIVERY_STATES = ("waiting", "succeeded", "parked")
BY_SWEEP, BY_RETRY = ATTEMPT_CAUSES = ("sweep", "retry")

LADDER_HOURS = "1,2,4,8,24"

Ladder = tuple[datetime.timedelta, ...]


def first_due(occurred_at: datetime.datetime) -> datetime.datetime:
    """The due time of a new event, to the second: a sweep covers its own slot, and `--now` often has whole seconds."""
    return occurred_at.replace(microsecond=0)


def due_after(slot: datetime.datetime) -> datetime.datetime:
    """The due time after an internal fault: the next sweep, scheduled or on request, but not this one again."""
    return slot + datetime.timedelta(microseconds=1)


def next_due(slot: datetime.datetime, rung: int, ladder: Ladder) -> datetime.datetime | None:
    """The due time after attempt number `rung` on the ladder failed; None if the ladder is used up.

    The ladder counts from the first attempt's slot. The difference of two rungs is added to this attempt's slot, so the
    later rungs retain their distance after an outage instead of being used up within an hour.
    """
    if rung > len(ladder):
        return None
    before = ladder[rung - 2] if rung > 1 else datetime.timedelta()
    return slot + ladder[rung - 1] - before


class AfterAttempt(NamedTuple):
    """The delivery after an attempt. due_at: None unless it waits."""

    rung: int
    state: str
    due_at: datetime.datetime | None


def after_attempt(
    rung: int, slot: datetime.datetime, ladder: Ladder, *, succeeded: bool, is_internal_fault: bool
) -> AfterAttempt:
    """rung: steps of the ladder used before. An internal fault uses none; the next sweep tries again."""
    if is_internal_fault:
        return AfterAttempt(rung, WAITING, due_after(slot))
    if succeeded:
        return AfterAttempt(rung + 1, SUCCEEDED, None)
    due_at = next_due(slot, rung + 1, ladder)
    return AfterAttempt(rung + 1, WAITING if due_at else PARKED, due_at)


def cause_of_due(rung: int, ladder: Ladder) -> str:
    """The cause of a due delivery's attempt after `rung` steps: beyond the ladder only retries make a delivery due."""
    return BY_RETRY if rung > len(ladder) else BY_SWEEP


class Attempt(NamedTuple):
    """An attempt and the state of its delivery after it."""

    event_id: uuid.UUID
    subscription_id: int
    fence: int
    number: int
    rung: int
    state: str
    due_at: datetime.datetime | None
    cause: str
    started_at: datetime.datetime
    duration_milliseconds: int
    connect_milliseconds: int | None
    tls_milliseconds: int | None
    first_byte_milliseconds: int | None
    address: str | None
    status: int | None
    error: str
    response_excerpt: bytes
    is_internal_fault: bool  # not stored; an internal fault leaves the subscription's health as it is
    answered: tuple[str, ...] = ()  # receivers whose first 2xx this is: see hosts.py
