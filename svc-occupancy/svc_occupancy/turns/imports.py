"""The import of turns (spec 2.10), and its effect on their units."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from chassis.auth.identity import Call
from chassis.db.database import Connection
from chassis.imports.importer import TICK, Batch, ImportRow
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import Renderer
from chassis.refusals import invalid_request
from chassis.schedule import instants
from makeready.events.v1.events_pb2 import References
from svc_occupancy.replicas import queries as replica_queries
from svc_occupancy.turns import events, import_queries, queries, rules
from svc_occupancy.turns.import_queries import UnitBefore
from svc_occupancy.turns.inputs import TurnRow
from svc_occupancy.turns.records import TURN, Turn
from svc_occupancy.units import queries as unit_queries
from svc_occupancy.units import rules as unit_rules
from svc_occupancy.units.events import references_of
from svc_occupancy.units.rules import ActiveTurn, UnitState

TurnLine = ImportRow[TurnRow]
_UPDATED_AT = TURN.positions["updated_at"]


class TurnImport:
    """One request. events: whether the public events fire."""

    def __init__(self, outbox: Outbox, turns: Renderer[Turn], *, events: bool, call: Call) -> None:
        self._outbox = outbox
        self._turns = turns
        self._events = events
        self._request_id, self._actor = call.request_id, call.identity.actor

    async def save(self, connection: Connection, batch: Batch[TurnRow]) -> References:
        """Saves a batch's rows; returns the units' new states for svc-catalog."""
        held = await replica_queries.units_for_update(connection, batch.company_id, batch.named("unit"))
        batch.resolve("unit", held)
        named = {external_id: line.values["unit_id"] for external_id, line in batch.good.items()}
        for external_id, row in (await import_queries.turns_named(connection, batch.company_id, named)).items():
            batch.good[external_id].before = row
        property_ids = {unit["id"]: unit["property_id"] for unit in held.values()}
        timezone = await replica_queries.timezone(connection, batch.company_id) or "UTC"
        morning = instants.overdue_before(batch.moment, timezone)
        batch.each(lambda line: _check(line, property_ids, morning))
        unit_ids = {line.values["unit_id"] for line in batch.good.values()}
        found = await import_queries.units_before(connection, batch.company_id, unit_ids)
        units = {one.unit_id: _Unit(one, one.state(batch.company_id)) for one in found}
        batch.each(lambda line: units[line.values["unit_id"]].take(line))
        day = instants.local_date(batch.moment, timezone)
        changed = [state for unit in units.values() if (state := unit.state(day)) is not None]
        replaced = [unit.replaced_id for unit in units.values() if unit.replaced_id is not None]
        scheduled = [line for line in batch.good.values() if _is_scheduled(line)]
        for line in scheduled:
            line.instants = 2  # the unit's status may change too
        await import_queries.close(connection, batch.company_id, replaced)
        saved = await batch.save(connection, import_queries.TURNS, {"status": "active"})
        ids = {row["external_id"]: row["id"] for row in saved}
        changes = [
            change
            for state in changed
            for change in units[state.unit_id].status_change(state, ids, batch.moment, self._actor)
        ]
        await unit_queries.save_states(connection, changed, changes)
        if self._events:
            happened = [change for state in changed for change in units[state.unit_id].changes(state, ids)]
            await self._announce(connection, batch, [*happened, *map(_schedule, scheduled)])
        return references_of(changed)

    async def _announce(self, connection: Connection, batch: Batch[TurnRow], happened: Sequence[Change]) -> None:
        rows = await queries.turns(connection, batch.company_id, sorted({one.turn_id for one in happened}))
        turns = {row[0]: row for row in rows}
        following = Counter(one.turn_id for one in happened)
        rows_of_events = []
        for one in happened:
            following[one.turn_id] -= 1
            # If the file changed the turn, its updated_at may be later than the batch's moment. It is the instant of
            # the turn's last event; the one before is a tick earlier.
            last = max(batch.moment, turns[one.turn_id][_UPDATED_AT])
            event = self._outbox.public(
                one.event,
                company_id=batch.company_id,
                entity_id=one.turn_id,
                occurred_at=last - following[one.turn_id] * TICK,
                data=self._turns.json(turns[one.turn_id]),
                change=events.change(one.field, one.before, one.after),
                request_id=self._request_id,
            )
            rows_of_events.append(event)
        await self._outbox.add_many(connection, rows_of_events)


class Change(NamedTuple):
    """A change of a turn, or of its unit, that an event publishes."""

    event: str
    turn_id: int
    field: str
    before: Any
    after: Any


def _is_scheduled(line: TurnLine) -> bool:
    """Whether the row changes the ready date of a turn that existed before."""
    return line.before is not None and line.before["projected_ready_on"] != line.after("projected_ready_on")


def _schedule(line: TurnLine) -> Change:
    before, after = line.stored("projected_ready_on"), line.after("projected_ready_on")
    return Change("turn.schedule_changed", line.stored("id"), "projected_ready_on", before, after)


def _check(line: TurnLine, property_ids: Mapping[int, int], morning: datetime.date) -> None:
    """Sets the columns from the row's values. Raises Refusal with the field.

    morning: see `instants.overdue_before`.
    """
    row, values = line.row, line.values
    if line.moves("unit_id"):
        raise invalid_request("A turn stays with the unit that it was first imported for.", "unit")
    values["property_id"] = property_ids[values["unit_id"]]
    if row.status is not None:
        values["status"] = rules.stored_status(row.status)
    if "occupancy_source" in line.given:
        values["occupancy_source"] = rules.provider(row.occupancy_source, "occupancy_source")
    names = ("move_out_date", "projected_ready_on", "occupancy_source", "occupancy_fed_at")
    rules.check_turn(*(line.after(name) for name in names))
    left = line.after("move_out_date")
    is_active_again = line.stored("status") != "active" and line.after("status") == "active"
    if is_active_again or left != line.stored("move_out_date"):
        # If the departure is already over, the file itself sets the unit's status; no sweep changes it again.
        values["vacated_on"] = left if rules.is_over(left, morning) else None


def _key(line: TurnLine) -> int | str:
    """The key of the row's turn: its id, or the external_id of a new turn."""
    found: int | str = line.row.external_id if line.before is None else line.before["id"]
    return found


class _Unit:
    """One unit during a batch. It takes its rows in the order of the file."""

    def __init__(self, before: UnitBefore, state: UnitState) -> None:
        self._before = state
        self._was = before.active
        self._is = self._was
        self._newest: int | str | None = before.newest_id
        self._lines: dict[int | str, TurnLine] = {}

    def take(self, line: TurnLine) -> None:
        """Raises Refusal if the unit has another active turn at this row."""
        key = _key(line)
        if (line.after("status") or "active") == "active":
            if self._is is not None and self._is.key != key:
                raise invalid_request("The unit has another active turn; complete that one in an earlier row.", "unit")
            self._is = ActiveTurn(key, line.after("move_out_date"), line.after("projected_ready_on"))
        elif self._is is not None and self._is.key == key:
            self._is = None
        if line.before is None:
            self._newest = key
        self._lines[key] = line

    @property
    def _speaks(self) -> int | str | None:
        """The turn whose row decides the unit's status: the active one, else the newest."""
        return self._newest if self._is is None else self._is.key

    def changes(self, state: UnitState, ids: Mapping[str, int]) -> Iterator[Change]:
        """The event of the unit's new status. ids: the saved turns' ids, by external_id."""
        before, after, key = self._before.unit_status, state.unit_status, self._speaks
        if key is not None and after != before:
            turn_id = ids[key] if isinstance(key, str) else key
            yield Change("turn.status_changed", turn_id, "unit_status", before, after)

    def status_change(
        self, state: UnitState, ids: Mapping[str, int], at: datetime.datetime, actor: str
    ) -> Sequence[unit_rules.StatusChange]:
        """The change of the unit's status, if it has another one. ids: the saved turns' ids, by external_id."""
        key = None if self._is is None else self._is.key
        turn_id = ids[key] if isinstance(key, str) else key
        return unit_rules.status_change(self._before, state, at=at, cause="import", actor=actor, turn_id=turn_id)

    @property
    def replaced_id(self) -> int | None:
        """The id of the turn that was active, if the batch makes another one active."""
        if self._was is None or self._is is None or self._is.key == self._was.key:
            return None
        assert isinstance(self._was.key, int)  # it is stored, so it has an id
        return self._was.key

    def state(self, day: datetime.date) -> UnitState | None:
        """The unit's state after its rows; None if it does not change."""
        if not self._lines:
            return None
        before = self._before.unit_status
        speaker = None if self._speaks is None else self._lines.get(self._speaks)
        given_status = None if speaker is None else speaker.row.unit_status
        status = unit_rules.unit_status_on_import(self._was, self._is, day, before, given_status)
        after = self._before.became(status, unit_rules.unit_ready_on(self._is))
        if after is not None and speaker is not None and given_status is not None and status != before:
            speaker.touched = True
        return after
