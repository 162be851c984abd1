"""The scheduled sweep of turns: units become vacant the morning after a departure, and planned turns begin."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from asyncpg import Record

from chassis.auth.identity import SERVICE, Call, Identity
from chassis.db.database import Connection, Database
from chassis.db.statements import Expression, Selection
from chassis.messaging.outbox import Outbox, OutboxEvent
from chassis.records.shapes import Renderer, encode
from chassis.runtime.failpoints import failpoint
from chassis.schedule import instants
from chassis.schedule.clocks import LIVE, Companies
from chassis.schedule.overdue import BEGINNINGS, MORNINGS, Days, FallsDue, Overdue
from chassis.schedule.overdue import Due as Condition
from chassis.schedule.sweeps import Due
from chassis.writes.audit import Audit
from svc_occupancy import schema
from svc_occupancy.turns import events, queries, rules, tables
from svc_occupancy.turns.queries import HeldUnit
from svc_occupancy.turns.records import Turn
from svc_occupancy.turns.tables import StoredTurn
from svc_occupancy.units import queries as unit_queries
from svc_occupancy.units import rules as unit_rules
from svc_occupancy.units.events import references_of
from svc_occupancy.units.rules import VACATED, StatusCause, StatusChange, UnitState


class Taken(NamedTuple):
    """A step that time has taken in a unit."""

    unit: HeldUnit
    """The unit before the step."""
    turn: StoredTurn
    """Its current turn after the step."""
    ended: StoredTurn | None
    """The turn that this one ends, if it has begun with the step."""
    state: UnitState | None
    """The unit's new state; None if it stays."""
    cause: StatusCause

    @property
    def has_status(self) -> bool:
        """Whether the unit has another status."""
        return self.state is not None and self.state.unit_status != self.unit.state.unit_status


def vacate(unit: HeldUnit, at: datetime.datetime) -> Taken:
    """The morning after the current turn's departure. A status that a person has set since stays, and so does the
    turn."""
    assert unit.turn is not None
    turn = msgspec.structs.replace(unit.turn, vacated_on=unit.turn.move_out_date)
    if unit.state.unit_status not in unit_rules.LIVED_IN:
        return Taken(unit, turn, None, None, "vacated")
    state = unit.state.became(VACATED, turn.projected_ready_on)
    return Taken(unit, _changed(turn, at), None, state, "vacated")


def begin(unit: HeldUnit, at: datetime.datetime) -> Taken:
    """The first planned turn begins, and ends the current one, whatever the unit's status is."""
    assert unit.next is not None
    turn = _changed(unit.next, at, has_begun=True, planned_version=None, vacated_on=None)
    turn = msgspec.structs.replace(turn, began_at=turn.updated_at)
    ended = None
    if unit.turn is not None:
        turn = msgspec.structs.replace(turn, predecessor_id=unit.turn.id)
        ended = _changed(unit.turn, at, status="completed")
    status = unit_rules.status_of_resident(turn.move_out_date)
    return Taken(unit, turn, ended, unit.state.became(status, turn.projected_ready_on), "move_in")


_STEPS = {"vacate": vacate, "begin": begin}


def _changed(turn: StoredTurn, at: datetime.datetime, **values: object) -> StoredTurn:
    """The turn's next version."""
    at = instants.after(at, turn.updated_at)
    return msgspec.structs.replace(turn, **values, version=turn.version + 1, updated_at=at)


class Turnovers:
    """Takes the steps that are due in units, in the order in which they fell due in each unit."""

    def __init__(self, database: Database, audit: Audit, outbox: Outbox, turns: Renderer[Turn]) -> None:
        turn = tables.transition.c

        def overdue(due: Condition, days: Days, date: Expression, dates: Selection | None = None) -> Overdue:
            # Locks units before turns, as notices, move-ins, commands and imports do.
            return Overdue(
                database,
                schema.company,
                tables.transition,
                due,
                queries.DUE,
                FallsDue(date, days, (date, turn.id), dates),
                first=turn.unit_id,
            )

        next_arrival = queries.next_arrival(schema.company.c.id)
        self._departures = overdue(queries.has_departed, MORNINGS, turn.move_out_date)
        self._arrivals = overdue(queries.is_to_begin, BEGINNINGS, turn.move_in_date, next_arrival)
        self._audit, self._outbox, self._turns = audit, outbox, turns
        self._call = Call(Identity(SERVICE, outbox.producer), "")

    async def next_due(self, company_id: int) -> Due | None:
        """See `chassis.schedule.sweeps.Sweep`."""
        departs = Due.of(await self._departures.next_due(company_id), "unit.vacated")
        begins = Due.of(await self._arrivals.next_due(company_id), "turn.begun")
        return min((due for due in (departs, begins) if due is not None), default=None)

    async def sweep(self, now: datetime.datetime, companies: Companies = LIVE) -> Mapping[str, int]:
        """Returns how many units became vacant, how many turns began, and how often turn.status_changed fired.

        A unit may have several steps due, of both kinds, if no sweep has run for days. All are taken in one
        transaction, so any number of sweeps at once take each step once.
        """
        done = Counter({"unit.vacated": 0, "turn.begun": 0, "turn.status_changed": 0})

        async def work(connection: Connection, rows: Sequence[Record]) -> None:
            at = companies.clock()  # read under the units' locks
            taken: list[Taken] = []
            for company_id, turns in itertools.groupby(rows, key=lambda row: int(row["company_id"])):
                taken += await self._catch_up(connection, company_id, {row["unit_id"] for row in turns}, now, at)
            done["unit.vacated"] += sum(step.cause == "vacated" and step.has_status for step in taken)
            done["turn.begun"] += sum(step.cause == "move_in" for step in taken)
            done["turn.status_changed"] += sum(step.has_status for step in taken)

        for due in (self._departures, self._arrivals):
            await due.each(now, work, companies)
        if done.total():
            self._outbox.wake()
        return done

    async def _catch_up(
        self,
        connection: Connection,
        company_id: int,
        unit_ids: set[int],
        now: datetime.datetime,
        at: datetime.datetime,
    ) -> list[Taken]:
        """Takes all steps that are due in these units, the first of each unit at once, then the second ones."""
        taken: list[Taken] = []
        while unit_ids:
            steps = []
            for unit in await queries.held_units(connection, company_id, sorted(unit_ids)):
                timezone = unit.timezone or "UTC"
                days = instants.local_date(now, timezone), instants.overdue_before(now, timezone)
                step = rules.next_step(unit.turn, unit.next, *days)
                if step is not None:
                    steps.append(_STEPS[step](unit, at))
            if steps:
                await self._save(connection, company_id, at, steps)
            taken += steps
            unit_ids = {step.unit.id for step in steps}
            # A unit's next step may be of another turn: its event is later all the same.
            at = max((instants.after(at, step.turn.updated_at) for step in steps), default=at)
        return taken

    async def _save(
        self, connection: Connection, company_id: int, at: datetime.datetime, steps: Sequence[Taken]
    ) -> None:
        ended = [msgspec.structs.asdict(step.ended) for step in steps if step.ended is not None]
        # First those that end, because a unit can have only one turn that has begun.
        await queries.SAVE_TURNS.run(connection, ended)
        failpoint("sweep-under-way")
        await queries.SAVE_TURNS.run(connection, [msgspec.structs.asdict(step.turn) for step in steps])
        states = [step.state for step in steps if step.state is not None]
        if states:
            await unit_queries.save_states(
                connection, states, [change for step in steps for change in self._changes(step)]
            )
            references = self._outbox.references(references_of(states), company_id=company_id, occurred_at=at)
            await self._outbox.add(connection, references)
        for step in steps:
            await self._record(connection, company_id, step)
        await self._outbox.add_many(connection, [self._event(step) for step in steps if step.has_status])

    def _changes(self, taken: Taken) -> Sequence[StatusChange]:
        """The change of the unit's status, if it has another one."""
        if taken.state is None:
            return ()
        return unit_rules.status_change(
            taken.unit.state,
            taken.state,
            at=taken.turn.updated_at,
            cause=taken.cause,
            actor=self._call.identity.actor,
            turn_id=taken.turn.id,
        )

    async def _record(self, connection: Connection, company_id: int, taken: Taken) -> None:
        """Adds the step's entries to the audit log."""
        entries: list[tuple[str, str, int, Mapping[str, object], Mapping[str, object]]] = []
        if taken.ended is not None:
            ends = {"status": "active"}, {"status": taken.ended.status}
            entries.append(("turn.completed", "turn", taken.ended.id, *ends))
        if taken.cause == "move_in":
            entries.append(("turn.begun", "turn", taken.turn.id, {"has_begun": False}, {"has_begun": True}))
        if taken.has_status:
            action = "unit.vacated" if taken.cause == "vacated" else "unit.status_changed"
            assert taken.state is not None
            changes = {"unit_status": taken.unit.state.unit_status}, {"unit_status": taken.state.unit_status}
            entries.append((action, "unit", taken.unit.id, *changes))
        for entry in entries:
            await self._audit.add(connection, self._call, company_id, *entry)

    def _event(self, taken: Taken) -> OutboxEvent:
        """The event of the unit's new status, with the turn as it is served after the step."""
        assert taken.state is not None
        return self._outbox.public(
            "turn.status_changed",
            company_id=taken.turn.company_id,
            entity_id=taken.turn.id,
            occurred_at=taken.turn.updated_at,
            data=encode(self._turns.of_values(taken.unit.shown(taken.turn))),
            change=events.change("unit_status", taken.unit.state.unit_status, taken.state.unit_status),
        )
