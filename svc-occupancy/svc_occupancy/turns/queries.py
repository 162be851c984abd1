"""The SQL statements of turns: served turns, and those of a locked unit. The first parameter is the company."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Column, Select, and_, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement

from chassis.changes.feed import Changes
from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany
from chassis.db.statements import TIME, Query, Statement, param
from chassis.lists.paging import Inside, Pages
from chassis.lists.updated_since import is_of, stretch
from chassis.records.shapes import Source
from chassis.writes.editing import EditableTable
from makeready.occupancy.v1.turns_pb2 import ListTurnsRequest
from svc_occupancy import schema
from svc_occupancy.turns import records, rules, tables
from svc_occupancy.turns.tables import StoredTurn
from svc_occupancy.units import tables as unit_tables
from svc_occupancy.units.rules import UnitState, UnitStatus

_turns = records.TURN.select(
    tables.transition.join(schema.property_, schema.property_.c.id == tables.transition.c.property_id).join(
        schema.unit, schema.unit.c.id == tables.transition.c.unit_id
    )
)


def _is(column: str) -> ColumnElement[bool]:
    return tables.transition.c[column] == param(column, tables.transition.c[column].type)


TURNS_PAGE = Pages(
    _turns,
    tables.transition.c.company_id,
    tables.transition.c.id,
    {name: _is(name) for name in ("property_id", "unit_id", "status")}
    | {"updated_since": tables.transition.c.updated_at >= param("updated_since", TIME)},
    statuses=rules.TRANSITION_STATUSES,
    places=("property_id", "unit_id"),
    inside=[Inside("unit_id", "property_id", schema.unit)],
    request=ListTurnsRequest,
)

TURN_CHANGES = Changes("turn", _turns, tables.transition)

SERVED_TURN = Statement(_turns.where(_is("company_id"), tables.transition.c.id == param("entity_id", BigInteger)))


async def turn(database: Database, company_id: int, turn_id: int) -> Record | None:
    """The columns of `records.TURN`."""
    return await database.row(SERVED_TURN, company_id=company_id, entity_id=turn_id)


_TURNS = Statement(
    _turns.where(_is("company_id"), tables.transition.c.id == func.any(param("turn_ids", ARRAY(BigInteger))))
)


async def turns(connection: Connection, company_id: int, turn_ids: Sequence[int]) -> list[Record]:
    """The columns of `records.TURN`, in any order."""
    return await connection.rows(_TURNS, company_id=company_id, turn_ids=turn_ids) if turn_ids else []


_company_id = param("company_id", BigInteger)
_ACTIVE: ColumnElement[str] = literal_column("'active'")  # a literal: the index of active turns is partial
# The served columns that are not in `transition` but in the unit and property, with their labels in LOOK.
_PLACE_LABELS = {
    column: f"held_{column.table.name}_{column.name}"
    for column in records.TURN.columns
    if isinstance(column, Column) and column.table is not tables.transition
}
_TRANSITION_NAMES = {tables.transition.c[name]: name for name in StoredTurn.__struct_fields__}


def _look() -> Select[tuple[object, ...]]:
    """The unit `:unit_id` with its property, if both have arrived; with its active transition, its state and the
    company's timezone, each null if it does not exist."""
    turn, state, company = tables.transition, unit_tables.unit_state, schema.company
    here = and_(turn.c.company_id == _company_id, turn.c.unit_id == schema.unit.c.id, turn.c.status == _ACTIVE)
    known = and_(state.c.company_id == _company_id, state.c.unit_id == schema.unit.c.id)
    return (
        select(
            *(column.label(label) for column, label in _PLACE_LABELS.items()),
            *_TRANSITION_NAMES,
            state.c.version.label("state_version"),
            state.c.unit_status,
            state.c.projected_ready_on.label("unit_ready_on"),
            company.c.timezone,
        )
        .select_from(
            schema.unit.join(schema.property_, schema.property_.c.id == schema.unit.c.property_id)
            .outerjoin(turn, here)
            .outerjoin(state, known)
            .outerjoin(company, and_(company.c.id == _company_id, company.c.version > 0))
        )
        .where(
            # Only the key's index fits this form: with few units known, the planner may choose the company's index.
            *is_of([(schema.unit.c.company_id, _company_id)]),
            schema.unit.c.id == param("unit_id", BigInteger),
            schema.unit.c.version > 0,
            schema.property_.c.version > 0,
        )
    )


LOOK = _look()


def by_column(turn: StoredTurn) -> dict[Source, Any]:
    """A stored turn's values by column, for `Renderer.of_values`."""
    return {column: getattr(turn, name) for column, name in _TRANSITION_NAMES.items()}


class HeldUnit:
    """A unit whose row is locked, with its active turn and its state."""

    def __init__(self, company_id: int, row: Record) -> None:
        """row: a row of `LOOK`."""
        self._places: dict[Source, Any] = {column: row[label] for column, label in _PLACE_LABELS.items()}
        self.id: int = self._places[schema.unit.c.id]
        self.property_id: int = self._places[schema.property_.c.id]
        self.turn: StoredTurn | None = None
        """The active turn; None if the unit has none."""
        if row["id"] is not None:
            self.turn = StoredTurn(*(row[name] for name in _TRANSITION_NAMES.values()))
        self.state = UnitState(company_id, self.id, row["state_version"] or 0, row["unit_status"], row["unit_ready_on"])
        self.timezone: str | None = row["timezone"]
        """The company's timezone; None if the company has not arrived."""

    def shown(self, turn: StoredTurn) -> dict[Source, Any]:
        """The values of `records.TURN`'s columns for a turn of this unit."""
        return self._places | by_column(turn)


_unit_id, _turn_id = param("unit_id", BigInteger), param("turn_id", BigInteger)

_LOCK_UNIT = Statement(
    select(schema.unit.c.id)
    .where(*is_of([(schema.unit.c.company_id, _company_id)]), schema.unit.c.id == _unit_id)
    .with_for_update(key_share=True)
)
_LOOK = Statement(LOOK)


async def held_unit(connection: Connection, company_id: int, unit_id: int) -> HeldUnit | None:
    """Locks the unit, then reads it; None if it has not arrived, or only after the lock."""
    if await connection.row(_LOCK_UNIT, company_id=company_id, unit_id=unit_id) is None:
        return None
    row = await connection.row(_LOOK, company_id=company_id, unit_id=unit_id)
    return None if row is None else HeldUnit(company_id, row)


_STORED_TURN = Query(
    StoredTurn,
    select(*_TRANSITION_NAMES).where(tables.transition.c.company_id == _company_id, tables.transition.c.id == _turn_id),
)


async def stored_turn(connection: Connection | Database, company_id: int, turn_id: int) -> StoredTurn | None:
    return await _STORED_TURN.row(connection, company_id=company_id, turn_id=turn_id)


_of_unit, _by_id = stretch([(tables.transition.c.company_id, _company_id), (tables.transition.c.unit_id, _unit_id)], [])
NEWEST = Query(
    StoredTurn,
    select(*_TRANSITION_NAMES)
    .where(*_of_unit)
    .order_by(*(column.desc() for column in _by_id), tables.transition.c.id.desc())
    .limit(literal_column("1")),
)


async def newest_turn(connection: Connection, company_id: int, unit_id: int) -> StoredTurn | None:
    """The unit's turn with the highest id, whatever its status."""
    return await NEWEST.row(connection, company_id=company_id, unit_id=unit_id)


# The columns of a notice.
NOTICE_NAMES = ("notice_external_id", "ntv_reason_code", "departure_destination_code", "notes")
EDITABLE_TURNS = EditableTable(
    tables.transition,
    *("property_id", "unit_id", "status", "move_in_date", "move_out_date", "projected_ready_on"),
    *("occupancy_source", "occupancy_fed_at", *NOTICE_NAMES, "vacated_on"),
)


class UnitPlace(NamedTuple):
    """A unit and its property, with their names."""

    unit_id: int
    unit: str
    property_id: int
    property: str


_PLACE = Query(
    UnitPlace,
    select(
        schema.unit.c.id.label("unit_id"),
        schema.unit.c.name.label("unit"),
        schema.property_.c.id.label("property_id"),
        schema.property_.c.name.label("property"),
    )
    .select_from(schema.unit.join(schema.property_, schema.property_.c.id == schema.unit.c.property_id))
    .where(*is_of([(schema.unit.c.company_id, _company_id)]), schema.unit.c.id == _unit_id, schema.unit.c.version > 0),
)


async def place(connection: Connection | Database, company_id: int, unit_id: int) -> UnitPlace | None:
    """The unit with its property; None if the company has no such unit."""
    return await _PLACE.row(connection, company_id=company_id, unit_id=unit_id)


class Departed(NamedTuple):
    """An active turn whose move_out_date is over and not yet dealt with, with its unit's state."""

    company_id: int
    id: int
    unit_id: int
    version: int
    updated_at: datetime.datetime
    move_out_date: datetime.date
    projected_ready_on: datetime.date | None
    state_version: int | None
    unit_status: UnitStatus | None
    unit_ready_on: datetime.date | None

    @property
    def state(self) -> UnitState:
        """The unit's state."""
        return UnitState(self.company_id, self.unit_id, self.state_version or 0, self.unit_status, self.unit_ready_on)


def has_departed(day: Any, _now: Any) -> Sequence[ColumnElement[bool]]:
    """The condition for active turns whose resident has left. day: in the company, dates before it are over."""
    # A literal, so that PostgreSQL can use the sweep's partial index.
    return [tables.transition.c.status == _ACTIVE, tables.leaves, tables.transition.c.move_out_date < day]


_turn, _state = tables.transition, unit_tables.unit_state
# The fields of Departed.
DEPARTED = select(
    *(_turn.c[name] for name in ("company_id", "id", "unit_id", "version", "updated_at", "move_out_date")),
    _turn.c.projected_ready_on,
    _state.c.version.label("state_version"),
    _state.c.unit_status,
    _state.c.projected_ready_on.label("unit_ready_on"),
).select_from(
    _turn.outerjoin(_state, and_(_state.c.company_id == _turn.c.company_id, _state.c.unit_id == _turn.c.unit_id))
)
SAVE_DEPARTED = UpdateMany(tables.transition, ("vacated_on", "version", "updated_at"))
