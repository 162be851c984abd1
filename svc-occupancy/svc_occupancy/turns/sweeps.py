"""The scheduled sweep of turns: units become vacant the morning after their residents leave."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from asyncpg import Record

from chassis.auth.identity import SERVICE, Call, Identity
from chassis.db.database import Connection, Database
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import Renderer
from chassis.schedule import instants
from chassis.schedule.instants import Clock
from chassis.schedule.overdue import Overdue
from chassis.writes.audit import Audit
from svc_occupancy import schema
from svc_occupancy.turns import events, queries, tables
from svc_occupancy.turns.queries import Departed
from svc_occupancy.turns.records import Turn
from svc_occupancy.units import queries as unit_queries
from svc_occupancy.units import rules as unit_rules
from svc_occupancy.units.events import references_of
from svc_occupancy.units.rules import VACATED, UnitState


class Vacating:
    """Makes units vacant the morning after the move_out_date of their active turn, if no successor has moved in."""

    def __init__(
        self, database: Database, audit: Audit, outbox: Outbox, turns: Renderer[Turn], clock: Clock = instants.now
    ) -> None:
        turn = tables.transition.c
        self._overdue = Overdue(
            database,
            schema.company,
            tables.transition,
            queries.has_departed,
            queries.DEPARTED,
            order=(turn.move_out_date, turn.id),
            # Locks units before turns, as notices, move-ins, commands and imports do.
            first=turn.unit_id,
        )
        self._audit, self._outbox, self._turns = audit, outbox, turns
        self._clock = clock
        self._call = Call(Identity(SERVICE, outbox.producer), "")

    async def sweep(self, now: datetime.datetime) -> Mapping[str, int]:
        """Returns how many units became vacant; turn.status_changed fires for each."""
        vacated = 0

        async def work(connection: Connection, rows: Sequence[Record]) -> None:
            nonlocal vacated
            at = self._clock()  # read under the units' locks
            departed = [Departed(**row) for row in rows]
            for company_id, turns in itertools.groupby(departed, key=lambda turn: turn.company_id):
                vacated += await self._vacate(connection, company_id, at, list(turns))

        await self._overdue.each(now, work)
        if vacated:
            self._outbox.wake()
        return {"unit.vacated": vacated, "turn.status_changed": vacated}

    async def _vacate(
        self, connection: Connection, company_id: int, at: datetime.datetime, departed: Sequence[Departed]
    ) -> int:
        """Handles these turns' morning after; returns how many units became vacant."""
        states: dict[int, UnitState] = {}
        changes: list[unit_rules.StatusChange] = []
        saved: dict[int, dict[str, Any]] = {}
        for turn in departed:
            row = turn._asdict() | {"vacated_on": turn.move_out_date}
            # A status that a person has set since stays, and so does the turn.
            if unit_rules.vacated(turn.unit_status) != turn.unit_status:
                state = turn.state.became(VACATED, turn.projected_ready_on)
                assert state is not None
                states[turn.id] = state
                row |= {"version": turn.version + 1, "updated_at": instants.after(at, turn.updated_at)}
                changes += unit_rules.status_change(
                    turn.state,
                    state,
                    at=row["updated_at"],
                    cause="vacated",
                    actor=self._call.identity.actor,
                    turn_id=turn.id,
                )
            saved[turn.id] = row
        await queries.SAVE_DEPARTED.run(connection, list(saved.values()))
        if not states:
            return 0
        await unit_queries.save_states(connection, list(states.values()), changes)
        references = references_of(states.values())
        happened = [self._outbox.references(references, company_id=company_id, occurred_at=at)]
        rows_by_id = {row[0]: row for row in await queries.turns(connection, company_id, list(states))}
        for turn in departed:
            if turn.id not in states:
                continue
            before, after = {"unit_status": turn.unit_status}, {"unit_status": VACATED}
            await self._audit.add(
                connection, self._call, company_id, "unit.vacated", "unit", turn.unit_id, before, after
            )
            happened.append(
                self._outbox.public(
                    "turn.status_changed",
                    company_id=company_id,
                    entity_id=turn.id,
                    occurred_at=saved[turn.id]["updated_at"],
                    data=self._turns.json(rows_by_id[turn.id]),
                    change=events.change("unit_status", turn.unit_status, VACATED),
                )
            )
        await self._outbox.add_many(connection, happened)
        return len(states)
