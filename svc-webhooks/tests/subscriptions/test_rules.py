"""What may be subscribed to, and how a subscription fares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_webhooks.subscriptions import rules
from svc_webhooks.subscriptions.rules import DEAD_LETTERED, HEALTHY, PAUSED, RETRYING, Standing

standings = st.one_of(
    st.just(Standing(HEALTHY, 0)),
    st.just(Standing(PAUSED, 0)),
    st.integers(1, 19).map(lambda n: Standing(RETRYING, n)),
    st.integers(1, 500).map(lambda n: Standing(DEAD_LETTERED, n)),
)


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
