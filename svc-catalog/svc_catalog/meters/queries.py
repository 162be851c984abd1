"""Every SQL statement on meters and readings, named for what it returns."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, DateTime, Integer, bindparam, insert, literal_column, select, true
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from chassis.imports.importer import ExternalIds, ImportTable
from chassis.lists.paging import ROWS_MAX, Pages
from svc_catalog.meters import tables as m
from svc_catalog.places import tables as t
from svc_catalog.selects import by_id, is_given, named, rows_of

# The columns of each served record, in the order in which `records_meters` takes them.
METER_COLUMNS: tuple[ColumnElement[Any], ...] = (
    m.meter.c.id,
    m.meter.c.name,
    m.meter.c.utility_type,
    m.meter.c.scope,
    m.meter.c.meter_number,
    m.meter.c.unit_of_measure,
    m.meter.c.is_active,
    t.property_.c.id,
    t.property_.c.name,
    t.property_.c.external_id,
    t.unit.c.id,
    t.unit.c.name,
    t.unit.c.external_id,
    m.meter.c.created_at,
    m.meter.c.updated_at,
    m.meter.c.external_id,
    m.meter.c.source,
    m.meter.c.version,
)
READING_COLUMNS = (
    "id",
    "meter_id",
    "period_start",
    "period_end",
    "consumption",
    "unit_of_measure",
    "cost",
    "is_estimated",
    "created_at",
    "external_id",
    "source",
)

_meters = rows_of(
    METER_COLUMNS,
    m.meter.join(t.property_, named(m.meter, "property_id", t.property_)).outerjoin(
        t.unit, named(m.meter, "unit_id", t.unit)
    ),
)
METERS_PAGE = Pages(
    _meters,
    m.meter.c.company_id,
    m.meter.c.id,
    {name: is_given(m.meter, name) for name in ("property_id", "unit_id")}
    | {"updated_since": m.meter.c.updated_at >= bindparam("updated_since", type_=DateTime(timezone=True))},
)
_METER = by_id(_meters, m.meter)


async def meter(database: Connection | Database, company_id: int, meter_id: int) -> Record | None:
    """A row of METER_COLUMNS."""
    return await database.row(_METER, company_id=company_id, entity_id=meter_id)


def _readings_page() -> Statement:
    """The meter, and beside it the page of its readings: a meter without any is one row of nulls.

    The longest page is cut by a literal first, as in `chassis.lists.paging`, which says why.
    """
    longest = (
        select(*(m.reading.c[name] for name in READING_COLUMNS))
        .where(
            m.reading.c.company_id == m.meter.c.company_id,
            m.reading.c.meter_id == m.meter.c.id,
            m.reading.c.id > bindparam("after_id", type_=BigInteger),
        )
        .order_by(m.reading.c.id)
        .limit(literal_column(str(ROWS_MAX + 1)))
        .correlate(m.meter)
        .subquery("longest")
    )
    shown = select(*longest.c).order_by(longest.c.id).limit(bindparam("rows", type_=Integer)).lateral("shown")
    return Statement(
        select(*shown.c)
        .select_from(m.meter.outerjoin(shown, true()))
        .where(
            m.meter.c.company_id == bindparam("company_id", type_=BigInteger),
            m.meter.c.id == bindparam("meter_id", type_=BigInteger),
        )
        .order_by(shown.c.id)
    )


READINGS_PAGE = _readings_page()


async def readings(
    database: Database, company_id: int, meter_id: int, after_id: int, limit: int
) -> list[Record] | None:
    """Up to limit + 1 rows of READING_COLUMNS, for `chassis.lists.paging.page`; None where there is no such meter."""
    rows = await database.rows(
        READINGS_PAGE, company_id=company_id, meter_id=meter_id, after_id=after_id, rows=min(limit, ROWS_MAX) + 1
    )
    if not rows:
        return None
    return [] if rows[0]["id"] is None else rows


METERS = ImportTable(
    m.meter,
    "property_id",
    "name",
    "utility_type",
    "scope",
    "unit_id",
    "meter_number",
    "unit_of_measure",
    "is_active",
    "created_at",
)
READINGS = ImportTable(
    m.reading,
    "meter_id",
    "period_start",
    "period_end",
    "consumption",
    "unit_of_measure",
    "cost",
    "is_estimated",
    "created_at",
)
_fresh = ("company_id", *(name for name in READING_COLUMNS if name != "id"))
_ADDED_READING = Statement(
    insert(m.reading)
    .values({name: param(name, m.reading.c[name].type) for name in _fresh})
    .returning(*(m.reading.c[name] for name in READING_COLUMNS))
)


async def added_reading(
    connection: Connection, company_id: int, values: Mapping[str, Any], at: datetime.datetime
) -> Record:
    """A row of READING_COLUMNS; columns without a value are null."""
    row: dict[str, Any] = {**dict.fromkeys(_fresh), **values, "company_id": company_id, "source": "staff"}
    found = await connection.row(_ADDED_READING, **{**row, "created_at": at})
    assert found is not None
    return found


METERS_NAMED = ExternalIds(m.meter, "unit_of_measure")
