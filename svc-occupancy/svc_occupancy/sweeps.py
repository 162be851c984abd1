"""What the clock does: residents' mornings after, and tasks that are overdue."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asyncpg import Record

from chassis.auth.identity import SERVICE, Call, Identity
from chassis.db.database import Connection, Database
from chassis.messaging.outbox import Outbox
from chassis.runtime.failpoints import failpoint
from chassis.schedule import instants
from chassis.schedule.overdue import Overdue
from chassis.writes.audit import Audit
from makeready.events.v1.events_pb2 import References
from svc_occupancy import queries, records, rules_board
from svc_occupancy import queries_import as imports
from svc_occupancy import queries_sweeps as q
from svc_occupancy import tables as t
from svc_occupancy.units import tell

_TICK = datetime.timedelta(microseconds=1)
Clock = Callable[[], datetime.datetime]


class Vacating:
    """Units become vacant the morning after the move_out_date of an active turn, where nobody has moved in."""

    def __init__(
        self, database: Database, audit: Audit, outbox: Outbox, links: records.Links, clock: Clock = instants.now
    ) -> None:
        self._database, self._audit, self._outbox, self._links = database, audit, outbox, links
        self._clock = clock
        self._call = Call(Identity(SERVICE, outbox.producer), "")

    async def sweep(self, now: datetime.datetime) -> Mapping[str, int]:
        """How many units became vacant, each of which fired turn.status_changed."""
        timezones = await q.timezones(self._database)
        days = {"timezones": timezones, "days": [instants.overdue_before(now, zone) for zone in timezones]}
        first_company_id = vacated = 0
        while True:
            found = await q.to_leave(self._database, first_company_id, days)
            for (company_id, day), rows in itertools.groupby(found, key=lambda row: (row["company_id"], row["day"])):
                vacated += await self._vacate(company_id, day, list(rows))
                first_company_id = company_id
            if len(found) < q.ROWS_AT_ONCE:
                return {"unit.vacated": vacated, "turn.status_changed": vacated}

    async def _vacate(self, company_id: int, day: datetime.date, rows: Sequence[Record]) -> int:
        turn_ids, unit_ids = ([row[name] for row in rows] for name in ("id", "unit_id"))
        async with self._database.transaction() as connection:
            left = await q.left(connection, company_id, day, turn_ids, unit_ids)
            moved = [row for row in left if rules_board.vacated(row["unit_status"]) != row["unit_status"]]
            at = self._clock()
            # A unit of which somebody has said more is passed over, and its turn stays as it is.
            saved = [dict(row) | {"vacated_on": row["move_out_date"]} for row in left]
            for turn in saved:
                if rules_board.vacated(turn["unit_status"]) != turn["unit_status"]:
                    turn["version"] += 1
                    turn["updated_at"] = max(at, turn["updated_at"] + _TICK)
            await q.SAVE_LEFT.run(connection, saved)
            if moved:
                await self._tell(connection, company_id, at, moved, {turn["id"]: turn["updated_at"] for turn in saved})
            failpoint("write-before-commit")
        if moved:
            self._outbox.wake()
        return len(moved)

    async def _tell(
        self,
        connection: Connection,
        company_id: int,
        at: datetime.datetime,
        moved: Sequence[Record],
        occurred_at: Mapping[int, datetime.datetime],
    ) -> None:
        """Keeps what the units are now, and tells everybody."""
        states: list[dict[str, Any]] = [
            {
                "company_id": company_id,
                "unit_id": row["unit_id"],
                "version": (row["state_version"] or 0) + 1,
                "unit_status": rules_board.VACATED,
                "projected_ready_on": row["projected_ready_on"],
            }
            for row in moved
        ]
        await imports.save_states(connection, states)
        told = References()
        for state in states:
            tell(told, state)
        events = [self._outbox.references(told, company_id=company_id, occurred_at=at)]
        shown = {row[0]: row for row in await queries.turns(connection, company_id, [row["id"] for row in moved])}
        for row in moved:
            before, after = {"unit_status": row["unit_status"]}, {"unit_status": rules_board.VACATED}
            await self._audit.add(
                connection, self._call, company_id, "unit.vacated", "unit", row["unit_id"], before, after
            )
            events.append(
                self._outbox.public(
                    "turn.status_changed",
                    company_id=company_id,
                    entity_id=row["id"],
                    occurred_at=occurred_at[row["id"]],
                    data=records.encode(self._links.turn(shown[row["id"]])),
                    change=records.change("unit_status", row["unit_status"], rules_board.VACATED),
                )
            )
        await imports.INSERT_EVENTS.run(connection, events)


class StaleTasks:
    """Tasks that are still open the morning after their scheduled date, whatever became of their turn: each is told of
    once."""

    def __init__(self, database: Database, outbox: Outbox, links: records.Links, clock: Clock = instants.now) -> None:
        self._overdue = Overdue(database, t.company, t.turn_task, q.overdue_tasks, q.TASKS_TOLD_OF)
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
        await q.SAVE_STALE.run(connection, marked)
        events = [
            self._outbox.public(
                "turn.task.stale",
                company_id=row["company_id"],
                entity_id=row["id"],
                occurred_at=occurred_at[row["id"]],
                data=records.encode(self._links.stale_task(row)),
            )
            for row in rows
        ]
        await imports.INSERT_EVENTS.run(connection, events)
        failpoint("write-before-commit")
