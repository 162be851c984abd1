"""The import of turns (spec 2.10), and its effect on their units."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

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
from svc_occupancy.units.rules import ActiveTurn, UnitState, UnitStatus

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
        batch.has_locks()
        batch.resolve("unit", held)
        named = {external_id: line.values["unit_id"] for external_id, line in batch.good.items()}
        for external_id, row in (await import_queries.turns_named(connection, batch.company_id, named)).items():
            batch.good[external_id].before = row
        property_ids = {unit["id"]: unit["property_id"] for unit in held.values()}
        timezone = await replica_queries.timezone(connection, batch.company_id) or "UTC"
        morning = instants.overdue_before(batch.moment, timezone)
        day = instants.local_date(batch.moment, timezone)
        batch.each(lambda line: _check(line, property_ids, day, morning))
        unit_ids = {line.values["unit_id"] for line in batch.good.values()}
        units_before = await import_queries.units_before(connection, batch.company_id, unit_ids)
        units = {before.unit_id: _Unit(before, before.state(batch.company_id), day) for before in units_before}
        batch.each(lambda line: units[line.values["unit_id"]].take(line))
        changed = [state for unit in units.values() if (state := unit.state()) is not None]
        replaced = [unit.replaced_id for unit in units.values() if unit.replaced_id is not None]
        scheduled = [line for line in batch.good.values() if _is_scheduled(line)]
        for line in scheduled:
            line.instants = 2  # the unit's status may change too
        for line in batch.good.values():
            line.values["planned_version"] = _planned_version(line)
        await import_queries.close(connection, batch.company_id, replaced)
        saved = await batch.save(connection, import_queries.TURNS, {})
        connection.changed.update((batch.company_id, "unit", unit_id) for unit_id in unit_ids)
        another_row = [unit.id for unit in units.values() if unit.has_another_row]
        await put_in_row(connection, batch.company_id, another_row)
        after = {state.unit_id: state.version for state in changed}
        batch.beside["units"] = {
            str(unit.unit_id): [after.get(unit.unit_id, unit.version or 0), unit.unit_status, unit.current_id]
            for unit in units_before
        }
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
        rows = await queries.turns(connection, batch.company_id, sorted({change.turn_id for change in happened}))
        turns = {row[0]: row for row in rows}
        following = Counter(change.turn_id for change in happened)
        rows_of_events = []
        for change in happened:
            following[change.turn_id] -= 1
            # If the file changed the turn, its updated_at may be later than the batch's moment. It is the instant of
            # the turn's last event; the one before is a tick earlier.
            last = max(batch.moment, turns[change.turn_id][_UPDATED_AT])
            event = self._outbox.public(
                change.event,
                company_id=batch.company_id,
                entity_id=change.turn_id,
                occurred_at=last - following[change.turn_id] * TICK,
                data=self._turns.json(turns[change.turn_id]),
                change=events.change(change.field, change.before, change.after),
                request_id=self._request_id,
            )
            rows_of_events.append(event)
        await self._outbox.add_many(connection, rows_of_events)


class Change(NamedTuple):
    """A change of a turn, or of its unit, that an event publishes."""

    event: str
    turn_id: int
    field: str
    before: object
    after: object


def _is_scheduled(line: TurnLine) -> bool:
    """Whether the row changes the ready date of a turn that existed before."""
    return line.before is not None and line.before["projected_ready_on"] != line.after("projected_ready_on")


def _schedule(line: TurnLine) -> Change:
    before, after = line.stored("projected_ready_on"), line.after("projected_ready_on")
    return Change("turn.schedule_changed", line.stored("id"), "projected_ready_on", before, after)


def _check(line: TurnLine, property_ids: Mapping[int, int], today: datetime.date, morning: datetime.date) -> None:
    """Sets the columns from the row's values. Raises Refusal with the field.

    today: in the company's timezone; morning: see `instants.overdue_before`.
    """
    row, values = line.row, line.values
    if line.moves("unit_id"):
        raise invalid_request("A turn stays with the unit that it was first imported for.", "unit")
    values["property_id"] = property_ids[values["unit_id"]]
    if row.status is not None:
        values["status"] = rules.stored_status(row.status)
    elif line.after("status") is None:
        values["status"] = "active"
    rules.check_begun(line.stored("has_begun"), line.stored("move_in_date"), line.after("move_in_date"), today)
    if "occupancy_source" in line.given:
        values["occupancy_source"] = rules.provider(row.occupancy_source, "occupancy_source")
    names = ("move_out_date", "projected_ready_on", "occupancy_source", "occupancy_fed_at")
    rules.check_turn(*(line.after(name) for name in names))
    move_out_date = line.after("move_out_date")
    is_active_again = line.stored("status") != "active" and line.after("status") == "active"
    if is_active_again or move_out_date != line.stored("move_out_date"):
        # If the departure is already over, the file itself sets the unit's status; no sweep changes it again.
        values["vacated_on"] = move_out_date if rules.is_over(move_out_date, morning) else None


def _planned_version(line: TurnLine) -> int | None:
    """The planned_version that belongs to the turn's version after the import."""
    if line.after("has_begun"):
        return None
    if line.before is None:
        return 1
    is_changed = line.touched or any(
        line.after(name) != line.before[name] for name in import_queries.TURNS.changeable if name != "planned_version"
    )
    version: int = line.before["version"] + is_changed
    return version


def _is_replanned(line: TurnLine) -> bool:
    """Whether the row changes the place of a turn in its unit's row of planned ones."""
    return any(line.after(name) != line.stored(name) for name in ("status", "has_begun", "move_in_date"))


async def put_in_row(connection: Connection, company_id: int, unit_ids: Sequence[int]) -> None:
    """Puts the planned turns of units into a row, after the batch is saved. Files name no predecessors, so the earlier
    move-in comes first."""
    if not unit_ids:
        return
    before = {
        unit.unit_id: unit.current_id for unit in await import_queries.units_before(connection, company_id, unit_ids)
    }
    predecessors: dict[int, int | None] = {}
    for turn in await import_queries.planned_turns(connection, company_id, unit_ids):
        if turn.predecessor_id != before[turn.unit_id]:
            predecessors[turn.turn_id] = before[turn.unit_id]
        before[turn.unit_id] = turn.turn_id
    await import_queries.put_behind(connection, company_id, predecessors)


def _key(line: TurnLine) -> int | str:
    """The key of the row's turn: its id, or the external_id of a new turn."""
    key: int | str = line.row.external_id if line.before is None else line.before["id"]
    return key


class _Unit:
    """One unit during a batch. It takes its rows in the order of the file."""

    def __init__(self, before: UnitBefore, state: UnitState, day: datetime.date) -> None:
        """day: today in the company's timezone."""
        self.id = before.unit_id
        self._before, self._day = state, day
        self._was = before.current
        self._is = self._was
        # Of the turns that have begun.
        self._newest: int | str | None = before.newest_id
        self._lines: dict[int | str, TurnLine] = {}
        self._is_replanned = False

    def take(self, line: TurnLine) -> None:
        """Decides whether the row's turn has begun. Raises Refusal if the unit has another current turn at this row."""
        key, status, date = _key(line), line.after("status"), line.after("move_in_date")
        if status == "active":
            line.values["has_begun"] = self._has_begun(line)
        elif not line.stored("has_begun"):
            # A planned turn that is cancelled has never begun; one that is completed has.
            line.values["has_begun"] = status == "completed" or (
                line.before is None and not rules.is_later(date, self._day)
            )
        has_begun = line.after("has_begun")
        if status == "active" and has_begun:
            if self._is is not None and self._is.key != key:
                raise invalid_request("The unit has another active turn; complete that one in an earlier row.", "unit")
            self._is = ActiveTurn(key, line.after("move_out_date"), line.after("projected_ready_on"))
        elif self._is is not None and self._is.key == key:
            self._is = None
        if status == "active" and line.stored("status") != "active":
            line.values["predecessor_id"] = None  # it has another place in the row, if any
        if not has_begun:
            line.values["vacated_on"] = None
        if not has_begun or line.stored("has_begun") is False:
            self._is_replanned = self._is_replanned or _is_replanned(line)
        if line.before is None and has_begun:
            self._newest = key
        self._lines[key] = line

    def _has_begun(self, line: TurnLine) -> bool:
        """Whether an active turn has begun after its row. Raises Refusal if it has not, and has no date."""
        if line.stored("has_begun"):
            return True
        date = line.after("move_in_date")
        if rules.is_later(date, self._day):
            return False
        if line.stored("status") != "active":
            return True
        # A sweep begins a planned turn, which announces it, unless the file says that it has begun.
        says_so = date != line.stored("move_in_date") or line.row.unit_status in unit_rules.LIVED_IN
        if self._is is None and says_so:
            return True
        if date is None:
            raise invalid_request("A planned turn needs its move_in_date.", "move_in_date")
        return False

    @property
    def _speaks(self) -> int | str | None:
        """The turn whose row decides the unit's status: the current one, else the newest that has begun, else the first
        planned one of the file."""
        if self._is is not None:
            return self._is.key
        return next(iter(self._lines), None) if self._newest is None else self._newest

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
    def has_another_row(self) -> bool:
        """Whether the unit's row of turns may be another one: the batch plans a turn, changes a planned one, or makes
        another turn current."""
        current = None if self._is is None else self._is.key
        was = None if self._was is None else self._was.key
        return self._is_replanned or current not in (None, was)

    @property
    def replaced_id(self) -> int | None:
        """The id of the turn that was current, if the batch makes another one current."""
        if self._was is None or self._is is None or self._is.key == self._was.key:
            return None
        assert isinstance(self._was.key, int)  # it is stored, so it has an id
        return self._was.key

    def state(self) -> UnitState | None:
        """The unit's state after its rows; None if it does not change."""
        if not self._lines:
            return None
        before = self._before.unit_status
        speaker = None if self._speaks is None else self._lines.get(self._speaks)
        given_status = None if speaker is None else speaker.row.unit_status
        status: UnitStatus | None
        if self._is is None and self._newest is None:  # planned turns change nothing about the unit
            status = given_status if given_status in unit_rules.VACANT else before
        else:
            status = unit_rules.unit_status_on_import(self._was, self._is, self._day, before, given_status)
        if status is None:
            return None
        after = self._before.became(status, unit_rules.unit_ready_on(self._is))
        if after is not None and speaker is not None and given_status is not None and status != before:
            speaker.touched = True
        return after
