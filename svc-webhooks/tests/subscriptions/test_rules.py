"""The events of a subscription, and its health."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_webhooks.subscriptions import rules
from svc_webhooks.subscriptions.rules import DEAD_LETTERED, HEALTHY, PAUSED, RETRYING, SubscriptionHealth

healths = st.one_of(
    st.just(SubscriptionHealth(HEALTHY, 0)),
    st.just(SubscriptionHealth(PAUSED, 0)),
    st.integers(1, 19).map(lambda n: SubscriptionHealth(RETRYING, n)),
    st.integers(1, 500).map(lambda n: SubscriptionHealth(DEAD_LETTERED, n)),
)


def test_the_first_failure_makes_retrying() -> None:
    assert rules.after_failure(SubscriptionHealth(HEALTHY, 0), parked=False) == SubscriptionHealth(RETRYING, 1)


def test_twenty_failures_in_a_row_make_dead_lettered() -> None:
    health = SubscriptionHealth(HEALTHY, 0)
    for _ in range(19):
        health = rules.after_failure(health, parked=False)
    assert health == SubscriptionHealth(RETRYING, 19)
    assert rules.after_failure(health, parked=False) == SubscriptionHealth(DEAD_LETTERED, 20)


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


def happens(what: str, health: SubscriptionHealth) -> SubscriptionHealth:
    match what:
        case "success":
            return rules.after_success(health)
        case "pause":
            return rules.paused()
        case "resume":
            return rules.resumed()
        case _:
            return rules.after_failure(health, parked=what == "parks")


HAPPENINGS = ("success", "failure", "parks", "pause", "resume")
# Every health and every action. `retrying` has two rows, because the twentieth failure in a row makes a difference.
TRANSITIONS = {
    SubscriptionHealth(HEALTHY, 0): (HEALTHY, RETRYING, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(RETRYING, 1): (HEALTHY, RETRYING, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(RETRYING, 19): (HEALTHY, DEAD_LETTERED, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(DEAD_LETTERED, 20): (HEALTHY, DEAD_LETTERED, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(DEAD_LETTERED, 1): (HEALTHY, DEAD_LETTERED, DEAD_LETTERED, PAUSED, HEALTHY),
    SubscriptionHealth(PAUSED, 0): (PAUSED, PAUSED, PAUSED, PAUSED, HEALTHY),
}


@pytest.mark.parametrize("health", TRANSITIONS, ids=str)
def test_every_health_goes_where_the_table_says(health: SubscriptionHealth) -> None:
    after = tuple(happens(what, health).health for what in HAPPENINGS)
    assert after == TRANSITIONS[health]


def test_the_table_of_transitions_names_every_health() -> None:
    assert {health.health for health in TRANSITIONS} == set(rules.HEALTHS)


@given(st.lists(st.sampled_from(HAPPENINGS), max_size=60))
def test_health_follows_from_what_happened_since_the_last_turning_point(story: list[str]) -> None:
    """A pause lasts until the resume; a success or a resume resets all earlier failures."""
    health = rules.HEALTHY_AGAIN
    for what in story:
        health = happens(what, health)
    paused = False
    since: list[str] = []
    for what in story:
        if what in ("pause", "resume"):
            paused, since = what == "pause", []
        elif not paused:
            since = [] if what == "success" else [*since, what]
    dead = "parks" in since or len(since) >= 20
    expected = PAUSED if paused else HEALTHY if not since else DEAD_LETTERED if dead else RETRYING
    assert health == SubscriptionHealth(expected, 0 if paused else len(since))


@given(healths, st.lists(st.sampled_from(HAPPENINGS)))
def test_health_and_failures_always_agree(health: SubscriptionHealth, story: list[str]) -> None:
    for what in story:
        health = happens(what, health)
        assert (health.failures_in_a_row == 0) == (health.health in (HEALTHY, PAUSED))
        assert health.health != RETRYING or health.failures_in_a_row < 20


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
