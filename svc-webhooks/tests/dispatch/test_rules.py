"""When an attempt is due, and how a subscription fares."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from chassis.schedule.instants import slot_of
from svc_webhooks import rules
from svc_webhooks.rules import DEAD_LETTERED, HEALTHY, PAUSED, RETRYING, Standing

HOUR = datetime.timedelta(hours=1)
LADDER = tuple(hours * HOUR for hours in (1, 2, 4, 8, 24))
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)

instants = st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2100, 1, 1), timezones=st.just(datetime.UTC))
ladders = st.lists(st.integers(1, 500), min_size=1, max_size=8, unique=True).map(
    lambda hours: tuple(n * HOUR for n in sorted(hours))
)
standings = st.one_of(
    st.just(Standing(HEALTHY, 0)),
    st.just(Standing(PAUSED, 0)),
    st.integers(1, 19).map(lambda n: Standing(RETRYING, n)),
    st.integers(1, 500).map(lambda n: Standing(DEAD_LETTERED, n)),
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


def test_the_first_failure_makes_retrying() -> None:
    assert rules.after_failure(Standing(HEALTHY, 0), parked=False) == Standing(RETRYING, 1)


def test_twenty_failures_in_a_row_make_dead_lettered() -> None:
    standing = Standing(HEALTHY, 0)
    for _ in range(19):
        standing = rules.after_failure(standing, parked=False)
    assert standing == Standing(RETRYING, 19)
    assert rules.after_failure(standing, parked=False) == Standing(DEAD_LETTERED, 20)


@given(standings)
def test_a_parked_delivery_makes_dead_lettered(standing: Standing) -> None:
    after = rules.after_failure(standing, parked=True)
    assert after.health == (PAUSED if standing.health == PAUSED else DEAD_LETTERED)


@given(standings)
def test_dead_lettered_stays_until_a_success(standing: Standing) -> None:
    dead = rules.after_failure(rules.after_failure(standing, parked=True), parked=False)
    if standing.health == PAUSED:
        assert dead == standing
    else:
        assert dead.health == DEAD_LETTERED
        assert rules.after_success(dead) == Standing(HEALTHY, 0)


def happens(what: str, standing: Standing) -> Standing:
    match what:
        case "success":
            return rules.after_success(standing)
        case "pause":
            return rules.paused()
        case "resume":
            return rules.resumed()
        case _:
            return rules.after_failure(standing, parked=what == "parks")


HAPPENINGS = ("success", "failure", "parks", "pause", "resume")
# Every health, and every happening. Two rows of `retrying`: the twentieth failure in a row makes the difference.
TRANSITIONS = {
    Standing(HEALTHY, 0): (HEALTHY, RETRYING, DEAD_LETTERED, PAUSED, HEALTHY),
    Standing(RETRYING, 1): (HEALTHY, RETRYING, DEAD_LETTERED, PAUSED, HEALTHY),
    Standing(RETRYING, 19): (HEALTHY, DEAD_LETTERED, DEAD_LETTERED, PAUSED, HEALTHY),
    Standing(DEAD_LETTERED, 20): (HEALTHY, DEAD_LETTERED, DEAD_LETTERED, PAUSED, HEALTHY),
    Standing(DEAD_LETTERED, 1): (HEALTHY, DEAD_LETTERED, DEAD_LETTERED, PAUSED, HEALTHY),
    Standing(PAUSED, 0): (PAUSED, PAUSED, PAUSED, PAUSED, HEALTHY),
}


@pytest.mark.parametrize("standing", TRANSITIONS, ids=str)
def test_every_health_goes_where_the_table_says(standing: Standing) -> None:
    after = tuple(happens(what, standing).health for what in HAPPENINGS)
    assert after == TRANSITIONS[standing]


def test_the_table_of_transitions_names_every_health() -> None:
    assert {standing.health for standing in TRANSITIONS} == set(rules.HEALTHS)


@given(st.lists(st.sampled_from(HAPPENINGS), max_size=60))
def test_health_follows_from_what_happened_since_the_last_turning_point(story: list[str]) -> None:
    """A pause holds until the resume; a success or a resume forgets all before it."""
    standing = rules.HEALTHY_STANDING
    for what in story:
        standing = happens(what, standing)
    paused = False
    since: list[str] = []
    for what in story:
        if what in ("pause", "resume"):
            paused, since = what == "pause", []
        elif not paused:
            since = [] if what == "success" else [*since, what]
    dead = "parks" in since or len(since) >= 20
    expected = PAUSED if paused else HEALTHY if not since else DEAD_LETTERED if dead else RETRYING
    assert standing == Standing(expected, 0 if paused else len(since))


@given(standings, st.lists(st.sampled_from(HAPPENINGS)))
def test_health_and_failures_always_agree(standing: Standing, story: list[str]) -> None:
    for what in story:
        standing = happens(what, standing)
        assert (standing.failures_in_a_row == 0) == (standing.health in (HEALTHY, PAUSED))
        assert standing.health != RETRYING or standing.failures_in_a_row < 20


def test_the_set_of_events_is_sorted_and_deduplicated() -> None:
    assert rules.event_set(["vendor.hold", "ticket.created", "vendor.hold"]) == ["ticket.created", "vendor.hold"]


@pytest.mark.parametrize(
    ("events", "code"), [(None, "events_empty"), ([], "events_empty"), (["x"], "events_unknown_key")]
)
def test_no_events_and_unknown_events_are_refused(events: list[str] | None, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        rules.event_set(events)
    assert (refused.value.status, refused.value.code) == (422, code)
    assert refused.value.message.endswith(".")


states = st.sampled_from(rules.DELIVERY_STATES)
healths = st.sampled_from(rules.HEALTHS)
activities = st.sampled_from([True, False, None])


@given(states, healths, activities)
def test_a_delivery_is_held_while_it_waits_and_only_then(state: str, health: str, active: bool | None) -> None:
    held = rules.held_by(state, health, active)
    assert (held == "") == (state != rules.WAITING or (health != PAUSED and active is not False))
    if held:
        assert held == ("paused" if health == PAUSED else "company_inactive")


@given(states, healths, activities)
def test_a_retry_is_taken_of_a_parked_delivery_that_nothing_would_hold(
    state: str, health: str, active: bool | None
) -> None:
    try:
        rules.check_retry(state, health, active)
        taken = True
    except Refusal as refusal:
        taken = False
        assert (refusal.status, refusal.code) == (422, "invalid_request")
        assert refusal.message.endswith(".") and ";" in refusal.message
    assert taken == (state == rules.PARKED and not rules.held_by(rules.WAITING, health, active))
