"""The events of a subscription, and its health."""

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_webhooks.rules import subscriptions as rules
from svc_webhooks.rules.subscriptions import DEAD_LETTERED, HEALTHY, PAUSED, RETRYING, SubscriptionHealth

BEGIN = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
SWEEPS = [BEGIN + hour * datetime.timedelta(hours=1) for hour in range(8)]

sweeps = st.integers(0, 4).map(lambda n: tuple(SWEEPS[:n]))
healths = st.one_of(
    st.just(SubscriptionHealth(HEALTHY, 0)),
    st.just(SubscriptionHealth(PAUSED, 0)),
    st.builds(SubscriptionHealth, st.just(RETRYING), st.integers(4, 500), sweeps),
    st.builds(SubscriptionHealth, st.just(DEAD_LETTERED), st.integers(5, 500), sweeps),
)


def failed(health: SubscriptionHealth, *sweeps: datetime.datetime) -> SubscriptionHealth:
    for sweep in sweeps:
        health = rules.after_failure(health, parked=False, sweep=sweep)
    return health


def test_the_first_failure_makes_retrying() -> None:
    assert failed(rules.HEALTHY_AGAIN, BEGIN) == SubscriptionHealth(RETRYING, 1, (BEGIN,))


def test_failures_of_five_sweeps_in_a_row_make_dead_lettered() -> None:
    health = failed(rules.HEALTHY_AGAIN, *SWEEPS[:4])
    assert (health.health, health.failures_in_a_row) == (RETRYING, 4)
    assert failed(health, SWEEPS[4]).health == DEAD_LETTERED


def test_many_failures_of_one_sweep_are_one() -> None:
    health = failed(rules.HEALTHY_AGAIN, *[BEGIN] * 77)
    assert (health.health, health.failures_in_a_row) == (RETRYING, 77)
    # Sweeps that run at once take turns; each counts once.
    assert failed(health, *SWEEPS[:2] * 20).health == RETRYING
    assert failed(health, *SWEEPS[1:4]).health == RETRYING
    assert failed(health, *SWEEPS[1:5]).health == DEAD_LETTERED


def test_a_sweep_with_a_success_breaks_the_row_and_does_not_count() -> None:
    mixed, later = SWEEPS[4], SWEEPS[5:]
    health = failed(
        rules.HEALTHY_AGAIN,
        *SWEEPS[:4],
    )
    health = failed(rules.after_success(health, mixed), mixed, mixed)
    assert (health.health, health.failures_in_a_row, health.failed_sweeps) == (RETRYING, 2, ())
    assert failed(health, *later, mixed, later[0]).health == RETRYING
    assert failed(health, *later, SWEEPS[0], SWEEPS[1]).health == DEAD_LETTERED


def test_what_a_person_requested_is_no_sweep() -> None:
    health = rules.HEALTHY_AGAIN
    for _ in range(100):
        health = rules.after_failure(health, parked=False)
    assert health == SubscriptionHealth(RETRYING, 100)
    assert rules.after_success(health) == rules.HEALTHY_AGAIN


@given(healths)
def test_a_parked_delivery_makes_dead_lettered(health: SubscriptionHealth) -> None:
    after = rules.after_failure(health, parked=True)
    assert after.health == (PAUSED if health.health == PAUSED else DEAD_LETTERED)


@given(healths)
def test_dead_lettered_stays_until_a_success(health: SubscriptionHealth) -> None:
    dead = rules.after_failure(rules.after_failure(health, parked=True), parked=False)
    if health.health == PAUSED:
        assert dead == health
    else:
        assert dead.health == DEAD_LETTERED
        assert rules.after_success(dead) == SubscriptionHealth(HEALTHY, 0)


def happens(happening: str, health: SubscriptionHealth, sweep: datetime.datetime = SWEEPS[4]) -> SubscriptionHealth:
    match happening:
        case "success":
            return rules.after_success(health, sweep)
        case "pause":
            return rules.paused()
        case "resume":
            return rules.resumed()
        case _:
            return rules.after_failure(health, parked=happening == "parks", sweep=sweep)


HAPPENINGS = ("success", "failure", "parks", "pause", "resume")
# Every health and every action. `retrying` has two rows, because the fifth sweep in a row makes a difference.
TRANSITIONS = {
    SubscriptionHealth(HEALTHY, 0): (HEALTHY, RETRYING, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(RETRYING, 77, tuple(SWEEPS[:3])): (HEALTHY, RETRYING, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(RETRYING, 4, tuple(SWEEPS[:4])): (HEALTHY, DEAD_LETTERED, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(DEAD_LETTERED, 5, tuple(SWEEPS[:5])): (HEALTHY, DEAD_LETTERED, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(DEAD_LETTERED, 1): (HEALTHY, DEAD_LETTERED, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(PAUSED, 0): (PAUSED, PAUSED, PAUSED, PAUSED, HEALTHY),
}


@pytest.mark.parametrize("health", TRANSITIONS, ids=str)
def test_every_health_goes_where_the_table_says(health: SubscriptionHealth) -> None:
    after = tuple(happens(happening, health).health for happening in HAPPENINGS)
    assert after == TRANSITIONS[health]


def test_the_table_of_transitions_names_every_health() -> None:
    assert {health.health for health in TRANSITIONS} == set(rules.HEALTHS)


@given(st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.sampled_from(SWEEPS)), max_size=60))
def test_health_follows_from_what_happened_since_the_last_turning_point(story: list[tuple[str, Any]]) -> None:
    """A pause lasts until the resume; a success or a resume resets all earlier failures. Sweeps are over in turn."""
    story = sorted(story, key=lambda step: step[1])
    health = rules.HEALTHY_AGAIN
    for happening, sweep in story:
        health = happens(happening, health, sweep)
    paused = False
    since: list[str] = []
    counted: set[Any] = set()
    delivering: Any = None
    for happening, sweep in story:
        if happening in ("pause", "resume"):
            paused, since, counted, delivering = happening == "pause", [], set(), None
        elif not paused and happening == "success":
            delivering = sweep if since else delivering
            since, counted = [], set()
        elif not paused:
            since.append(happening)
            counted |= {sweep} - {delivering}
    dead = "parks" in since or len(counted) >= 5
    expected = PAUSED if paused else HEALTHY if not since else DEAD_LETTERED if dead else RETRYING
    assert (health.health, health.failures_in_a_row) == (expected, 0 if paused else len(since))


@given(healths, st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.sampled_from(SWEEPS))))
def test_health_and_failures_always_agree(health: SubscriptionHealth, story: list[tuple[str, Any]]) -> None:
    for happening, sweep in story:
        health = happens(happening, health, sweep)
        assert (health.failures_in_a_row == 0) == (health.health in (HEALTHY, PAUSED))
        assert len(health.failed_sweeps) <= min(5, health.failures_in_a_row)
        assert health.health != RETRYING or len(health.failed_sweeps) < 5


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
