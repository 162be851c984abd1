"""Every SQL statement on meters and readings, named for what it returns."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from asyncpg import Record
from sqlalchemy import BigInteger, DateTime, Integer, func, insert, literal_column, select, true, tuple_, update

from chassis.changes.documents import Documents
from chassis.changes.feed import Changes
from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany, UpdateMany, array_rows
from chassis.db.statements import TIME, Statement, param
from chassis.imports.importer import ExternalIds, ImportTable
from chassis.lists.paging import ROWS_MAX, Inside, Pages
from makeready.catalog.v1.meters_pb2 import ListMetersRequest
from svc_catalog.meters.records import METER, READING
from svc_catalog.meters.tables import meter, reading
from svc_catalog.places.tables import property_, unit
from svc_catalog.schema import IDS, PLACES, editable_columns
from svc_catalog.selects import by_id, equals_parameter, refers_to

_meters = METER.select(
    meter.join(property_, refers_to(meter, "property_id", property_)).outerjoin(unit, refers_to(meter, "unit_id", unit))
)
METER_DOCUMENTS = Documents(METER, _meters, meter)
METERS_PAGE = Pages(
    METER_DOCUMENTS.rows,
    meter.c.id,
    {name: equals_parameter(meter, name) for name in PLACES}
    | {"updated_since": meter.c.updated_at >= param("updated_since", DateTime(timezone=True))},
    places=PLACES,
    inside=[Inside("unit_id", "property_id", unit)],
    request=ListMetersRequest,
)
ONE_METER = by_id(_meters, meter)
METER_CHANGES = Changes("utility_meter", METER_DOCUMENTS)
# Of all meters.
READING_CHANGES = Changes("utility_reading", READING.select(reading), reading)


def _readings_page() -> Statement:
    """The meter, joined with a page of its readings: a meter without readings is one row of nulls.

    The inner query has a literal LIMIT, for the reason that `chassis.lists.paging` explains.
    """
    longest = (
        select(*READING.columns)
        .where(
            reading.c.company_id == meter.c.company_id,
            reading.c.meter_id == meter.c.id,
            reading.c.id > param("after_id", BigInteger),
        )
        .order_by(reading.c.id)
        .limit(literal_column(str(ROWS_MAX + 1)))
        .correlate(meter)
        .subquery("longest")
    )
    page = select(*longest.c).order_by(longest.c.id).limit(param("rows", Integer)).lateral("page")
    return Statement(
        select(*page.c)
        .select_from(meter.outerjoin(page, true()))
        .where(
            meter.c.company_id == param("company_id", BigInteger),
            meter.c.id == param("meter_id", BigInteger),
        )
        .order_by(page.c.id)
    )


READINGS_PAGE = _readings_page()


async def readings(
    database: Database, company_id: int, meter_id: int, after_id: int, limit: int
) -> list[Record] | None:
    """Up to limit + 1 rows of READING, for `chassis.lists.paging.page`; None if the meter does not exist."""
    rows = await database.rows(
        READINGS_PAGE, company_id=company_id, meter_id=meter_id, after_id=after_id, rows=min(limit, ROWS_MAX) + 1
    )
    if not rows:
        return None
    return [] if rows[0]["id"] is None else rows


def _all_readings_page() -> Statement:
    """A page in the order of the table's key: an order by id alone would need one more index on the largest table."""
    r = reading.c
    after = tuple_(param("after_meter_id", BigInteger), param("after_id", BigInteger))
    here = select(*READING.columns).where(
        r.company_id == param("company_id", BigInteger), tuple_(r.meter_id, r.id) > after
    )
    longest = here.order_by(r.meter_id, r.id).limit(literal_column(str(ROWS_MAX + 1))).subquery("longest")
    return Statement(select(*longest.c).order_by(longest.c.meter_id, longest.c.id).limit(param("rows", Integer)))


ALL_READINGS_PAGE = _all_readings_page()


async def readings_of_all_meters(
    database: Database, company_id: int, after_meter_id: int, after_id: int, limit: int
) -> list[Record]:
    """Up to limit + 1 rows of READING, ascending by meter and id."""
    after = {"after_meter_id": after_meter_id, "after_id": after_id}
    return await database.rows(ALL_READINGS_PAGE, company_id=company_id, rows=min(limit, ROWS_MAX) + 1, **after)


METERS = ImportTable(meter, *editable_columns(meter))
READINGS = ImportTable(reading, *editable_columns(reading))
# The meter's column that its readings take over.
METERS_NAMED = ExternalIds(meter, "unit_of_measure")

_NEW_READING = ("company_id", *READINGS.changeable, "external_id", "source")
_ADD_READING = Statement(
    insert(reading)
    .values({name: param(name, reading.c[name].type) for name in _NEW_READING})
    .returning(*READING.columns)
)


async def add_reading(
    connection: Connection, company_id: int, values: Mapping[str, object], at: datetime.datetime
) -> Record:
    """Inserts a reading and returns a row of READING; columns without a value are null."""
    row: dict[str, object] = {**dict.fromkeys(_NEW_READING), **values, "company_id": company_id, "source": "staff"}
    stored = await connection.row(_ADD_READING, **{**row, "created_at": at})
    assert stored is not None
    return stored


# Readings by their periods, for integrations.

Period = tuple[datetime.datetime, datetime.datetime]
_of_meter = (
    reading.c.company_id == param("company_id", BigInteger),
    reading.c.meter_id == param("meter_id", BigInteger),
)


def _ids_of_periods() -> Statement:
    periods = array_rows("periods", {"period_start": TIME, "period_end": TIME})
    newest = (
        select(reading.c.id)
        .where(
            *_of_meter,
            reading.c.period_start == periods.c.period_start,
            reading.c.period_end == periods.c.period_end,
        )
        .order_by(reading.c.id.desc())
        .limit(literal_column("1"))
        .lateral("newest")
    )
    return Statement(select(newest.c.id).select_from(periods.join(newest, true())))


IDS_OF_PERIODS = _ids_of_periods()
# In the order in which an import locks readings too.
_LOCKED_READINGS = Statement(
    select(*READING.columns)
    .where(*_of_meter, reading.c.id == func.any(param("ids", IDS)))
    .order_by(reading.c.id)
    .with_for_update()
)
_INSERT_READINGS = InsertMany(reading, _NEW_READING, reading.c.id, reading.c.period_start, reading.c.period_end)
_VALUES = ("consumption", "unit_of_measure", "cost", "is_estimated")
_UPDATE_READINGS = UpdateMany(reading, _VALUES)


async def readings_of_periods(
    connection: Connection, company_id: int, meter_id: int, periods: Sequence[Period]
) -> dict[Period, Record]:
    """The meter's newest reading of each period, a row of READING, locked for a change."""
    starts, ends = map(list, zip(*periods, strict=True))
    key = {"company_id": company_id, "meter_id": meter_id}
    ids = [row["id"] for row in await connection.rows(IDS_OF_PERIODS, **key, period_start=starts, period_end=ends)]
    rows = await connection.rows(_LOCKED_READINGS, **key, ids=ids) if ids else []
    return {(row["period_start"], row["period_end"]): row for row in rows}


async def add_readings(connection: Connection, rows: Sequence[Mapping[str, object]]) -> dict[Period, int]:
    """Inserts readings, the earliest first; returns their ids."""
    ordered = sorted(rows, key=lambda row: (row["period_start"], row["period_end"]))
    stored = await _INSERT_READINGS.run(connection, ordered)
    return {(row["period_start"], row["period_end"]): row["id"] for row in stored}


async def change_readings(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """Saves the values of readings that are locked."""
    await _UPDATE_READINGS.run(connection, rows)


_SAME_READING = (
    reading.c.company_id == param("company_id", BigInteger),
    reading.c.meter_id == param("meter_id", BigInteger),
    reading.c.id == param("id", BigInteger),
)
_CORRECTABLE = ("external_id", *(name for name in READINGS.changeable if name not in ("meter_id", "created_at")))
_LOCKED_READING = Statement(select(*READING.columns).where(*_SAME_READING).with_for_update())
_SAVE_READING = Statement(
    update(reading)
    .where(*_SAME_READING)
    .values({name: param(f"new_{name}", reading.c[name].type) for name in _CORRECTABLE})
    .returning(*READING.columns)
)


async def locked_reading(connection: Connection, company_id: int, meter_id: int, reading_id: int) -> Record | None:
    """A row of READING, locked for a correction; None if the meter has no such reading."""
    return await connection.row(_LOCKED_READING, company_id=company_id, meter_id=meter_id, id=reading_id)


async def save_reading(connection: Connection, company_id: int, row: Mapping[str, object]) -> Record:
    """Saves a reading that is locked, and returns its row of READING. row: the whole reading, as it is to be."""
    values = {f"new_{name}": row[name] for name in _CORRECTABLE}
    key = {"company_id": company_id, "meter_id": row["meter_id"], "id": row["id"]}
    stored = await connection.row(_SAVE_READING, **key, **values)
    assert stored is not None
    return stored
