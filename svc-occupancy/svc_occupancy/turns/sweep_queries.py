"""The SQL statements of what the clock does to units. What they cost grows with what is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany
from chassis.db.statements import TEXTS, Statement, param
from svc_occupancy import schema
from svc_occupancy.turns import tables
from svc_occupancy.units import tables as unit_tables

ROWS_AT_ONCE = 100  # units locked in one transaction

_IDS = ARRAY(sa.BigInteger)
_company_id, _day = param("company_id", sa.BigInteger), param("day", sa.Date)
_turn, _company, _state = tables.transition, schema.company, unit_tables.unit_state
# Companies whose clock goes on, as far as they are known.
_going_on = (_company.c.active, _company.c.version > sa.literal_column("0"))
# A literal, or the index of what is to be vacated would not serve.
_to_vacate = (_turn.c.status == sa.literal_column("'active'"), tables.leaves)

_TIMEZONES = Statement(sa.select(_company.c.timezone).where(*_going_on).distinct())


async def timezones(database: Database) -> list[str]:
    """Those in which companies are."""
    return [row["timezone"] for row in await database.rows(_TIMEZONES)]


def _to_leave() -> Statement:
    arrays = (param("timezones", TEXTS), param("days", ARRAY(sa.Date)))
    zone = sa.func.unnest(*arrays).table_valued("timezone", "day").render_derived(name="zone")
    of_company = _turn.c.company_id == _company.c.id
    probe = sa.select(_turn.c.id, _turn.c.unit_id).where(of_company, *_to_vacate, _turn.c.move_out_date < zone.c.day)
    rows = param("rows", sa.Integer)
    found = probe.order_by(_turn.c.move_out_date, _turn.c.id).limit(rows).lateral("found")
    return Statement(
        sa.select(_company.c.id.label("company_id"), zone.c.day, found.c.id, found.c.unit_id)
        .select_from(_company.join(zone, zone.c.timezone == _company.c.timezone).join(found, sa.true()))
        .where(*_going_on, _company.c.id >= param("first_company_id", sa.BigInteger))
        .order_by(_company.c.id)
        .limit(rows)
    )


TO_LEAVE = _to_leave()


async def to_leave(database: Database, first_company_id: int, days: Mapping[str, Any]) -> list[Record]:
    """Active turns whose move_out_date is before the day of their company's timezone, some at a time, by company:
    `company_id`, that `day`, `id` and `unit_id`. days: `timezones` and `days`, in the same order."""
    return await database.rows(TO_LEAVE, first_company_id=first_company_id, rows=ROWS_AT_ONCE, **days)


_LOCK_UNITS = Statement(
    sa.select(schema.unit.c.id)
    .where(schema.unit.c.id == sa.func.any(param("unit_ids", _IDS)))
    .order_by(schema.unit.c.id)
    .with_for_update(key_share=True)
)
_LEFT = Statement(
    sa.select(
        *(_turn.c[name] for name in ("company_id", "id", "unit_id", "version", "updated_at", "move_out_date")),
        _turn.c.projected_ready_on,
        _state.c.version.label("state_version"),
        _state.c.unit_status,
    )
    .select_from(
        _turn.outerjoin(_state, sa.and_(_state.c.company_id == _company_id, _state.c.unit_id == _turn.c.unit_id))
    )
    .where(
        _turn.c.company_id == _company_id,
        _turn.c.id == sa.func.any(param("turn_ids", _IDS)),
        *_to_vacate,
        _turn.c.move_out_date < _day,
    )
    .order_by(_turn.c.id)
)


async def left(
    connection: Connection, company_id: int, day: Any, turn_ids: Sequence[int], unit_ids: Sequence[int]
) -> list[Record]:
    """Those of the turns that are still due once their units are held, with what is known of the units."""
    await connection.execute(_LOCK_UNITS, unit_ids=unit_ids)
    return await connection.rows(_LEFT, company_id=company_id, day=day, turn_ids=turn_ids)


SAVE_LEFT = UpdateMany(_turn, ("vacated_on", "version", "updated_at"))
