"""The scheduled sweep of inspections: inspection.stale fires for those that are overdue."""

from __future__ import annotations

import datetime

from asyncpg import Record

from chassis.db.database import Database
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import Renderer, encode
from chassis.schedule.announcing import Announcement, Announcer
from chassis.schedule.overdue import FallsDue, Overdue
from svc_catalog.inspections import queries as q
from svc_catalog.inspections.records import Inspection
from svc_catalog.inspections.tables import inspection
from svc_catalog.schema import company

INSPECTION_STALE = "inspection.stale"


def overdue_inspections(database: Database, outbox: Outbox, renderer: Renderer[Inspection]) -> Announcer:
    """Fires `inspection.stale` once for each inspection, on the morning after its scheduled date."""

    def announce(row: Record, _now: datetime.datetime, at: datetime.datetime) -> Announcement:
        record = renderer.record_of_wider_row(row)
        mark = {"company_id": row["company_id"], "id": record.entity_id, "stale_announced_at": at}
        return Announcement(row["company_id"], record.entity_id, at, encode(record), mark)

    overdue = Overdue(
        database, company, inspection, q.overdue, q.OVERDUE_INSPECTIONS, FallsDue(inspection.c.scheduled_date)
    )
    return Announcer(INSPECTION_STALE, overdue, outbox, q.MARK_ANNOUNCED, announce)
