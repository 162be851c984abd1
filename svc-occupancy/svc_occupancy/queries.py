"""Every SQL statement of svc-occupancy's reads, named for what it returns. The company comes first in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.statements import TIME, Statement, param
from chassis.lists.paging import Pages
from svc_occupancy import rules
from svc_occupancy import tables as t

# The columns of a served turn, in the order in which `records.Links.turn` takes them.
TURN_COLUMNS: tuple[ColumnElement[Any], ...] = (
    t.transition.c.id,
    t.transition.c.status,
    t.property_.c.id,
    t.property_.c.name,
    t.property_.c.external_id,
    t.unit.c.id,
    t.unit.c.name,
    t.unit.c.external_id,
    t.transition.c.move_out_date,
    t.transition.c.move_in_date,
    t.transition.c.projected_ready_on,
    t.transition.c.occupancy_source,
    t.transition.c.occupancy_fed_at,
    t.transition.c.created_at,
    t.transition.c.updated_at,
    t.transition.c.external_id,
    t.transition.c.source,
    t.transition.c.version,
)

_turns = select(*(column.label(f"c{index}") for index, column in enumerate(TURN_COLUMNS))).select_from(
    t.transition.join(t.property_, t.property_.c.id == t.transition.c.property_id).join(
        t.unit, t.unit.c.id == t.transition.c.unit_id
    )
)


def _is(column: str) -> ColumnElement[bool]:
    return t.transition.c[column] == param(column, t.transition.c[column].type)


TURNS_PAGE = Pages(
    _turns,
    t.transition.c.company_id,
    t.transition.c.id,
    {name: _is(name) for name in ("property_id", "unit_id", "status")}
    | {"updated_since": t.transition.c.updated_at >= param("updated_since", TIME)},
    statuses=rules.TRANSITION_STATUSES,
)

_TURN = Statement(_turns.where(_is("company_id"), t.transition.c.id == param("turn_id", BigInteger)))


async def turn(database: Database, company_id: int, turn_id: int) -> Record | None:
    """A row of TURN_COLUMNS."""
    return await database.row(_TURN, company_id=company_id, turn_id=turn_id)


_TURNS = Statement(_turns.where(_is("company_id"), t.transition.c.id == func.any(param("turn_ids", ARRAY(BigInteger)))))


async def turns(connection: Connection, company_id: int, turn_ids: Sequence[int]) -> list[Record]:
    """Rows of TURN_COLUMNS, in any order."""
    return await connection.rows(_TURNS, company_id=company_id, turn_ids=turn_ids) if turn_ids else []
