"""The SQL statements of the turn board. The company comes first in each."""

from __future__ import annotations

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, Select, and_, func, literal_column, select, true, update
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from chassis.lists.updated_since import is_of, stretch
from svc_occupancy import queries_residencies as residencies
from svc_occupancy import tables as t
from svc_occupancy.units import HeldUnit, Row

_company_id = param("company_id", BigInteger)
_unit_id, _turn_id = param("unit_id", BigInteger), param("turn_id", BigInteger)
_ACTIVE: ColumnElement[str] = literal_column("'active'")  # a literal, or the index of active turns would not serve

_LOCK_UNIT = Statement(
    select(t.unit.c.id)
    .where(*is_of([(t.unit.c.company_id, _company_id)]), t.unit.c.id == _unit_id)
    .with_for_update(key_share=True)
)
_LOOK = Statement(residencies.LOOK)


async def held_unit(connection: Connection, company_id: int, unit_id: int) -> HeldUnit | None:
    """The unit, locked before anything of it is read; None where it has not arrived."""
    await connection.execute(_LOCK_UNIT, company_id=company_id, unit_id=unit_id)
    row = await connection.row(_LOOK, company_id=company_id, unit_id=unit_id)
    return None if row is None else HeldUnit(row)


_TURN = Statement(select(t.transition).where(t.transition.c.company_id == _company_id, t.transition.c.id == _turn_id))


async def turn(connection: Connection | Database, company_id: int, turn_id: int) -> Record | None:
    """A whole transition."""
    return await connection.row(_TURN, company_id=company_id, turn_id=turn_id)


_of_unit, _by_id = stretch([(t.transition.c.company_id, _company_id), (t.transition.c.unit_id, _unit_id)], [])
NEWEST = Statement(
    select(t.transition)
    .where(*_of_unit)
    .order_by(*(column.desc() for column in _by_id), t.transition.c.id.desc())
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
    update(t.transition)
    .where(t.transition.c.company_id == _company_id, t.transition.c.id == _turn_id)
    .values(
        {name: param(f"new_{name}", t.transition.c[name].type) for name in _CHANGED}
        | {"version": t.transition.c.version + literal_column("1")}
    )
)


async def save_turn(connection: Connection, turn: Row) -> None:
    """Stores what the board changes of a whole transition, as its next version."""
    values = {f"new_{name}": turn[name] for name in _CHANGED}
    await connection.execute(_SAVE_TURN, company_id=turn["company_id"], turn_id=turn["id"], **values)


def _board(place: ColumnElement[int] | None, *conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    unit, turn, state, task = t.unit, t.transition, t.unit_state, t.turn_task
    having = [(unit.c.company_id, _company_id)] + ([] if place is None else [(unit.c.property_id, place)])
    stretched, order = stretch(having, [(unit.c.id, param("first_id", BigInteger))])
    units = select(unit).where(unit.c.version > 0, *stretched, *conditions)
    units = units.order_by(*order).limit(param("rows", Integer))
    wanted = units.subquery("wanted")
    active = and_(turn.c.company_id == _company_id, turn.c.unit_id == wanted.c.id, turn.c.status == _ACTIVE)
    known = and_(state.c.company_id == _company_id, state.c.unit_id == wanted.c.id)
    is_open = task.c.status == literal_column("'open'")
    of_unit = and_(task.c.company_id == _company_id, task.c.unit_id == wanted.c.id, is_open)
    left = select(func.count().label("tasks_open")).where(of_unit).correlate(wanted).lateral("left_to_do")
    return (
        select(
            wanted.c.id.label("unit_id"),
            wanted.c.name,
            t.property_.c.id.label("property_id"),
            t.property_.c.name.label("property"),
            state.c.unit_status,
            turn.c.id.label("turn_id"),
            turn.c.move_in_date,
            turn.c.move_out_date,
            turn.c.projected_ready_on,
            left.c.tasks_open,
        )
        .select_from(
            wanted.join(t.property_, t.property_.c.id == wanted.c.property_id)
            .outerjoin(turn, active)
            .outerjoin(state, known)
            .outerjoin(left, true())
        )
        .order_by(wanted.c.id)
    )


BOARD = Statement(_board(None))
BOARD_OF_PROPERTY = Statement(_board(param("property_id", BigInteger)))


async def board(
    connection: Connection | Database, company_id: int, first_id: int, rows: int, property_id: int | None = None
) -> list[Record]:
    """Units from an id on, of one property or of all: the fields of a BoardUnit."""
    if property_id is None:
        return await connection.rows(BOARD, company_id=company_id, first_id=first_id, rows=rows)
    return await connection.rows(
        BOARD_OF_PROPERTY, company_id=company_id, first_id=first_id, rows=rows, property_id=property_id
    )
