"""Announces overdue maintenance (spec 6.1): tasks still open on the morning after their due date.

The sweep's instant decides which tasks are due. occurred_at of the event comes from the clock, and always lies after
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
from svc_tickets.maintenance import queries
from svc_tickets.maintenance import tables as t
from svc_tickets.maintenance.records import StalePmTaskRenderer


class OverdueMaintenance(Announcer):
    """Publishes `pm.stale` the morning after a task's due date, once for each task."""

    def __init__(self, database: Database, outbox: Outbox, renderer: StalePmTaskRenderer) -> None:
        overdue = Overdue(
            database, schema.company, t.pm_task, queries.due, queries.OVERDUE, FallsDue(t.pm_task.c.due_date)
        )
        super().__init__("pm.stale", overdue, outbox, queries.MARK, self._announcement)
        self._renderer = renderer

    def _announcement(self, row: Record, _now: datetime.datetime, clock: datetime.datetime) -> Announcement:
        at = after(clock, row["last_updated_at"])
        return Announcement(
            company_id=row["company_id"],
            entity_id=row["pm_task_id"],
            occurred_at=at,
            data=encode(self._renderer.record_of_wider_row(row)),
            mark={"company_id": row["company_id"], "id": row["pm_task_id"], "stale_at": at},
        )
