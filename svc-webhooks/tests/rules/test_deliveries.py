"""When an attempt is due."""

import datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.schedule.instants import slot_of
from svc_webhooks.rules import deliveries as rules

HOUR = datetime.timedelta(hours=1)
LADDER = tuple(hours * HOUR for hours in (1, 2, 4, 8, 24))
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)

instants = st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2100, 1, 1), timezones=st.just(datetime.UTC))
ladders = st.lists(st.integers(1, 500), min_size=1, max_size=8, unique=True).map(
    lambda hours: tuple(n * HOUR for n in sorted(hours))
)


def test_retries_follow_the_first_attempt_after_1_2_4_8_and_24_hours() -> None:
    slot, hours = NOON, []
    for rung in range(1, 6):
        due = rules.next_due(slot, rung, LADDER)
        assert due is not None
        slot = due
        hours.append((due - NOON) / HOUR)
    assert hours == [1, 2, 4, 8, 24]
    assert rules.next_due(slot, 6, LADDER) is None


def test_after_an_outage_the_later_rungs_keep_their_distance() -> None:
    late = NOON + 26 * HOUR
    assert rules.next_due(late, 2, LADDER) == late + HOUR
    assert rules.next_due(late, 3, LADDER) == late + 2 * HOUR


@given(instants, ladders)
def test_punctual_attempts_stand_at_the_rungs_of_any_ladder(slot: datetime.datetime, ladder: rules.Ladder) -> None:
    due: datetime.datetime | None = slot
    for rung, step in enumerate(ladder, start=1):
        assert due is not None
        due = rules.next_due(due, rung, ladder)
        assert due == slot + step
    assert due is not None and rules.next_due(due, len(ladder) + 1, ladder) is None


@given(instants, ladders, st.integers(0, 12))
def test_what_is_due_beyond_the_ladder_was_parked_and_is_retried(
    slot: datetime.datetime, ladder: rules.Ladder, rung: int
) -> None:
    has_parked = rung > 0 and rules.next_due(slot, rung, ladder) is None
    assert (rules.cause_of_due(rung, ladder) == rules.BY_RETRY) == has_parked


@given(instants, st.timedeltas(datetime.timedelta(microseconds=1), 30 * 24 * HOUR))
def test_a_fault_of_ours_is_tried_again_by_any_later_sweep_and_not_by_the_same(
    slot: datetime.datetime, later: datetime.timedelta
) -> None:
    assert slot < rules.due_after(slot) <= slot + later


@given(instants, st.integers(1, 86400))
def test_a_slot_is_a_multiple_of_the_period_and_not_in_the_future(instant: datetime.datetime, period: int) -> None:
    slot = slot_of(instant, period)
    assert slot.timestamp() % period == 0
    assert datetime.timedelta() <= instant - slot < datetime.timedelta(seconds=period)
    assert slot_of(slot, period) == slot


@given(instants)
def test_what_happened_within_the_second_of_a_sweep_is_due(occurred_at: datetime.datetime) -> None:
    assert rules.first_due(occurred_at) <= occurred_at.replace(microsecond=0)


class Delivery(NamedTuple):
    """What decides the delivery after an attempt."""

    rung: int = 2
    due_at: datetime.datetime | None = NOON + HOUR
    replay_id: int | None = None
    resumes_at: datetime.datetime | None = None


OF_A_REPLAY = Delivery(replay_id=5, resumes_at=NOON + 3 * HOUR)
# The cause, the delivery before, the outcome, the delivery after.
AFTER: dict[str, tuple[str, Delivery, str, rules.AfterAttempt]] = {
    "an attempt of a sweep climbs": (
        rules.BY_SWEEP,
        Delivery(),
        "failed",
        rules.AfterAttempt(3, rules.WAITING, NOON + 2 * HOUR),
    ),
    "a success ends it": (rules.BY_SWEEP, Delivery(), "succeeded", rules.AfterAttempt(3, rules.SUCCEEDED, None)),
    "the last rung parks": (rules.BY_SWEEP, Delivery(rung=5), "failed", rules.AfterAttempt(6, rules.PARKED, None)),
    "a fault of ours uses no rung": (
        rules.BY_RETRY,
        Delivery(),
        "fault",
        rules.AfterAttempt(2, rules.WAITING, rules.due_after(NOON)),
    ),
    "an extra attempt leaves its date": (
        rules.MANUAL,
        Delivery(),
        "failed",
        rules.AfterAttempt(2, rules.WAITING, NOON + HOUR),
    ),
    "what has arrived stays so": (
        rules.RESEND,
        Delivery(due_at=None),
        "failed",
        rules.AfterAttempt(2, rules.SUCCEEDED, None),
    ),
    "a test fails": (rules.TEST, Delivery(due_at=None), "failed", rules.AfterAttempt(2, rules.FAILED, None)),
    "a replay goes back to the ladder": (
        rules.REPLAY,
        OF_A_REPLAY,
        "failed",
        rules.AfterAttempt(2, rules.WAITING, NOON + 3 * HOUR),
    ),
    "a replay of what did not wait parks": (
        rules.REPLAY,
        OF_A_REPLAY._replace(resumes_at=None),
        "failed",
        rules.AfterAttempt(2, rules.PARKED, None),
    ),
    "a replay arrives": (rules.REPLAY, OF_A_REPLAY, "succeeded", rules.AfterAttempt(2, rules.SUCCEEDED, None)),
    "a fault of ours leaves it to its replay": (
        rules.REPLAY,
        OF_A_REPLAY,
        "fault",
        rules.AfterAttempt(2, rules.WAITING, rules.due_after(NOON), 5, NOON + 3 * HOUR),
    ),
    "an extra attempt that fails leaves it to its replay": (
        rules.MANUAL,
        OF_A_REPLAY,
        "failed",
        rules.AfterAttempt(2, rules.WAITING, NOON + HOUR, 5, NOON + 3 * HOUR),
    ),
    "an extra attempt that arrives ends its replay": (
        rules.MANUAL,
        OF_A_REPLAY,
        "succeeded",
        rules.AfterAttempt(2, rules.SUCCEEDED, None),
    ),
}


@pytest.mark.parametrize("name", AFTER)
def test_an_attempt_decides_its_delivery(name: str) -> None:
    cause, before, outcome, expected = AFTER[name]
    succeeded, is_internal_fault = outcome == "succeeded", outcome == "fault"
    after = rules.after(before, cause, NOON, LADDER, succeeded=succeeded, is_internal_fault=is_internal_fault)
    assert after == expected
