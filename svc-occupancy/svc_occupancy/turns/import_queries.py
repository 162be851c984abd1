"""The SQL statements of an import of turns. Their number does not depend on the batch's size."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Text, and_, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection
from chassis.db.rows import array_rows
from chassis.db.statements import Query, Statement, param
from chassis.imports.importer import ImportTable
from svc_occupancy.turns import tables
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
)


def _turns_named() -> Statement:
    named = array_rows("named", {"external_id": Text(), "unit_id": BigInteger()})
    each = tables.transition.alias("each")
    one = (
        select(each.c.id)
        .where(each.c.company_id == _company_id, each.c.external_id == named.c.external_id)
        .order_by(each.c.id.desc())
        .limit(literal_column("1"))
    )
    # Literals, so that PostgreSQL can use the partial index of each.
    filed = one.where(each.c.source == literal_column("'import'")).correlate(named).scalar_subquery()
    fed = one.where(each.c.source != literal_column("'import'"), each.c.unit_id == named.c.unit_id)
    found = select(named.c.external_id, func.coalesce(filed, fed.correlate(named).scalar_subquery()).label("id"))
    wanted = found.offset(literal_column("0")).subquery("wanted")
    turn = tables.transition
    columns = (turn.c[name] for name in ("id", "external_id", "version", "updated_at", *TURNS.changeable))
    here = and_(turn.c.company_id == _company_id, turn.c.id == wanted.c.id)
    return Statement(select(*columns).select_from(wanted.join(turn, here)))


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
    """A unit before the batch: its newest turn, its active turn and its state; null if it has none."""

    unit_id: int
    newest_id: int | None
    active_id: int | None
    move_out_date: datetime.date | None
    projected_ready_on: datetime.date | None
    version: int | None
    unit_status: UnitStatus | None
    unit_ready_on: datetime.date | None

    @property
    def active(self) -> ActiveTurn | None:
        if self.active_id is None:
            return None
        return ActiveTurn(self.active_id, self.move_out_date, self.projected_ready_on)

    def state(self, company_id: int) -> UnitState:
        return UnitState(company_id, self.unit_id, self.version or 0, self.unit_status, self.unit_ready_on)


def _units_before() -> Query[UnitBefore]:
    named = array_rows("named", {"id": BigInteger()}, prefix="unit_")
    active = tables.transition.alias("active")
    newest = (
        select(func.max(tables.transition.c.id))
        .where(tables.transition.c.company_id == _company_id, tables.transition.c.unit_id == named.c.id)
        .scalar_subquery()
    )
    here = and_(
        active.c.company_id == _company_id,
        active.c.unit_id == named.c.id,
        # A literal, so that PostgreSQL can use the partial index of active turns.
        active.c.status == literal_column("'active'"),
    )
    state = and_(unit_tables.unit_state.c.company_id == _company_id, unit_tables.unit_state.c.unit_id == named.c.id)
    return Query(
        UnitBefore,
        select(
            named.c.id.label("unit_id"),
            newest.label("newest_id"),
            active.c.id.label("active_id"),
            active.c.move_out_date,
            active.c.projected_ready_on,
            unit_tables.unit_state.c.version,
            unit_tables.unit_state.c.unit_status,
            unit_tables.unit_state.c.projected_ready_on.label("unit_ready_on"),
        ).select_from(named.outerjoin(active, here).outerjoin(unit_tables.unit_state, state)),
    )


_UNITS_BEFORE = _units_before()


async def units_before(connection: Connection, company_id: int, unit_ids: Iterable[int]) -> list[UnitBefore]:
    return await _UNITS_BEFORE.rows(connection, company_id=company_id, unit_id=sorted(unit_ids))


_CLOSE = Statement(
    update(tables.transition)
    .where(tables.transition.c.company_id == _company_id, tables.transition.c.id == func.any(param("turn_ids", _IDS)))
    .values(status=literal_column("'completed'"))
)


async def close(connection: Connection, company_id: int, turn_ids: Sequence[int]) -> None:
    """Completes turns before the batch stores their successors, as a unit can have only one active turn.

    The batch then stores all values of the completed turns too.
    """
    if turn_ids:
        await connection.execute(_CLOSE, company_id=company_id, turn_ids=turn_ids)
