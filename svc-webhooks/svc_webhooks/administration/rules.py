"""The rules of administrators' requests. Pure."""

from chassis.refusals import Refusal, invalid_request
from svc_webhooks.dispatch.rules import PARKED, WAITING
from svc_webhooks.subscriptions.rules import PAUSED


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
