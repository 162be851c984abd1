"""The SQL statements that read the replicas. The first parameter is the company."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from asyncpg import Record
from sqlalchemy import BigInteger, func, select

from chassis.db.database import Connection, Database
from chassis.db.statements import TEXTS, Statement, param
from chassis.schedule import instants
from chassis.schedule.clocks import CompanyClocks
from svc_occupancy import schema

_company_id = param("company_id", BigInteger)

# Only units that have arrived, in properties that have arrived.
_units = (
    select(schema.unit.c.id, schema.unit.c.external_id, schema.unit.c.property_id)
    .join_from(schema.unit, schema.property_, schema.property_.c.id == schema.unit.c.property_id)
    .where(
        schema.unit.c.company_id == _company_id,
        schema.unit.c.external_id == func.any(param("external_ids", TEXTS)),
        schema.unit.c.version > 0,
        schema.property_.c.version > 0,
    )
    .order_by(schema.unit.c.id)
)
_UNITS = Statement(_units)
_UNITS_LOCKED = Statement(_units.with_for_update(of=schema.unit, key_share=True))
_TIMEZONE = Statement(
    select(schema.company.c.timezone).where(schema.company.c.id == _company_id, schema.company.c.version > 0)
)


async def units(database: Database, company_id: int, external_ids: Sequence[str]) -> dict[str, Record]:
    """The replica's units by external_id, with `id` and `property_id`."""
    rows = await database.rows(_UNITS, company_id=company_id, external_ids=external_ids)
    return {row["external_id"]: row for row in rows}


async def units_for_update(connection: Connection, company_id: int, external_ids: Sequence[str]) -> dict[str, Record]:
    """Like `units`, locked: a transaction locks a unit before it changes the unit's turns."""
    rows = await connection.rows(_UNITS_LOCKED, company_id=company_id, external_ids=external_ids)
    return {row["external_id"]: row for row in rows}


async def timezone(connection: Connection | Database, company_id: int) -> str | None:
    """The company's timezone; None if the company has not arrived."""
    timezone: str | None = await connection.value(_TIMEZONE, company_id=company_id)
    return timezone


_WALL_CLOCK = Statement(
    select(schema.company.c.timezone, schema.company.c.clock_offset).where(
        schema.company.c.id == _company_id, schema.company.c.version > 0
    )
)


async def today(connection: Connection | Database, company_id: int, clocks: CompanyClocks) -> datetime.date:
    """The present day by the company's wall clock; by UTC if the company has not arrived."""
    row = await connection.row(_WALL_CLOCK, company_id=company_id)
    offset, zone = (None, "UTC") if row is None else (row["clock_offset"], row["timezone"])
    return instants.local_date(clocks.ahead_by(offset)(), zone)
