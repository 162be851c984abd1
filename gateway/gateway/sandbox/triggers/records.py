"""The body of POST /sandbox/triggers, and what the gateway reads in records of other contexts."""

from __future__ import annotations

import msgspec

from chassis.records.bodies import RecordId
from gateway.sandbox.triggers import rules


class TriggerCreate(msgspec.Struct, kw_only=True):
    """An event that is to happen in a sandbox, and at most one record."""

    event: rules.EventKey
    """The event's key."""
    ticket_id: RecordId | None = None
    """The ticket of `ticket.status_changed` or `ticket.stale`."""
    turn_id: RecordId | None = None
    """The turn of `turn.status_changed` or `turn.schedule_changed`; that of the new task of `turn.task.stale`."""
    vendor_id: RecordId | None = None
    """The vendor of `vendor.hold`."""
    inspection_id: RecordId | None = None
    """The inspection of `inspection.stale`."""
    property_id: RecordId | None = None
    """The property of the new ticket of `ticket.created`, of the notice of `property.notice.published`, or of the new
    task of `pm.stale`."""

    def named(self) -> dict[str, int]:
        """The record that is named, by its field; 0 for an id that no record can have."""
        fields = msgspec.structs.asdict(self)
        return {name: value for name, value in fields.items() if name != "event" and value is not None}
