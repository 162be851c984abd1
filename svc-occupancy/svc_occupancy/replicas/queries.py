"""The SQL statements that read the replicas. The first parameter is the company."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Boolean, Table, func, literal_column, select, true
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.statements import TEXTS, Statement, param
from chassis.imports.importer import ExternalIds
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


_PROPERTY = Statement(
    select(true()).where(
        schema.property_.c.company_id == _company_id,
        schema.property_.c.id == param("property_id", BigInteger),
        schema.property_.c.version > 0,
    )
)


async def has_property(connection: Connection | Database, company_id: int, property_id: int) -> bool:
    """Whether the company's property has arrived."""
    return bool(await connection.value(_PROPERTY, company_id=company_id, property_id=property_id))


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


# Members of staff and vendors, whom work is assigned to.


class Person(NamedTuple):
    """A member of staff, or a vendor. on_hold: of a vendor that gets no new work."""

    name: str
    on_hold: bool


class People(NamedTuple):
    """Members of staff and vendors by id."""

    staff: Mapping[int, Person]
    vendors: Mapping[int, Person]


class NamedPeople(NamedTuple):
    """Members of staff and vendors by external_id, with `id`."""

    staff: Mapping[str, Record]
    vendors: Mapping[str, Record]


NOBODY = People({}, {})


def _by_id(table: Table) -> Statement:
    on_hold = table.c.get("on_hold", literal_column("false", Boolean).label("on_hold"))
    return Statement(
        select(table.c.id, table.c.name, on_hold).where(
            table.c.company_id == _company_id,
            table.c.id == func.any(param("ids", ARRAY(BigInteger))),
            table.c.version > 0,
        )
    )


_STAFF, _VENDORS = _by_id(schema.staff), _by_id(schema.vendor)
_STAFF_NAMED, _VENDORS_NAMED = (ExternalIds(table, replica=True) for table in (schema.staff, schema.vendor))


async def people(
    connection: Connection | Database, company_id: int, staff: Iterable[int | None], vendors: Iterable[int | None]
) -> People:
    """Those of the members of staff and vendors that have arrived. None among the ids does not count."""
    by_kind = []
    for statement, ids in ((_STAFF, staff), (_VENDORS, vendors)):
        distinct = sorted({record_id for record_id in ids if record_id is not None})
        rows = await connection.rows(statement, company_id=company_id, ids=distinct) if distinct else []
        by_kind.append({row["id"]: Person(row["name"], row["on_hold"]) for row in rows})
    return People(*by_kind)


async def lacking_people(
    database: Database, company_id: int, named: Mapping[str, Sequence[int]]
) -> dict[str, list[int]]:
    """The ids of `assignee_id` and `vendor_id` that the replicas lack, by field."""
    wanted_staff, wanted_vendors = named.get("assignee_id", ()), named.get("vendor_id", ())
    there = await people(database, company_id, wanted_staff, wanted_vendors)
    return {
        "assignee_id": [staff_id for staff_id in wanted_staff if staff_id not in there.staff],
        "vendor_id": [vendor_id for vendor_id in wanted_vendors if vendor_id not in there.vendors],
    }


async def named_people(
    database: Database, company_id: int, staff: Sequence[str], vendors: Sequence[str]
) -> NamedPeople:
    return NamedPeople(
        await _STAFF_NAMED.by_external_id(database, company_id, staff),
        await _VENDORS_NAMED.by_external_id(database, company_id, vendors),
    )
