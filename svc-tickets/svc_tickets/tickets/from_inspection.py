"""Opens one ticket for each failed inspection row, however often its event arrives."""

from __future__ import annotations

from chassis.auth.identity import SERVICE, Call, Identity
from chassis.db.database import Connection
from chassis.schedule.instants import Clock
from makeready.events.v1 import events_pb2 as pb
from svc_tickets.tickets.opening import NewTicket, TicketOpener
from svc_tickets.tickets.rules import fields

PRODUCER = "svc-catalog"


class FailedInspectionRows:
    """Opens tickets in the consumer's transaction."""

    def __init__(self, opener: TicketOpener, clock: Clock) -> None:
        self._opener, self._clock = opener, clock

    async def open(self, connection: Connection, event: pb.Event) -> None:
        """The replicas must have the places that the event names."""
        row = event.inspection_row_failed
        title, category, priority = fields.of_failed_row(row.title, row.category, row.priority)
        given = {
            "title": title,
            "description": row.description,
            "category": category,
            "priority": priority,
            "photo_url": row.photo_url or None,
            "property_id": row.property_id,
            "unit_id": row.unit_id,
            "asset_id": row.asset_id,
        }
        new = NewTicket.of(event.company_id, "inspection", self._clock(), given)
        # The actor who failed the row opened the ticket. The audit log takes the actor of a call from its issuer.
        call = Call(Identity(SERVICE, row.actor or PRODUCER), event.request_id)
        key = {"inspection_id": row.inspection_id, "row_id": row.row_id}
        await self._opener.open_of_row(connection, call, new, key)
