"""What the clock does to tasks: those that are overdue are told of."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from asyncpg import Record

from chassis.db.database import Connection, Database
from chassis.messaging.outbox import Outbox
from chassis.runtime.failpoints import failpoint
from chassis.schedule import instants
from chassis.schedule.overdue import Overdue
from svc_occupancy import schema
from svc_occupancy.turn_tasks import queries, records, tables
from svc_occupancy.turns import events as turn_events
from svc_occupancy.turns import import_queries as turn_import_queries
from svc_occupancy.turns.sweeps import Clock

_TICK = datetime.timedelta(microseconds=1)


class StaleTasks:
    """Tasks that are still open the morning after their scheduled date, whatever became of their turn: each is told of
    once."""

    def __init__(
        self, database: Database, outbox: Outbox, links: records.TaskLinks, clock: Clock = instants.now
    ) -> None:
        self._overdue = Overdue(
            database, schema.company, tables.turn_task, queries.overdue_tasks, queries.TASKS_TOLD_OF
        )
        self._outbox, self._links = outbox, links
        self._clock = clock

    async def sweep(self, now: datetime.datetime) -> Mapping[str, int]:
        """How many tasks were told of."""
        told = await self._overdue.each(now, self._tell)
        if told:
            self._outbox.wake()
        return {"turn.task.stale": told}

    async def _tell(self, connection: Connection, rows: Sequence[Record]) -> None:
        at = self._clock()
        occurred_at = {row["id"]: max(at, row["updated_at"] + _TICK) for row in rows}
        marked = [dict(row) | {"stale_at": occurred_at[row["id"]]} for row in rows]
        await queries.SAVE_STALE.run(connection, marked)
        events = [
            self._outbox.public(
                "turn.task.stale",
                company_id=row["company_id"],
                entity_id=row["id"],
                occurred_at=occurred_at[row["id"]],
                data=turn_events.encode(self._links.stale_task(row)),
            )
            for row in rows
        ]
        await turn_import_queries.INSERT_EVENTS.run(connection, events)
        failpoint("write-before-commit")
