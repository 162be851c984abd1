"""The reasons that hold a delivery back, and the deliveries that may be retried."""

from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_webhooks.administration import rules
from svc_webhooks.rules.deliveries import DELIVERY_STATES, PARKED, WAITING
from svc_webhooks.rules.subscriptions import HEALTHS, PAUSED

states = st.sampled_from(DELIVERY_STATES)
healths = st.sampled_from(HEALTHS)
activities = st.sampled_from([True, False, None])


@given(states, healths, activities)
def test_a_delivery_is_held_while_it_waits_and_only_then(state: str, health: str, active: bool | None) -> None:
    held = rules.held_by(state, health, active)
    assert (held == "") == (state != WAITING or (health != PAUSED and active is not False))
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
    assert taken == (state == PARKED and not rules.held_by(WAITING, health, active))
