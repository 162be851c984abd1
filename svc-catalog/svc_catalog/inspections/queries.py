"""Every SQL statement about inspections, named for what it returns. The company comes first in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Text, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany, UpdateMany, offered
from chassis.db.statements import Statement, param
from chassis.imports.importer import ImportTable
from chassis.lists.paging import Pages
from svc_catalog.inspections.tables import MAY_BECOME_STALE, SERVED, inspection, inspection_number, inspection_row
from svc_catalog.places import tables as t
from svc_catalog.schema import staff
from svc_catalog.selects import by_id, is_given, named, rows_of

_company_id = bindparam("company_id", type_=BigInteger)

# In the order in which `records_inspections.InspectionLinks` takes them.
INSPECTION_COLUMNS: tuple[ColumnElement[Any], ...] = (
    inspection.c.id,
    inspection.c.inspection_number,
    inspection.c.title,
    inspection.c.inspection_type,
    inspection.c.published_status,
    inspection.c.result,
    t.property_.c.id,
    t.property_.c.name,
    t.property_.c.external_id,
    t.unit.c.id,
    t.unit.c.name,
    t.unit.c.external_id,
    inspection.c.scheduled_date,
    inspection.c.completed_date,
    staff.c.id,
    staff.c.name,
    inspection.c.is_compliance_inspection,
    inspection.c.compliance_type,
    inspection.c.created_at,
    inspection.c.external_id,
    inspection.c.source,
    inspection.c.version,
)

_inspections = rows_of(
    INSPECTION_COLUMNS,
    inspection.join(t.property_, named(inspection, "property_id", t.property_))
    .outerjoin(t.unit, named(inspection, "unit_id", t.unit))
    .outerjoin(staff, named(inspection, "assignee_id", staff)),
)
INSPECTIONS_SERVED = _inspections.where(SERVED)

INSPECTIONS_PAGE = Pages(
    _inspections,
    inspection.c.company_id,
    inspection.c.id,
    {name: is_given(inspection, name) for name in ("property_id", "unit_id")}
    | {"status": inspection.c.published_status == bindparam("status", type_=Text)},
    SERVED,
)
_INSPECTION = by_id(INSPECTIONS_SERVED, inspection)


async def served_inspection(database: Database | Connection, company_id: int, inspection_id: int) -> Record | None:
    """A row of INSPECTION_COLUMNS; None also where the inspection is there but not served."""
    return await database.row(_INSPECTION, company_id=company_id, entity_id=inspection_id)


# Of an import

INSPECTIONS = ImportTable(
    inspection,
    "property_id",
    "unit_id",
    "inspection_number",
    "title",
    "inspection_type",
    "status",
    "result",
    "scheduled_date",
    "completed_date",
    "assignee_id",
    "is_compliance_inspection",
    "compliance_type",
    "kind",
    "engagement",
    "created_at",
    "stale_announced_at",
)


def _numbers_taken() -> Statement:
    asked = offered(inspection, ("property_id", "inspection_number"))
    same = (inspection.c.property_id == asked.c.property_id) & (
        inspection.c.inspection_number == asked.c.inspection_number
    )
    columns = (inspection.c.property_id, inspection.c.inspection_number, inspection.c.external_id)
    return Statement(
        select(*columns).select_from(asked.join(inspection, same)).where(inspection.c.company_id == _company_id)
    )


_NUMBERS_TAKEN = _numbers_taken()


async def holders_of_numbers(
    connection: Connection, company_id: int, wanted: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], str | None]:
    """Of the pairs of property and number those that an inspection has, with its external_id."""
    rows = await connection.rows(
        _NUMBERS_TAKEN,
        company_id=company_id,
        property_id=[property_id for property_id, _ in wanted],
        inspection_number=[number for _, number in wanted],
    )
    return {(row["property_id"], row["inspection_number"]): row["external_id"] for row in rows}


def _count(last: Callable[[ColumnElement[int], ColumnElement[int]], ColumnElement[int]]) -> Statement:
    """Sets the counter of each property. last: what it becomes, of what it is and what is offered."""
    wanted = offered(inspection_number, ("property_id", "last"))
    rows = select(_company_id, wanted.c.property_id, wanted.c.last).order_by(wanted.c.property_id)
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
    """Takes as many numbers of each property's sequence; returns the first of each."""
    rows = await _put(connection, _COUNT_ON, company_id, counts)
    return {row["property_id"]: row["last"] - counts[row["property_id"]] + 1 for row in rows}


async def count_from(connection: Connection, company_id: int, numbers: Mapping[int, int]) -> None:
    """Lets each property's sequence go on above the number, where it has not come that far."""
    await _put(connection, _COUNT_FROM, company_id, numbers)


async def _put(
    connection: Connection, statement: Statement, company_id: int, of_property: Mapping[int, int]
) -> list[Record]:
    if not of_property:
        return []
    last = list(of_property.values())
    return await connection.rows(statement, company_id=company_id, property_id=list(of_property), last=last)


_RESULT = ("result", "note", "category", "priority", "asset_id", "photo_url", "failed_at")
_inspection_id = param("inspection_id", BigInteger)

_INSERT = InsertMany(inspection_row, ("company_id", "inspection_id", "position", "label"))
_OF_INSPECTION = (inspection_row.c.company_id == _company_id, inspection_row.c.inspection_id == _inspection_id)
_ROWS = Statement(select(inspection_row).where(*_OF_INSPECTION).order_by(inspection_row.c.position))
_SAVE = Statement(
    update(inspection_row)
    .where(*_OF_INSPECTION, inspection_row.c.id == param("row_id", BigInteger))
    .values({name: param(name, inspection_row.c[name].type) for name in _RESULT})
)


async def add_rows(connection: Connection, company_id: int, inspection_id: int, labels: Sequence[str]) -> None:
    """Gives an inspection its rows, in the order of their labels."""
    of_inspection = {"company_id": company_id, "inspection_id": inspection_id}
    rows = [of_inspection | {"position": number, "label": label} for number, label in enumerate(labels, start=1)]
    await _INSERT.run(connection, rows)


async def checklist(connection: Connection | Database, company_id: int, inspection_id: int) -> list[Record]:
    """An inspection's rows in their order. Whoever changes one holds the inspection."""
    return await connection.rows(_ROWS, company_id=company_id, inspection_id=inspection_id)


async def save_row(
    connection: Connection, company_id: int, inspection_id: int, row_id: int, values: dict[str, Any]
) -> None:
    """values: what somebody found."""
    found = {name: values[name] for name in _RESULT}
    await connection.execute(_SAVE, company_id=company_id, inspection_id=inspection_id, row_id=row_id, **found)


# Of the sweep


def stale(day: Any, _now: Any) -> tuple[Any, ...]:
    """Inspections that were to be done before the day, are open, and of which nobody was told."""
    return (MAY_BECOME_STALE, inspection.c.scheduled_date < day)


# INSPECTION_COLUMNS, then the company.
OVERDUE_INSPECTIONS = INSPECTIONS_SERVED.add_columns(inspection.c.company_id.label("company_id"))
_ANNOUNCE = UpdateMany(inspection, ("stale_announced_at",))


async def announce(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """rows: company_id, id, stale_announced_at. The version stays: nothing that is served changes."""
    await _ANNOUNCE.run(connection, rows)
