"""The refusals of tests and replays. Pure."""

import datetime
from collections.abc import Sequence

from chassis.refusals import Refusal, invalid_request
from svc_webhooks.rules.subscriptions import EVENTS, PAUSED

REPLAYED_EVENTS_MAX = 100_000
TESTS_A_MINUTE = 10


def check_sending(health: str, company_active: bool | None) -> None:
    """Raises Refusal 422 if no delivery of the subscription would be attempted."""
    if health == PAUSED:
        message = "The subscription is paused; have it resumed in the administrator interface before a replay."
        raise invalid_request(message, status=422)
    check_company(company_active)


def check_company(company_active: bool | None) -> None:
    if company_active is False:
        raise invalid_request("The company is inactive; have it activated before you try again.", status=422)


def check_range(since: datetime.datetime, until: datetime.datetime) -> None:
    """Raises Refusal 422."""
    if since >= until:
        raise invalid_request("since must be before until, and before now.", "since", status=422)


def replayed_keys(requested: Sequence[str] | None, subscribed: Sequence[str]) -> list[str]:
    """The keys of a replay, sorted: all that the subscription names, or those of them that the request names. Raises
    Refusal 422."""
    if requested is None:
        return sorted(subscribed)
    if not requested:
        raise Refusal(422, "events_empty", "events must name an event of the subscription, or be left out.", "events")
    if not set(requested) <= set(EVENTS):
        raise Refusal(422, "events_unknown_key", f"events may name only: {', '.join(EVENTS)}.", "events")
    if not set(requested) <= set(subscribed):
        message = f"events may name only events of the subscription: {', '.join(sorted(subscribed))}."
        raise invalid_request(message, "events", status=422)
    return sorted(set(requested))


def check_size(events: int) -> None:
    """Raises Refusal 422 for more events than a replay may be about."""
    if events > REPLAYED_EVENTS_MAX:
        message = f"A replay is about {REPLAYED_EVENTS_MAX:,} events at most; name a shorter period or fewer events."
        raise invalid_request(message, status=422)


def replay_under_way() -> Refusal:
    return invalid_request(
        "A replay to this subscription is under way; wait until it has finished before you start another.", status=422
    )


def too_many_tests() -> Refusal:
    return Refusal(
        429,
        "rate_limited",
        f"A subscription gets {TESTS_A_MINUTE} tests a minute; wait for Retry-After seconds.",
    )
