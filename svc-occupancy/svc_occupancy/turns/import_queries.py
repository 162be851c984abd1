"""The SQL statements of an import of turns. Their number does not depend on the batch's size."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Text, and_, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection
from chassis.db.rows import UpdateMany, array_rows
from chassis.db.statements import Query, Statement, param
from chassis.imports.importer import ImportTable
from svc_occupancy.turns import tables
from svc_occupancy.turns.queries import planned_in
from svc_occupancy.units import tables as unit_tables
from svc_occupancy.units.rules import ActiveTurn, UnitState, UnitStatus

_IDS = ARRAY(BigInteger)
_company_id = param("company_id", BigInteger)

TURNS = ImportTable(
    tables.transition,
    "property_id",
    "unit_id",
    "status",
    "move_out_date",
    "move_in_date",
    "projected_ready_on",
    "occupancy_source",
    "occupancy_fed_at",
    "created_at",
    "vacated_on",
    "has_begun",
    "predecessor_id",
    "planned_version",
)


def _turns_named() -> Statement:
    named = array_rows("named", {"external_id": Text(), "unit_id": BigInteger()})
    each = tables.transition.alias("each")
    newest = (
        select(each.c.id)
        .where(each.c.company_id == _company_id, each.c.external_id == named.c.external_id)
        .order_by(each.c.id.desc())
        .limit(literal_column("1"))
    )
    # Literals, so that PostgreSQL can use the partial index of each.
    filed = newest.where(each.c.source == literal_column("'import'")).correlate(named).scalar_subquery()
    fed = newest.where(each.c.source != literal_column("'import'"), each.c.unit_id == named.c.unit_id)
    ids = select(named.c.external_id, func.coalesce(filed, fed.correlate(named).scalar_subquery()).label("id"))
    turns = ids.offset(literal_column("0")).subquery("turns")
    turn = tables.transition
    columns = (turn.c[name] for name in ("id", "external_id", "version", "updated_at", *TURNS.changeable))
    here = and_(turn.c.company_id == _company_id, turn.c.id == turns.c.id)
    return Statement(select(*columns).select_from(turns.join(turn, here)))


TURNS_NAMED = _turns_named()


async def turns_named(connection: Connection, company_id: int, unit_ids: Mapping[str, int]) -> dict[str, Record]:
    """The stored turns that a file's rows refer to, by external_id. unit_ids: the unit of each row.

    A row refers to the imported turn with its external_id, else to the newest turn from a feed with it in that unit.
    The turns need no lock: the caller holds the rows' units, and rejects a row whose turn is in another unit.
    """
    names, units = list(unit_ids), list(unit_ids.values())
    rows = await connection.rows(TURNS_NAMED, company_id=company_id, external_id=names, unit_id=units)
    return {row["external_id"]: row for row in rows}


class UnitBefore(NamedTuple):
    """A unit before the batch: the newest of its turns that have begun, its current turn and its state; null if it has
    none."""

    unit_id: int
    newest_id: int | None
    current_id: int | None
    move_out_date: datetime.date | None
    projected_ready_on: datetime.date | None
    version: int | None
    unit_status: UnitStatus | None
    unit_ready_on: datetime.date | None

    @property
    def current(self) -> ActiveTurn | None:
        if self.current_id is None:
            return None
        return ActiveTurn(self.current_id, self.move_out_date, self.projected_ready_on)

    def state(self, company_id: int) -> UnitState:
        return UnitState(company_id, self.unit_id, self.version or 0, self.unit_status, self.unit_ready_on)


def _units_before() -> Query[UnitBefore]:
    named = array_rows("named", {"id": BigInteger()}, prefix="unit_")
    current = tables.transition.alias("current")
    turn = tables.transition
    newest = (
        select(turn.c.id)
        .where(turn.c.company_id == _company_id, turn.c.unit_id == named.c.id, turn.c.has_begun)
        .order_by(turn.c.id.desc())
        .limit(literal_column("1"))
        .scalar_subquery()
    )
    here = and_(current.c.company_id == _company_id, current.c.unit_id == named.c.id, tables.begun(current))
    state = and_(unit_tables.unit_state.c.company_id == _company_id, unit_tables.unit_state.c.unit_id == named.c.id)
    return Query(
        UnitBefore,
        select(
            named.c.id.label("unit_id"),
            newest.label("newest_id"),
            current.c.id.label("current_id"),
            current.c.move_out_date,
            current.c.projected_ready_on,
            unit_tables.unit_state.c.version,
            unit_tables.unit_state.c.unit_status,
            unit_tables.unit_state.c.projected_ready_on.label("unit_ready_on"),
        ).select_from(named.outerjoin(current, here).outerjoin(unit_tables.unit_state, state)),
    )


_UNITS_BEFORE = _units_before()


async def units_before(connection: Connection, company_id: int, unit_ids: Iterable[int]) -> list[UnitBefore]:
    return await _UNITS_BEFORE.rows(connection, company_id=company_id, unit_id=sorted(unit_ids))


class InRow(NamedTuple):
    """A planned turn with its place in its unit's row."""

    unit_id: int
    turn_id: int
    move_in_date: datetime.date
    predecessor_id: int | None


def _planned() -> Query[InRow]:
    named = array_rows("named", {"id": BigInteger()}, prefix="unit_")
    turn = tables.transition
    here = and_(*planned_in(turn, _company_id, named.c.id))
    return Query(
        InRow,
        select(named.c.id.label("unit_id"), turn.c.id.label("turn_id"), turn.c.move_in_date, turn.c.predecessor_id)
        .select_from(named.join(turn, here))
        .order_by(named.c.id, turn.c.move_in_date, turn.c.id),
    )


PLANNED = _planned()
_PUT_BEHIND = UpdateMany(tables.transition, ("predecessor_id",))


async def planned_turns(connection: Connection, company_id: int, unit_ids: Iterable[int]) -> list[InRow]:
    """The planned turns of these units by unit and by move-in date."""
    return await PLANNED.rows(connection, company_id=company_id, unit_id=sorted(unit_ids))


async def put_behind(connection: Connection, company_id: int, predecessors: Mapping[int, int | None]) -> None:
    """Puts planned turns behind others. predecessors: the turn before each, by the turn's id.

    First behind none, because a turn has one successor, and the index checks every single row.
    """
    rows = [{"company_id": company_id, "id": turn_id, "predecessor_id": None} for turn_id in predecessors]
    await _PUT_BEHIND.run(connection, rows)
    rows = [
        {"company_id": company_id, "id": turn_id, "predecessor_id": predecessor_id}
        for turn_id, predecessor_id in predecessors.items()
    ]
    await _PUT_BEHIND.run(connection, rows)


_CLOSE = Statement(
    update(tables.transition)
    .where(tables.transition.c.company_id == _company_id, tables.transition.c.id == func.any(param("turn_ids", _IDS)))
    .values(status=literal_column("'completed'"))
)


async def close(connection: Connection, company_id: int, turn_ids: Sequence[int]) -> None:
    """Completes turns before the batch stores their successors, as a unit can have only one current turn.

    The batch then stores all values of the completed turns too.
    """
    if turn_ids:
        await connection.execute(_CLOSE, company_id=company_id, turn_ids=turn_ids)
