"""The SQL statements of the turn board. The first parameter is the company."""

from __future__ import annotations

from sqlalchemy import BigInteger, Integer, Select, and_, func, literal_column, select, true
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, param
from chassis.lists.updated_since import stretch
from svc_occupancy import schema
from svc_occupancy.board.records import BoardUnit
from svc_occupancy.turn_tasks import tables as task_tables
from svc_occupancy.turns import tables as turn_tables
from svc_occupancy.units import tables as unit_tables

_company_id = param("company_id", BigInteger)

_ACTIVE: ColumnElement[str] = literal_column("'active'")  # a literal: the index of active turns is partial


def _board(place: ColumnElement[int] | None, *conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    unit, turn, state, task = schema.unit, turn_tables.transition, unit_tables.unit_state, task_tables.turn_task
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
            schema.property_.c.id.label("property_id"),
            schema.property_.c.name.label("property"),
            state.c.unit_status,
            turn.c.id.label("turn_id"),
            turn.c.move_in_date,
            turn.c.move_out_date,
            turn.c.projected_ready_on,
            left.c.tasks_open,
        )
        .select_from(
            wanted.join(schema.property_, schema.property_.c.id == wanted.c.property_id)
            .outerjoin(turn, active)
            .outerjoin(state, known)
            .outerjoin(left, true())
        )
        .order_by(wanted.c.id)
    )


BOARD = Query(BoardUnit, _board(None))
BOARD_OF_PROPERTY = Query(BoardUnit, _board(param("property_id", BigInteger)))


async def board(
    connection: Connection | Database, company_id: int, first_id: int, rows: int, property_id: int | None = None
) -> list[BoardUnit]:
    """Units with ids from first_id on, of one property or of all."""
    if property_id is None:
        return await BOARD.rows(connection, company_id=company_id, first_id=first_id, rows=rows)
    return await BOARD_OF_PROPERTY.rows(
        connection, company_id=company_id, first_id=first_id, rows=rows, property_id=property_id
    )
