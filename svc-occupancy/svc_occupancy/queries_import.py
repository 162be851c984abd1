"""The SQL statements of an import of turns: a batch is a handful of statements, whatever its size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, and_, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany, turned
from chassis.db.statements import TEXTS, Statement, param
from chassis.imports.importer import ImportTable
from svc_occupancy import tables as t
from svc_occupancy.units import STATE_NAMES, put_states

_IDS = ARRAY(BigInteger)
_company_id = param("company_id", BigInteger)

TURNS = ImportTable(
    t.transition,
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

INSERT_EVENTS = InsertMany(t.outbox, ("event_id", "subject", "message"))

# Units that have arrived, in properties that have.
_units = (
    select(t.unit.c.id, t.unit.c.external_id, t.unit.c.property_id)
    .join_from(t.unit, t.property_, t.property_.c.id == t.unit.c.property_id)
    .where(
        t.unit.c.company_id == _company_id,
        t.unit.c.external_id == func.any(param("external_ids", TEXTS)),
        t.unit.c.version > 0,
        t.property_.c.version > 0,
    )
    .order_by(t.unit.c.id)
)
_UNITS = Statement(_units)
_UNITS_LOCKED = Statement(_units.with_for_update(of=t.unit, key_share=True))
_TIMEZONE = Statement(select(t.company.c.timezone).where(t.company.c.id == _company_id, t.company.c.version > 0))


async def units(database: Database, company_id: int, external_ids: Sequence[str]) -> dict[str, Record]:
    """The units of the replica, by external_id: `id` and `property_id`."""
    rows = await database.rows(_UNITS, company_id=company_id, external_ids=external_ids)
    return {row["external_id"]: row for row in rows}


async def units_for_update(connection: Connection, company_id: int, external_ids: Sequence[str]) -> dict[str, Record]:
    """The same, locked: whoever changes a unit's turns holds the unit first."""
    rows = await connection.rows(_UNITS_LOCKED, company_id=company_id, external_ids=external_ids)
    return {row["external_id"]: row for row in rows}


async def timezone(connection: Connection | Database, company_id: int) -> str | None:
    """The company's; None where the company has not arrived."""
    found: str | None = await connection.value(_TIMEZONE, company_id=company_id)
    return found


def _turns_named() -> Statement:
    rows: Any = func.unnest(param("external_ids", TEXTS), param("unit_ids", _IDS))
    named = rows.table_valued("external_id", "unit_id").render_derived(name="named")
    each = t.transition.alias("each")
    one = (
        select(each.c.id)
        .where(each.c.company_id == _company_id, each.c.external_id == named.c.external_id)
        .order_by(each.c.id.desc())
        .limit(literal_column("1"))
    )
    # Literals, for each of them has an index of its own.
    filed = one.where(each.c.source == literal_column("'import'")).correlate(named).scalar_subquery()
    fed = one.where(each.c.source != literal_column("'import'"), each.c.unit_id == named.c.unit_id)
    found = select(named.c.external_id, func.coalesce(filed, fed.correlate(named).scalar_subquery()).label("id"))
    wanted = found.offset(literal_column("0")).subquery("wanted")
    turn = t.transition
    columns = (turn.c[name] for name in ("id", "external_id", "version", "updated_at", *TURNS.changeable))
    here = and_(turn.c.company_id == _company_id, turn.c.id == wanted.c.id)
    return Statement(select(*columns).select_from(wanted.join(turn, here)))


TURNS_NAMED = _turns_named()


async def turns_named(connection: Connection, company_id: int, unit_ids: Mapping[str, int]) -> dict[str, Record]:
    """The turns that a file's rows mean, by external_id; unit_ids: the unit that each row names.

    A row means the turn that a file made under its external_id, else the newest one of its unit that a feed made under
    it. They are not locked: whoever changes a unit's turns holds the unit, and a row of another unit is rejected.
    """
    names, units = list(unit_ids), list(unit_ids.values())
    rows = await connection.rows(TURNS_NAMED, company_id=company_id, external_ids=names, unit_ids=units)
    return {row["external_id"]: row for row in rows}


def _states() -> Statement:
    named = func.unnest(param("unit_ids", _IDS)).table_valued("id").render_derived(name="named")
    active = t.transition.alias("active")
    newest = (
        select(func.max(t.transition.c.id))
        .where(t.transition.c.company_id == _company_id, t.transition.c.unit_id == named.c.id)
        .scalar_subquery()
    )
    here = and_(
        active.c.company_id == _company_id,
        active.c.unit_id == named.c.id,
        # A literal, or the index of active turns would not serve.
        active.c.status == literal_column("'active'"),
    )
    state = and_(t.unit_state.c.company_id == _company_id, t.unit_state.c.unit_id == named.c.id)
    return Statement(
        select(
            named.c.id.label("unit_id"),
            newest.label("newest_id"),
            active.c.id.label("active_id"),
            active.c.move_out_date,
            active.c.projected_ready_on,
            t.unit_state.c.version,
            t.unit_state.c.unit_status,
            t.unit_state.c.projected_ready_on.label("unit_ready_on"),
        ).select_from(named.outerjoin(active, here).outerjoin(t.unit_state, state))
    )


_STATES = _states()


async def states(connection: Connection, company_id: int, unit_ids: Iterable[int]) -> dict[int, Record]:
    """Each unit's active turn, its newest one, and its state; null where it has none."""
    rows = await connection.rows(_STATES, company_id=company_id, unit_ids=sorted(unit_ids))
    return {row["unit_id"]: row for row in rows}


_CLOSE = Statement(
    update(t.transition)
    .where(t.transition.c.company_id == _company_id, t.transition.c.id == func.any(param("turn_ids", _IDS)))
    .values(status=literal_column("'completed'"))
)


async def close(connection: Connection, company_id: int, turn_ids: Sequence[int]) -> None:
    """Makes room for their units' next active turns, before those are stored; what they become is stored with them."""
    if turn_ids:
        await connection.execute(_CLOSE, company_id=company_id, turn_ids=turn_ids)


_SAVE_STATES = Statement(put_states())


async def save_states(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Stores whole rows of unit_state."""
    if rows:
        await connection.execute(_SAVE_STATES, **turned(rows, STATE_NAMES))
