"""The rules of administrators' requests. Pure."""

from collections.abc import Mapping

from chassis.refusals import Refusal, invalid_request
from svc_webhooks.rules.deliveries import FAILED, PARKED, SUCCEEDED, WAITING
from svc_webhooks.rules.events import TEST_EVENT
from svc_webhooks.rules.subscriptions import PAUSED

REASON_CHARACTERS_MAX = 500

NO_DELIVERIES, _, _, UNDELIVERED = EVENT_OUTCOMES = ("no_deliveries", WAITING, SUCCEEDED, "undelivered")


def held_by(state: str, health: str, company_active: bool | None) -> str:
    """Why a waiting delivery is not sent even when it is due; empty if nothing holds it back.

    company_active: None if the replica lacks the company, which then counts as active.
    """
    if state != WAITING:
        return ""
    if health == PAUSED:
        return "paused"
    return "company_inactive" if company_active is False else ""


def check_retry(state: str, health: str, company_active: bool | None) -> None:
    """Raises Refusal 422 if the delivery may not be retried."""
    if state != PARKED:
        raise _not_retried("Only a parked delivery is retried; this one is waiting or has succeeded.")
    check_retries(health, company_active)


def check_retries(health: str, company_active: bool | None) -> None:
    """Raises Refusal 422 if no delivery of the subscription would be attempted."""
    if health == PAUSED:
        raise _not_retried("The subscription is paused; resume it before a retry.")
    if company_active is False:
        raise _not_retried("The company is inactive; activate it before a retry.")


def check_attempt_now(state: str, health: str, company_active: bool | None) -> None:
    """Raises Refusal 422 if the delivery may not be attempted before its date."""
    if state == PARKED:
        raise _not_retried("The delivery is parked; retry it instead.")
    if state != WAITING:
        raise _not_retried("Only a waiting delivery is attempted now; this one is over.")
    check_retries(health, company_active)


def check_resend(event: str, state: str, health: str, company_active: bool | None) -> None:
    """Raises Refusal 422 if the delivery may not be sent again."""
    if event == TEST_EVENT:
        raise _not_retried("A test is sent once; send another test.")
    if state == PARKED:
        raise _not_retried("The delivery is parked; retry it instead.")
    if state != SUCCEEDED:
        raise _not_retried("The delivery waits for its next attempt; attempt it now instead.")
    check_retries(health, company_active)


def check_test(company_active: bool | None) -> None:
    """Raises Refusal 422 if no test may be sent. A paused subscription gets it: a test shows whether to resume."""
    if company_active is False:
        raise _not_retried("The company is inactive; activate it before a test.")


def check_reason(reason: str) -> str:
    """Raises Refusal 422 for one that is too long or can't be stored."""
    if len(reason) > REASON_CHARACTERS_MAX or "\0" in reason:
        message = f"reason must be at most {REASON_CHARACTERS_MAX} characters, without NUL."
        raise invalid_request(message, "reason", status=422)
    return reason.strip()


def _not_retried(message: str) -> Refusal:
    return invalid_request(message, status=422)


def no_such_delivery() -> Refusal:
    return Refusal(404, "not_found", "No delivery of that event to that subscription is kept; check both ids.")


def no_such_event() -> Refusal:
    return Refusal(
        404, "not_found", "No event with that id is kept; check the id, and that the event is not older than 30 days."
    )


def secret_just_rotated() -> Refusal:
    """For the slower of two concurrent rotations: the faster one returned the secret that signs from now on."""
    return invalid_request(
        "Another administrator rotated the secret at this moment; rotate again if need be.", status=422
    )


def receiver_busy() -> Refusal:
    """For an attempt that was requested and not made: its receiver has no room, or another process has a claim."""
    return Refusal(
        503,
        "receiver_busy",
        "The receiver is at its limit of attempts; nothing was sent, try again in a minute.",
    )


def outcome_of(states: Mapping[str, int]) -> str:
    """The outcome of an event. states: the number of its deliveries by state."""
    if states.get(PARKED) or states.get(FAILED):
        return UNDELIVERED
    if states.get(WAITING):
        return WAITING
    return SUCCEEDED if states.get(SUCCEEDED) else NO_DELIVERIES
