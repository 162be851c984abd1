"""The SQL statements of preventive-maintenance tasks."""

from __future__ import annotations

from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, and_, literal_column, select

from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany
from chassis.db.statements import Statement, param
from chassis.imports.importer import ImportTable
from chassis.writes.editing import EditableTable
from svc_tickets import schema
from svc_tickets.maintenance import tables as t
from svc_tickets.maintenance.records import PM_TASK, STALE_PM_TASK, successor

_company_id = param("company_id", BigInteger)
_is_open = t.pm_task.c.status == literal_column("'Open'")

# The columns that people set when they plan a task.
PLANNED = (
    "task_name",
    "due_date",
    "unit_id",
    "area",
    "asset_id",
    "repeat_days",
    "repeat_months",
    "day_of_month",
    "external_id",
)
STATE = ("status", "completed_at", "cancelled_at")

TASKS = PM_TASK.select(
    t.pm_task.join(schema.property_, schema.property_.c.id == t.pm_task.c.property_id)
    .outerjoin(schema.unit, schema.unit.c.id == t.pm_task.c.unit_id)
    .outerjoin(
        successor, and_(successor.c.company_id == t.pm_task.c.company_id, successor.c.previous_id == t.pm_task.c.id)
    )
)
EDITABLE = EditableTable(t.pm_task, "property_id", *PLANNED, "previous_id", *STATE, later=STATE)
# The columns of a task that the audit log records.
AUDITED = ("property_id", *PLANNED, *STATE)

_same = (t.pm_task.c.company_id == _company_id, t.pm_task.c.id == param("entity_id", BigInteger))
EDITED = Statement(TASKS.where(*_same))
_PROPERTY = Statement(select(t.pm_task.c.property_id).where(*_same))


async def property_of(database: Database, company_id: int, pm_task_id: int) -> int | None:
    """The property of a task; None if the task does not exist."""
    found: int | None = await database.value(_PROPERTY, company_id=company_id, entity_id=pm_task_id)
    return found


# One statement for each combination of filters.


def _page(*where: Any) -> Statement:
    after = t.pm_task.c.id > param("after_id", BigInteger)
    rows = TASKS.where(t.pm_task.c.company_id == _company_id, after, *where)
    return Statement(rows.order_by(t.pm_task.c.id).limit(param("rows", Integer)))


_OPEN = {None: (), True: (_is_open,), False: (t.pm_task.c.status != literal_column("'Open'"),)}
_of_property = t.pm_task.c.property_id == param("property_id", BigInteger)
_PAGES = {is_open: (_page(*where), _page(*where, _of_property)) for is_open, where in _OPEN.items()}


async def tasks_page(
    database: Database, company_id: int, after_id: int, rows: int, is_open: bool | None, property_id: int | None
) -> list[Record]:
    """Rows of TASKS, ascending by id."""
    everywhere, of_property = _PAGES[is_open]
    values = {"company_id": company_id, "after_id": after_id, "rows": rows}
    if property_id is None:
        return await database.rows(everywhere, **values)
    return await database.rows(of_property, property_id=property_id, **values)


# Sweeps.


def due(day: Any, _now: Any) -> tuple[Any, ...]:
    """See `chassis.schedule.overdue.Due`."""
    return (_is_open, t.pm_task.c.stale_at.is_(None), t.pm_task.c.due_date < day)


MARK = UpdateMany(t.pm_task, ("stale_at",))
# For each due task: the columns of its event, then those that the sweep needs.
OVERDUE = STALE_PM_TASK.select(
    t.pm_task.join(schema.property_, schema.property_.c.id == t.pm_task.c.property_id).outerjoin(
        schema.unit, schema.unit.c.id == t.pm_task.c.unit_id
    )
).add_columns(
    t.pm_task.c.company_id.label("company_id"),
    t.pm_task.c.id.label("pm_task_id"),
    t.pm_task.c.updated_at.label("last_updated_at"),
)


# Imports.

IMPORTED = ImportTable(
    t.pm_task,
    "task_name",
    "due_date",
    "property_id",
    "unit_id",
    "area",
    "asset_id",
    "repeat_days",
    "repeat_months",
    "day_of_month",
    *STATE,
    "stale_at",
    "created_at",
)

_TIMEZONE = Statement(
    select(schema.company.c.timezone).where(schema.company.c.id == _company_id, schema.company.c.version > 0)
)


async def timezone(connection: Connection | Database, company_id: int) -> str | None:
    """The company's timezone; None while the replica lacks the company."""
    found: str | None = await connection.value(_TIMEZONE, company_id=company_id)
    return found
