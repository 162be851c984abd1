"""What an undo of an import does to the records of this context, besides their own rows."""

from __future__ import annotations

from chassis.db.database import Connection
from chassis.imports.undo import Copies, Part, Step, Undoable
from svc_tickets import schema
from svc_tickets.maintenance import queries as maintenance
from svc_tickets.search.fill import LOCKED
from svc_tickets.search.tables import ticket_search
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.queries import imports as tickets
from svc_tickets.tickets.status_change import StatusChange, state_of


class _Tickets(Undoable):
    async def apply(self, connection: Connection, step: Step) -> None:
        await connection.execute(LOCKED)  # a row that is being made of a ticket would stay behind
        await super().apply(connection, step)

    async def complete(self, connection: Connection, step: Step) -> None:
        """A status that goes back is an entry of the ticket's history."""
        changes = [
            StatusChange(
                step.company_id, row["id"], after["version"], after["updated_at"], state_of(row), state_of(after)
            )
            for row, after in step.restored
            if (row["status"], row["cancellation_reason_code"]) != (after["status"], after["cancellation_reason_code"])
        ]
        entries = [change.entry(None, step.call.request_id) for change in changes]
        await tickets.INSERT_CHANGES.run(connection, entries)


UNDOABLES = (
    _Tickets("tickets", "ticket", tickets.TICKETS, Part(ticket_search, "id")),
    Undoable("pm-tasks", "pm_task", maintenance.IMPORTED),
)
COPIES = (
    # A property that goes has no units and no assets any more, whatever has arrived here.
    Copies("properties", schema.property_, *map(Part, (t.ticket_number, schema.unit, schema.asset))),
    Copies("units", schema.unit),
    Copies("assets", schema.asset),
    Copies("vendors", schema.vendor),
    Copies("staff", schema.staff),
)
