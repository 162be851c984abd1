"""What the clock does about inspections: it tells of those that are overdue."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asyncpg import Record

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany
from chassis.messaging.outbox import Outbox
from chassis.schedule.overdue import Overdue
from svc_catalog import schema
from svc_catalog.documents import encode
from svc_catalog.inspections import queries as q
from svc_catalog.inspections.records import InspectionLinks
from svc_catalog.inspections.tables import inspection

INSPECTION_STALE = "inspection.stale"
_INSERT_EVENTS = InsertMany(schema.outbox, ("event_id", "subject", "message"))
_SERVED = len(q.INSPECTION_COLUMNS)


class OverdueInspections:
    """Fires `inspection.stale` on the morning after an inspection's scheduled date, once for ever."""

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        links: InspectionLinks,
        clock: Callable[[], datetime.datetime],
    ) -> None:
        self._overdue = Overdue(database, schema.company, inspection, q.stale, q.OVERDUE_INSPECTIONS)
        self._outbox, self._links, self._clock = outbox, links, clock

    async def sweep(self, now: datetime.datetime) -> Mapping[str, int]:
        """`now` decides what is due; it happened when the clock says."""

        async def fire(connection: Connection, rows: Sequence[Record]) -> None:
            at = self._clock()
            await _INSERT_EVENTS.run(connection, [self._event(row, at) for row in rows])
            told = [{"company_id": row["company_id"], "id": row[0], "stale_announced_at": at} for row in rows]
            await q.announce(connection, told)

        fired = await self._overdue.each(now, fire)
        if fired:
            self._outbox.wake()
        return {INSPECTION_STALE: fired}

    def _event(self, row: Record, at: datetime.datetime) -> dict[str, Any]:
        found = self._links.inspection(tuple(row)[:_SERVED])
        return self._outbox.public(
            INSPECTION_STALE,
            company_id=row["company_id"],
            entity_id=found.entity_id,
            occurred_at=at,
            data=encode(found),
        )
