"""What the clock does to turns: residents' mornings after."""

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
from chassis.writes.audit import Audit
from makeready.events.v1.events_pb2 import References
from svc_occupancy.turns import events, import_queries, queries, records, sweep_queries
from svc_occupancy.units import queries as unit_queries
from svc_occupancy.units import rules as unit_rules
from svc_occupancy.units.events import tell

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
        timezones = await sweep_queries.timezones(self._database)
        days = {"timezones": timezones, "days": [instants.overdue_before(now, zone) for zone in timezones]}
        first_company_id = vacated = 0
        while True:
            found = await sweep_queries.to_leave(self._database, first_company_id, days)
            for (company_id, day), rows in itertools.groupby(found, key=lambda row: (row["company_id"], row["day"])):
                vacated += await self._vacate(company_id, day, list(rows))
                first_company_id = company_id
            if len(found) < sweep_queries.ROWS_AT_ONCE:
                return {"unit.vacated": vacated, "turn.status_changed": vacated}

    async def _vacate(self, company_id: int, day: datetime.date, rows: Sequence[Record]) -> int:
        turn_ids, unit_ids = ([row[name] for row in rows] for name in ("id", "unit_id"))
        async with self._database.transaction() as connection:
            left = await sweep_queries.left(connection, company_id, day, turn_ids, unit_ids)
            moved = [row for row in left if unit_rules.vacated(row["unit_status"]) != row["unit_status"]]
            at = self._clock()
            # A unit of which somebody has said more is passed over, and its turn stays as it is.
            saved = [dict(row) | {"vacated_on": row["move_out_date"]} for row in left]
            for turn in saved:
                if unit_rules.vacated(turn["unit_status"]) != turn["unit_status"]:
                    turn["version"] += 1
                    turn["updated_at"] = max(at, turn["updated_at"] + _TICK)
            await sweep_queries.SAVE_LEFT.run(connection, saved)
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
                "unit_status": unit_rules.VACATED,
                "projected_ready_on": row["projected_ready_on"],
            }
            for row in moved
        ]
        await unit_queries.save_states(connection, states)
        told = References()
        for state in states:
            tell(told, state)
        fired = [self._outbox.references(told, company_id=company_id, occurred_at=at)]
        shown = {row[0]: row for row in await queries.turns(connection, company_id, [row["id"] for row in moved])}
        for row in moved:
            before, after = {"unit_status": row["unit_status"]}, {"unit_status": unit_rules.VACATED}
            await self._audit.add(
                connection, self._call, company_id, "unit.vacated", "unit", row["unit_id"], before, after
            )
            fired.append(
                self._outbox.public(
                    "turn.status_changed",
                    company_id=company_id,
                    entity_id=row["id"],
                    occurred_at=occurred_at[row["id"]],
                    data=events.encode(self._links.turn(shown[row["id"]])),
                    change=events.change("unit_status", row["unit_status"], unit_rules.VACATED),
                )
            )
        await import_queries.INSERT_EVENTS.run(connection, fired)
