"""When an attempt is due, and how it changes its delivery. Pure."""

import datetime
from typing import Literal, NamedTuple, Protocol, get_args

# Only a test fails: any other delivery waits for its next attempt, or is parked.
WAITING, SUCCEEDED, PARKED, FAILED = DELIVERY_STATES = ("waiting", "succeeded", "parked", "failed")
# manual: of a waiting delivery, before it is due. resend: of a succeeded one. People request these two and tests;
# integrations request tests and replays.
BY_SWEEP, BY_RETRY, MANUAL, RESEND, TEST, REPLAY = ATTEMPT_CAUSES = (
    "sweep", "retry", "manual", "resend", "test", "replay",
)  # fmt: skip
# Which deliveries a replay covers: all, also those of events that had none; parked ones; those that are parked or wait
# for another attempt after a failed one.
ReplayState = Literal["all", "parked", "failed"]
REPLAY_STATES: tuple[ReplayState, ...] = get_args(ReplayState)
ALL, ONLY_PARKED, ONLY_FAILED = REPLAY_STATES

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


class BeforeAttempt(Protocol):
    """What decides the delivery after an attempt: its state before. resumes_at: when it is due after its replay."""

    @property
    def rung(self) -> int: ...
    @property
    def due_at(self) -> datetime.datetime | None: ...
    @property
    def replay_id(self) -> int | None: ...
    @property
    def resumes_at(self) -> datetime.datetime | None: ...


class AfterAttempt(NamedTuple):
    """The delivery after an attempt. due_at: None unless it waits. replay_id: the replay for which it still waits."""

    rung: int
    state: str
    due_at: datetime.datetime | None
    replay_id: int | None = None
    resumes_at: datetime.datetime | None = None


def after(
    before: BeforeAttempt,
    cause: str,
    slot: datetime.datetime,
    ladder: Ladder,
    *,
    succeeded: bool,
    is_internal_fault: bool,
) -> AfterAttempt:
    """The delivery after an attempt of any cause. It still waits for its replay after an internal fault, and after an
    extra attempt that failed."""
    is_of_replay = cause == REPLAY and not is_internal_fault
    if is_of_replay:
        decided = after_replay(before.rung, before.resumes_at, succeeded=succeeded)
    elif cause in (MANUAL, RESEND, TEST):
        decided = after_extra_attempt(cause, before.rung, before.due_at, succeeded=succeeded)
    else:
        decided = after_attempt(before.rung, slot, ladder, succeeded=succeeded, is_internal_fault=is_internal_fault)
    if before.replay_id is None or succeeded or is_of_replay:
        return decided
    return decided._replace(replay_id=before.replay_id, resumes_at=before.resumes_at)


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


def after_extra_attempt(cause: str, rung: int, due_at: datetime.datetime | None, *, succeeded: bool) -> AfterAttempt:
    """After an attempt outside the ladder, which uses no step of it.

    A waiting delivery waits on for the date it had. A delivery that has succeeded once has arrived, whatever the
    receiver answers to it now. A test is over.
    """
    if succeeded or cause == RESEND:
        return AfterAttempt(rung, SUCCEEDED, None)
    return AfterAttempt(rung, FAILED, None) if cause == TEST else AfterAttempt(rung, WAITING, due_at)


def after_replay(rung: int, resumes_at: datetime.datetime | None, *, succeeded: bool) -> AfterAttempt:
    """After the attempt of a replay, which uses no step of the ladder: a delivery that fails waits for the date it had
    before the replay; one that did not wait then is parked."""
    if succeeded:
        return AfterAttempt(rung, SUCCEEDED, None)
    return AfterAttempt(rung, WAITING if resumes_at else PARKED, resumes_at)


def cause_of_due(rung: int, ladder: Ladder) -> str:
    """The cause of a due delivery's attempt after `rung` steps: beyond the ladder only retries make a delivery due."""
    return BY_RETRY if rung > len(ladder) else BY_SWEEP


class SweepOfAttempt(NamedTuple):
    """The sweep that makes an attempt. now: its slot, or the operator's instant. since: its attempts began then or
    later, by the real clock."""

    now: datetime.datetime
    since: datetime.datetime
