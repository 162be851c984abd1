"""What the clock tells of (spec 6.1): residents' tickets that have been quiet for too long, overdue maintenance.

The instant of a sweep decides what is due; that it was told happened when the clock says, after the record's last
change.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence

from asyncpg import Record

from chassis.db.database import Connection, Database
from chassis.messaging.outbox import Outbox
from chassis.schedule.overdue import Overdue
from svc_tickets import queries_pm, queries_quiet, records, records_pm, rules_quiet
from svc_tickets import tables as t
from svc_tickets.queries import TICKET_COLUMNS
from svc_tickets.queries_import import INSERT_EVENTS

TICKET_STALE, PM_STALE = "ticket.stale", "pm.stale"
_SHOWN = len(TICKET_COLUMNS)
_TICK = datetime.timedelta(microseconds=1)


Clock = Callable[[], datetime.datetime]


class QuietTickets:
    """Fires `ticket.stale`, and again each time that a further threshold has passed in silence."""

    def __init__(self, database: Database, outbox: Outbox, links: records.TicketLinks, clock: Clock) -> None:
        self._overdue = Overdue(database, t.company, t.ticket, queries_quiet.due, queries_quiet.SHOWN)
        self._outbox, self._links, self._clock = outbox, links, clock

    async def sweep(self, now: datetime.datetime) -> Mapping[str, int]:
        """As of `now`: which are due, and when they will be due again."""
        fired = 0

        async def fire(connection: Connection, rows: Sequence[Record]) -> None:
            nonlocal fired
            events = [self._event(row) for row in rows if _is_stale(row, now)]
            await INSERT_EVENTS.run(connection, events)
            await queries_quiet.save_stale_due_at(connection, [_next(row, now) for row in rows])
            fired += len(events)

        await self._overdue.each(now, fire)
        if fired:
            self._outbox.wake()
        return {TICKET_STALE: fired}

    def _event(self, row: Record) -> dict[str, object]:
        ticket = self._links.ticket(tuple(row)[:_SHOWN])
        return self._outbox.public(
            TICKET_STALE,
            company_id=row["company_id"],
            entity_id=ticket.entity_id,
            occurred_at=max(self._clock(), row["last_updated_at"] + _TICK),
            data=records.encode(ticket),
        )


def _is_stale(row: Record, now: datetime.datetime) -> bool:
    """By the policy of today."""
    due = _due_at(row)
    return due is not None and due <= now


def _due_at(row: Record) -> datetime.datetime | None:
    return rules_quiet.stale_due_at(row["source"], row["status"], row["quiet_since"], row["stale_after_hours"])


def _next(row: Record, now: datetime.datetime) -> dict[str, object]:
    due = _due_at(row)
    if due is not None and due <= now:
        due = rules_quiet.next_stale_due_at(row["quiet_since"], row["stale_after_hours"], now)
    return {"company_id": row["company_id"], "id": row["ticket_id"], "stale_due_at": due}


class OverdueMaintenance:
    """Fires `pm.stale` the morning after a task's due date, once for each task."""

    def __init__(self, database: Database, outbox: Outbox, links: records_pm.PmTaskLinks, clock: Clock) -> None:
        self._overdue = Overdue(database, t.company, t.pm_task, queries_pm.due, queries_pm.TASKS)
        self._outbox, self._links, self._clock = outbox, links, clock

    async def sweep(self, now: datetime.datetime) -> Mapping[str, int]:
        """As of `now`: the mornings that have come by then."""
        fired = await self._overdue.each(now, self._fire)
        if fired:
            self._outbox.wake()
        return {PM_STALE: fired}

    async def _fire(self, connection: Connection, rows: Sequence[Record]) -> None:
        clock = self._clock()
        told = [
            {"company_id": row["company_id"], "id": row["id"], "stale_at": max(clock, row["updated_at"] + _TICK)}
            for row in rows
        ]
        events = [
            self._outbox.public(
                PM_STALE,
                company_id=row["company_id"],
                entity_id=row["id"],
                occurred_at=one["stale_at"],
                data=self._links.stale(row),
            )
            for row, one in zip(rows, told, strict=True)
        ]
        await INSERT_EVENTS.run(connection, events)
        await queries_pm.save_stale_at(connection, told)
