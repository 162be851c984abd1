"""Every SQL statement about inspections, named for what it returns. The first parameter is the company."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Text, delete, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement

from chassis.changes.documents import Documents
from chassis.changes.feed import Changes
from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany, UpdateMany, array_rows_of
from chassis.db.statements import Expression, Query, Statement, param
from chassis.imports.importer import ImportTable
from chassis.lists.paging import Inside, Pages
from makeready.catalog.v1.inspections_pb2 import ListInspectionsRequest
from svc_catalog.inspections import rules
from svc_catalog.inspections.records import INSPECTION
from svc_catalog.inspections.tables import (
    FOR_PEOPLE,
    MAY_BECOME_STALE,
    SERVED,
    inspection,
    inspection_number,
    inspection_row,
)
from svc_catalog.places.tables import property_, unit
from svc_catalog.schema import PLACES, editable_columns, staff
from svc_catalog.selects import by_id, equals_parameter, refers_to

_company_id, _inspection_id = param("company_id", BigInteger), param("inspection_id", BigInteger)

_inspections = INSPECTION.select(
    inspection.join(property_, refers_to(inspection, "property_id", property_))
    .outerjoin(unit, refers_to(inspection, "unit_id", unit))
    .outerjoin(staff, refers_to(inspection, "assignee_id", staff))
)
_served = _inspections.where(SERVED)

INSPECTION_DOCUMENTS = Documents(INSPECTION, _inspections, inspection)
INSPECTIONS_PAGE = Pages(
    INSPECTION_DOCUMENTS.rows,
    inspection.c.id,
    {name: equals_parameter(inspection, name) for name in PLACES}
    | {"status": inspection.c.published_status == param("status", Text)},
    SERVED,
    rules.INSPECTION_STATUSES,
    places=PLACES,
    inside=[Inside("unit_id", "property_id", unit)],
    request=ListInspectionsRequest,
)
# Returns no row for an inspection that exists but is not served.
# Returns also cancelled ones.
ONE_FOR_PEOPLE = by_id(_inspections.where(FOR_PEOPLE), inspection)
INSPECTION_CHANGES = Changes("inspection", INSPECTION_DOCUMENTS)

INSPECTIONS = ImportTable(inspection, *editable_columns(inspection))


def _numbers_taken() -> Statement:
    numbers = array_rows_of(inspection, ("property_id", "inspection_number"))
    same = (inspection.c.property_id == numbers.c.property_id) & (
        inspection.c.inspection_number == numbers.c.inspection_number
    )
    columns = (inspection.c.property_id, inspection.c.inspection_number, inspection.c.external_id)
    return Statement(
        select(*columns).select_from(numbers.join(inspection, same)).where(inspection.c.company_id == _company_id)
    )


_NUMBERS_TAKEN = _numbers_taken()


async def holders_of_numbers(
    connection: Connection, company_id: int, numbers: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], str | None]:
    """The external_id of the inspection that has each number; key: property and number. Free numbers are absent."""
    rows = await connection.rows(
        _NUMBERS_TAKEN,
        company_id=company_id,
        property_id=[property_id for property_id, _ in numbers],
        inspection_number=[number for _, number in numbers],
    )
    return {(row["property_id"], row["inspection_number"]): row["external_id"] for row in rows}


def _count(last: Callable[[ColumnElement[int], ColumnElement[int]], ColumnElement[int]]) -> Statement:
    """Sets the counter of each property. last: computes the new value from the current value and the parameter."""
    counters = array_rows_of(inspection_number, ("property_id", "last"))
    rows = select(_company_id, counters.c.property_id, counters.c.last).order_by(counters.c.property_id)
    put = insert(inspection_number).from_select(["company_id", "property_id", "last"], rows)
    return Statement(
        put.on_conflict_do_update(
            index_elements=["company_id", "property_id"],
            set_={"last": last(inspection_number.c.last, put.excluded.last)},
        ).returning(inspection_number.c.property_id, inspection_number.c.last)
    )


_COUNT_ON = _count(lambda last, more: last + more)
_COUNT_FROM = _count(func.greatest)


async def take_numbers(connection: Connection, company_id: int, counts: Mapping[int, int]) -> dict[int, int]:
    """Takes counts[property_id] numbers of each property's sequence; returns the first of each."""
    rows = await _put(connection, _COUNT_ON, company_id, counts)
    return {row["property_id"]: row["last"] - counts[row["property_id"]] + 1 for row in rows}


async def count_from(connection: Connection, company_id: int, numbers: Mapping[int, int]) -> None:
    """Raises each property's sequence to at least this number."""
    await _put(connection, _COUNT_FROM, company_id, numbers)


async def _put(
    connection: Connection, statement: Statement, company_id: int, of_property: Mapping[int, int]
) -> list[Record]:
    if not of_property:
        return []
    last = list(of_property.values())
    return await connection.rows(statement, company_id=company_id, property_id=list(of_property), last=last)


# Rows of inspections


class ChecklistRow(NamedTuple):
    """A row of an inspection: its label and its result. The fields from note on describe the failure, if it failed."""

    id: int
    position: int
    label: str
    result: str | None
    note: str | None
    category: str | None
    priority: str | None
    asset_id: int | None
    photo_url: str | None
    failed_at: datetime.datetime | None


_OUTCOME = ("result", "note", "category", "priority", "asset_id", "photo_url", "failed_at")
_OF_INSPECTION = (inspection_row.c.company_id == _company_id, inspection_row.c.inspection_id == _inspection_id)
_INSERT_ROWS = InsertMany(inspection_row, ("company_id", "inspection_id", "position", "label"))
# From 1, without the gaps that removed rows leave.
_POSITION = func.row_number().over(order_by=inspection_row.c.position).label("position")
_ROWS = Query(
    ChecklistRow,
    select(*(_POSITION if name == "position" else inspection_row.c[name] for name in ChecklistRow._fields))
    .where(*_OF_INSPECTION)
    .order_by(inspection_row.c.position),
)
_SAVE_ROW = Statement(
    update(inspection_row)
    .where(*_OF_INSPECTION, inspection_row.c.id == param("row_id", BigInteger))
    .values({name: param(name, inspection_row.c[name].type) for name in _OUTCOME})
)


_last = select(func.coalesce(func.max(inspection_row.c.position), literal_column("0"))).where(*_OF_INSPECTION)
_ADD_ROW = Statement(
    insert(inspection_row)
    .values(
        company_id=_company_id,
        inspection_id=_inspection_id,
        position=_last.scalar_subquery() + literal_column("1"),
        label=param("label", Text),
    )
    .returning(inspection_row.c.id)
)
_REMOVE_ROW = Statement(
    delete(inspection_row).where(*_OF_INSPECTION, inspection_row.c.id == param("row_id", BigInteger))
)


async def add_row(connection: Connection, company_id: int, inspection_id: int, label: str) -> int:
    """Inserts a row after the last one; returns its id. The caller must hold the inspection's lock."""
    row_id: int = await connection.value(_ADD_ROW, company_id=company_id, inspection_id=inspection_id, label=label)
    return row_id


async def remove_row(connection: Connection, company_id: int, inspection_id: int, row_id: int) -> None:
    await connection.execute(_REMOVE_ROW, company_id=company_id, inspection_id=inspection_id, row_id=row_id)


async def add_rows(connection: Connection, company_id: int, inspection_id: int, labels: Sequence[str]) -> None:
    """Inserts an inspection's rows, in the order of their labels."""
    of_inspection = {"company_id": company_id, "inspection_id": inspection_id}
    rows = [of_inspection | {"position": number, "label": label} for number, label in enumerate(labels, start=1)]
    await _INSERT_ROWS.run(connection, rows)


async def checklist(connection: Connection | Database, company_id: int, inspection_id: int) -> list[ChecklistRow]:
    """An inspection's rows in their order. To change a row, the caller must hold the inspection's lock."""
    return await _ROWS.rows(connection, company_id=company_id, inspection_id=inspection_id)


async def save_row(connection: Connection, company_id: int, inspection_id: int, row: ChecklistRow) -> None:
    """Stores the result of a row."""
    outcome = {name: getattr(row, name) for name in _OUTCOME}
    await connection.execute(_SAVE_ROW, company_id=company_id, inspection_id=inspection_id, row_id=row.id, **outcome)


# Statements of the sweep


def overdue(day: Expression, _now: Expression) -> tuple[ColumnElement[bool], ...]:
    """The condition for inspections that are open, served, scheduled before the day and not yet announced."""
    return (MAY_BECOME_STALE, inspection.c.scheduled_date < day)


# The columns of INSPECTION, then the company.
OVERDUE_INSPECTIONS = _served.add_columns(inspection.c.company_id.label("company_id"))
# Does not increase the version: no served field changes.
MARK_ANNOUNCED = UpdateMany(inspection, ("stale_announced_at",))
