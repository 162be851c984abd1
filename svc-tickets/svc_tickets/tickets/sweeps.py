"""Announces stale tickets (spec 6.1): residents' tickets that staff and vendors have not worked on for too long.

The sweep's instant decides which tickets are due. occurred_at of the event comes from the clock, and always lies after
the record's last change.
"""

from __future__ import annotations

import datetime

from asyncpg import Record

from chassis.db.database import Database
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import encode
from chassis.schedule.announcing import Announcement, Announcer
from chassis.schedule.instants import after
from chassis.schedule.overdue import FallsDue, Overdue
from svc_tickets import schema
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.queries import stale
from svc_tickets.tickets.records import TicketRenderer
from svc_tickets.tickets.rules import staleness


class StaleTickets(Announcer):
    """Publishes `ticket.stale`, and again each time another threshold has passed."""

    def __init__(self, database: Database, outbox: Outbox, renderer: TicketRenderer) -> None:
        overdue = Overdue(database, schema.company, t.ticket, stale.due, stale.SHOWN, FallsDue(t.ticket.c.stale_due_at))
        super().__init__("ticket.stale", overdue, outbox, stale.MARK, self._announcement)
        self._renderer = renderer

    def _announcement(self, row: Record, now: datetime.datetime, clock: datetime.datetime) -> Announcement:
        """Uses the current policy: if it now allows more hours, the ticket becomes due later instead."""
        quiet_since, hours = row["quiet_since"], row["stale_after_hours"]
        due = staleness.stale_due_at(row["of_resident"], row["status"], quiet_since, hours)
        is_stale = due is not None and due <= now
        if is_stale:
            due = staleness.next_stale_due_at(quiet_since, hours, now)
        return Announcement(
            company_id=row["company_id"],
            entity_id=row["ticket_id"],
            occurred_at=after(clock, row["last_updated_at"]),
            data=encode(self._renderer.record_of_wider_row(row)) if is_stale else None,
            mark={"company_id": row["company_id"], "id": row["ticket_id"], "stale_due_at": due},
        )
