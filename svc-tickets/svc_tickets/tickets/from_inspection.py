"""Opens one ticket for each failed inspection row, however often its event arrives."""

from __future__ import annotations

from chassis.auth.identity import SERVICE, Call, Identity
from chassis.db.database import Connection
from chassis.schedule.clocks import CompanyClocks
from makeready.events.v1 import events_pb2 as pb
from svc_tickets.replicas import places
from svc_tickets.tickets.opening import NewTicket, TicketOpener
from svc_tickets.tickets.queries import numbering, opening
from svc_tickets.tickets.rules import fields

PRODUCER = "svc-catalog"


class FailedInspectionRows:
    """Opens tickets in the consumer's transaction."""

    def __init__(self, opener: TicketOpener, clocks: CompanyClocks) -> None:
        self._opener, self._clocks = opener, clocks

    async def open(self, connection: Connection, event: pb.Event) -> None:
        """Does nothing if the row already has a ticket. The replicas must have the places that the event names; a unit
        or an asset of another property is left out."""
        row = event.inspection_row_failed
        mark = {"inspection_id": row.inspection_id, "row_id": row.row_id}
        opened = await opening.opened_by_row(connection, event.company_id, **mark)
        if opened.ticket_id is not None:
            return
        place = await places.on_property(connection, event.company_id, row.property_id, row.unit_id, row.asset_id)
        assert place is not None  # the event brings the property
        title, category, priority = fields.of_failed_row(row.title, row.category, row.priority)
        values = {
            "title": title,
            "description": row.description,
            "category": category,
            "priority": priority,
            "photo_url": row.photo_url or None,
            **place._asdict(),
            "ticket_number": await numbering.take_number(connection, row.property_id),
        }
        opened_at = self._clocks.ahead_by(opened.clock_offset)()
        ticket = NewTicket.of(
            event.company_id, "inspection", opened_at, values, author=fields.STAFF, inspection_row=mark
        )
        # The actor who failed the row opened the ticket. The audit log takes the actor of a call from its issuer.
        call = Call(Identity(SERVICE, row.actor or PRODUCER), event.request_id)
        await self._opener.open_in(connection, call, [ticket], opened_at)
