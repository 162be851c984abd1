"""The events of triggers, and the record that each may name. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from chassis.refusals import Refusal, invalid_request

EventKey = Literal[
    "inspection.stale",
    "pm.stale",
    "property.notice.published",
    "ticket.created",
    "ticket.stale",
    "ticket.status_changed",
    "turn.schedule_changed",
    "turn.status_changed",
    "turn.task.stale",
    "vendor.hold",
]
RecordField = Literal["ticket_id", "turn_id", "vendor_id", "inspection_id", "property_id"]
# The record that the event is to happen to; for a new ticket, notice or task, the one that it is to belong to.
RECORD_FIELDS: Mapping[EventKey, RecordField] = {
    "inspection.stale": "inspection_id",
    "pm.stale": "property_id",
    "property.notice.published": "property_id",
    "ticket.created": "property_id",
    "ticket.stale": "ticket_id",
    "ticket.status_changed": "ticket_id",
    "turn.schedule_changed": "turn_id",
    "turn.status_changed": "turn_id",
    "turn.task.stale": "turn_id",
    "vendor.hold": "vendor_id",
}


def check_record(event: EventKey, named: Collection[str]) -> None:
    """Raises Refusal 400 if a trigger names another record than its event takes. named: the fields that it has."""
    takes = RECORD_FIELDS[event]
    for name in named:
        if name != takes:
            raise invalid_request(f"{name} does not go with this event; it takes {takes}, or no record.", name)


def already_on_hold() -> Refusal:
    message = "The vendor is on hold already; name one that is not, or release it first."
    return invalid_request(message, "vendor_id", 422)


def already_stale() -> Refusal:
    message = "inspection.stale has fired for the inspection, once for good; name another one."
    return invalid_request(message, "inspection_id", 422)


def inspection_completed() -> Refusal:
    return invalid_request("The inspection is completed; name an open one.", "inspection_id", 422)


def not_current() -> Refusal:
    message = "The turn is not its unit's current one, which alone the unit's status belongs to; name that one."
    return invalid_request(message, "turn_id", 422)


def no_departure() -> Refusal:
    message = "The turn has no move_out_date, and so no ready date; record a notice on its unit first."
    return invalid_request(message, "turn_id", 422)
