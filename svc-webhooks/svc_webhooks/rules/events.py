"""The refusals of events. Pure."""

import re

from chassis.refusals import Refusal
from svc_webhooks.rules.subscriptions import EVENTS

# The event of an administrator's test. It is on no list of keys, so no subscription can name it (spec 6.5).
TEST_EVENT = "webhook.test"
# The kind of the record that an event is about, as the record's `entity_type` spells it.
ENTITY_TYPES = {
    "inspection.stale": "inspection",
    "pm.stale": "pm_task",
    "property.notice.published": "notice",
    "ticket.created": "ticket",
    "ticket.stale": "ticket",
    "ticket.status_changed": "ticket",
    "turn.schedule_changed": "turn",
    "turn.status_changed": "turn",
    "turn.task.stale": "turn",
    "vendor.hold": "vendor",
    TEST_EVENT: "webhook_subscription",
}
KINDS = sorted(set(ENTITY_TYPES.values()))
STORED_EVENTS = (*EVENTS, TEST_EVENT)

# The request id becomes a header of every attempt.
_REQUEST_ID = re.compile(r"[!-~]{1,128}")


def request_id_of(text: str) -> str:
    """The id as it is stored: empty if it can't be a header."""
    return text if _REQUEST_ID.fullmatch(text) else ""


def drop_held_up() -> Refusal:
    return Refusal(
        503,
        "days_held_up",
        "A statement that takes long holds up the drop of a day of events; try again, or leave it to the next hour.",
    )
