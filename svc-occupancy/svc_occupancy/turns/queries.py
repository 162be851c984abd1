"""The SQL statements of turns: those that are served, and a locked unit's. The company comes first in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Select, and_, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.statements import TIME, Statement, param
from chassis.lists.paging import Pages
from chassis.lists.updated_since import is_of, stretch
from svc_occupancy import schema
from svc_occupancy.turns import rules, tables
from svc_occupancy.units import rules as unit_rules
from svc_occupancy.units import tables as unit_tables

# The columns of a served turn, in the order in which `records.Links.turn` takes them.
TURN_COLUMNS: tuple[ColumnElement[Any], ...] = (
    tables.transition.c.id,
    tables.transition.c.status,
    schema.property_.c.id,
    schema.property_.c.name,
    schema.property_.c.external_id,
    schema.unit.c.id,
    schema.unit.c.name,
    schema.unit.c.external_id,
    tables.transition.c.move_out_date,
    tables.transition.c.move_in_date,
    tables.transition.c.projected_ready_on,
    tables.transition.c.occupancy_source,
    tables.transition.c.occupancy_fed_at,
    tables.transition.c.created_at,
    tables.transition.c.updated_at,
    tables.transition.c.external_id,
    tables.transition.c.source,
    tables.transition.c.version,
)

_turns = select(*(column.label(f"c{index}") for index, column in enumerate(TURN_COLUMNS))).select_from(
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
)

_TURN = Statement(_turns.where(_is("company_id"), tables.transition.c.id == param("turn_id", BigInteger)))


async def turn(database: Database, company_id: int, turn_id: int) -> Record | None:
    """A row of TURN_COLUMNS."""
    return await database.row(_TURN, company_id=company_id, turn_id=turn_id)


_TURNS = Statement(
    _turns.where(_is("company_id"), tables.transition.c.id == func.any(param("turn_ids", ARRAY(BigInteger))))
)


async def turns(connection: Connection, company_id: int, turn_ids: Sequence[int]) -> list[Record]:
    """Rows of TURN_COLUMNS, in any order."""
    return await connection.rows(_TURNS, company_id=company_id, turn_ids=turn_ids) if turn_ids else []


_company_id = param("company_id", BigInteger)
_ACTIVE: ColumnElement[str] = literal_column("'active'")  # a literal, or the index of active turns would not serve
PLACE_COLUMNS = [column for column in TURN_COLUMNS if column.table is not tables.transition]


def _look() -> Select[tuple[object, ...]]:
    """The unit `:unit_id` with its property, where both have arrived; its active transition, its state and the
    company's timezone, null where there is none."""
    turn, state, company = tables.transition, unit_tables.unit_state, schema.company
    here = and_(turn.c.company_id == _company_id, turn.c.unit_id == schema.unit.c.id, turn.c.status == _ACTIVE)
    known = and_(state.c.company_id == _company_id, state.c.unit_id == schema.unit.c.id)
    return (
        select(
            *(column.label(f"held_{column.table.name}_{column.name}") for column in PLACE_COLUMNS),
            *turn.c,
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
            # By its key alone: to a planner that knows few units, the company's index looks as good.
            *is_of([(schema.unit.c.company_id, _company_id)]),
            schema.unit.c.id == param("unit_id", BigInteger),
            schema.unit.c.version > 0,
            schema.property_.c.version > 0,
        )
    )


LOOK = _look()

Row = Mapping[str, Any]


class HeldUnit:
    """A unit whose row is locked, with its active transition and its state."""

    def __init__(self, row: Record) -> None:
        """row: of `LOOK`."""
        self._row = row
        self.turn: Row | None = None
        """The active transition as it is stored; None where the unit has none."""
        if row["id"] is not None:
            self.turn = {column.name: row[column.name] for column in tables.transition.c}
        self.id: int = row["held_unit_id"]
        self.property_id: int = row["held_property_id"]
        self.status: unit_rules.UnitStatus | None = row["unit_status"]

    def shown(self, turn: Row) -> tuple[Any, ...]:
        """A transition of this unit as the columns of `queries.TURN_COLUMNS`."""
        return tuple(
            turn[column.name]
            if column.table is tables.transition
            else self._row[f"held_{column.table.name}_{column.name}"]
            for column in TURN_COLUMNS
        )

    def state(self, company_id: int, status: unit_rules.UnitStatus, turn: Row | None) -> Row | None:
        """The unit's row of unit_state once this transition is its active one; None where it stays."""
        ready_on = None if turn is None else turn["projected_ready_on"]
        if (status, ready_on) == (self.status, self._row["unit_ready_on"]):
            return None
        return {
            "company_id": company_id,
            "unit_id": self.id,
            "version": (self._row["state_version"] or 0) + 1,
            "unit_status": status,
            "projected_ready_on": ready_on,
        }


_unit_id, _turn_id = param("unit_id", BigInteger), param("turn_id", BigInteger)

_LOCK_UNIT = Statement(
    select(schema.unit.c.id)
    .where(*is_of([(schema.unit.c.company_id, _company_id)]), schema.unit.c.id == _unit_id)
    .with_for_update(key_share=True)
)
_LOOK = Statement(LOOK)


async def held_unit(connection: Connection, company_id: int, unit_id: int) -> HeldUnit | None:
    """The unit, locked before anything of it is read; None where it has not arrived."""
    await connection.execute(_LOCK_UNIT, company_id=company_id, unit_id=unit_id)
    row = await connection.row(_LOOK, company_id=company_id, unit_id=unit_id)
    return None if row is None else HeldUnit(row)


_STORED_TURN = Statement(
    select(tables.transition).where(tables.transition.c.company_id == _company_id, tables.transition.c.id == _turn_id)
)


async def stored_turn(connection: Connection | Database, company_id: int, turn_id: int) -> Record | None:
    """A whole transition."""
    return await connection.row(_STORED_TURN, company_id=company_id, turn_id=turn_id)


_of_unit, _by_id = stretch([(tables.transition.c.company_id, _company_id), (tables.transition.c.unit_id, _unit_id)], [])
NEWEST = Statement(
    select(tables.transition)
    .where(*_of_unit)
    .order_by(*(column.desc() for column in _by_id), tables.transition.c.id.desc())
    .limit(literal_column("1"))
)


async def newest_turn(connection: Connection, company_id: int, unit_id: int) -> Row | None:
    """The unit's transition of the highest id, whatever its status."""
    row = await connection.row(NEWEST, company_id=company_id, unit_id=unit_id)
    return None if row is None else dict(row)


# What the board changes of a turn.
_CHANGED = (
    "move_out_date",
    "projected_ready_on",
    "notice_external_id",
    "ntv_reason_code",
    "departure_destination_code",
    "notes",
    "vacated_on",
    "updated_at",
)
_SAVE_TURN = Statement(
    update(tables.transition)
    .where(tables.transition.c.company_id == _company_id, tables.transition.c.id == _turn_id)
    .values(
        {name: param(f"new_{name}", tables.transition.c[name].type) for name in _CHANGED}
        | {"version": tables.transition.c.version + literal_column("1")}
    )
)


async def save_turn(connection: Connection, turn: Row) -> None:
    """Stores what the board changes of a whole transition, as its next version."""
    values = {f"new_{name}": turn[name] for name in _CHANGED}
    await connection.execute(_SAVE_TURN, company_id=turn["company_id"], turn_id=turn["id"], **values)
