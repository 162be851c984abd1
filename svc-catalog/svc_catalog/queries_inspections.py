"""Every SQL statement about inspections, named for what it returns. The company comes first in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Text, bindparam, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.rows import offered
from chassis.db.statements import Statement
from chassis.imports.importer import ExternalIds, ImportTable
from chassis.lists.paging import Pages
from svc_catalog import tables as t
from svc_catalog.queries import by_id, is_given, named, rows_of
from svc_catalog.tables_inspections import SERVED, inspection, inspection_number

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
    t.staff.c.id,
    t.staff.c.name,
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
    .outerjoin(t.staff, named(inspection, "assignee_id", t.staff)),
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
STAFF_NAMED = ExternalIds(t.staff, replica=True)
_STAFF = Statement(
    select(t.staff.c.id).where(
        t.staff.c.company_id == _company_id,
        t.staff.c.id == bindparam("staff_id", type_=BigInteger),
        t.staff.c.version > literal_column("0"),
    )
)


async def is_staff(connection: Connection | Database, company_id: int, staff_id: int) -> bool:
    """Whether a member of the company's staff with this id has arrived."""
    return await connection.value(_STAFF, company_id=company_id, staff_id=staff_id) is not None


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
