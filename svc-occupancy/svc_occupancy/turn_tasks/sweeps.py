"""The scheduled sweep of tasks: turn.task.stale fires for those that are overdue."""

from __future__ import annotations

import datetime

from asyncpg import Record

from chassis.db.database import Database
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import Renderer, encode
from chassis.schedule import instants
from chassis.schedule.announcing import Announcement, Announcer
from chassis.schedule.overdue import FallsDue, Overdue
from svc_occupancy import schema
from svc_occupancy.turn_tasks import queries, tables
from svc_occupancy.turn_tasks.records import StaleTurnTask


def stale_tasks(database: Database, outbox: Outbox, renderer: Renderer[StaleTurnTask]) -> Announcer:
    """Fires `turn.task.stale` once for each task that is still open the morning after its scheduled date, whatever the
    state of its turn."""

    def announce(task: Record, _now: datetime.datetime, clock: datetime.datetime) -> Announcement:
        at = instants.after(clock, task["updated_at"])
        mark = {"company_id": task["company_id"], "id": task["id"], "stale_at": at}
        return Announcement(task["company_id"], task["id"], at, encode(renderer.record_of_wider_row(task)), mark)

    task = tables.turn_task.c
    overdue = Overdue(
        database,
        schema.company,
        tables.turn_task,
        queries.overdue_tasks,
        queries.OVERDUE,
        FallsDue(task.scheduled_date, order=(task.scheduled_date, task.id)),
    )
    return Announcer("turn.task.stale", overdue, outbox, queries.MARK_STALE, announce)
