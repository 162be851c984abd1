"""The SQL statements of preventive-maintenance tasks."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, ColumnElement, Date, Integer, and_, func, literal_column, select, tuple_
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany
from chassis.db.statements import Expression, Query, Statement, param
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
    "assignee_id",
)
STATE = ("status", "completed_at", "cancelled_at")

TASKS = PM_TASK.select(
    t.pm_task.join(schema.property_, schema.property_.c.id == t.pm_task.c.property_id)
    .outerjoin(schema.unit, schema.unit.c.id == t.pm_task.c.unit_id)
    .outerjoin(schema.staff, schema.staff.c.id == t.pm_task.c.assignee_id)
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
    property_id: int | None = await database.value(_PROPERTY, company_id=company_id, entity_id=pm_task_id)
    return property_id


_STAFF = Statement(
    select(schema.staff.c.id).where(
        schema.staff.c.company_id == _company_id,
        schema.staff.c.id == param("staff_id", BigInteger),
        schema.staff.c.version > 0,
    )
)


async def is_staff(database: Database, company_id: int, staff_id: int) -> bool:
    """Whether the replica has a member of the company's staff with this id."""
    return await database.value(_STAFF, company_id=company_id, staff_id=staff_id) is not None


# One statement for each combination of filters and order.

FILTERS: Mapping[str, Expression] = {
    "open": _is_open,
    "closed": t.pm_task.c.status != literal_column("'Open'"),
    "property_id": t.pm_task.c.property_id == param("property_id", BigInteger),
    "unit_id": t.pm_task.c.unit_id == param("unit_id", BigInteger),
    "asset_id": t.pm_task.c.asset_id == param("asset_id", BigInteger),
    "assignee_id": t.pm_task.c.assignee_id == param("assignee_id", BigInteger),
    "due_from": t.pm_task.c.due_date >= param("due_from", Date),
    "due_to": t.pm_task.c.due_date <= param("due_to", Date),
}
_pages: dict[tuple[str, frozenset[str]], Statement] = {}


def _page(order: str, names: frozenset[str]) -> Statement:
    """order: "id", "due" or "due_backwards"."""
    rows = TASKS.where(t.pm_task.c.company_id == _company_id, *(FILTERS[name] for name in sorted(names)))
    columns = [t.pm_task.c.due_date, t.pm_task.c.id]
    last = tuple_(param("last_due", Date), param("after_id", BigInteger))
    if order == "id":
        rows = rows.where(t.pm_task.c.id > param("after_id", BigInteger)).order_by(t.pm_task.c.id)
    elif order == "due":
        rows = rows.where(tuple_(*columns) > last).order_by(*columns)
    else:
        rows = rows.where(tuple_(*columns) < last).order_by(*(column.desc() for column in columns))
    return Statement(rows.limit(param("rows", Integer)))


def _page_of(order: str, names: frozenset[str]) -> Statement:
    if (order, names) not in _pages:
        _pages[order, names] = _page(order, names)
    return _pages[order, names]


async def tasks_page(
    database: Database, company_id: int, after_id: int, rows: int, filters: Mapping[str, object]
) -> list[Record]:
    """Rows of TASKS, ascending by id. filters: by name of FILTERS; the value of "open" and "closed" does not count."""
    values = {name: value for name, value in filters.items() if name not in ("open", "closed")}
    statement = _page_of("id", frozenset(filters))
    return await database.rows(statement, company_id=company_id, after_id=after_id, rows=rows, **values)


async def tasks_by_due(
    database: Database,
    company_id: int,
    last: tuple[datetime.date, int],
    rows: int,
    filters: Mapping[str, object],
    *,
    backwards: bool,
) -> list[Record]:
    """Rows of TASKS by due date and id, after `last`; backwards: before it, in the reverse order."""
    values = {name: value for name, value in filters.items() if name not in ("open", "closed")}
    statement = _page_of("due_backwards" if backwards else "due", frozenset(filters))
    place = {"company_id": company_id, "last_due": last[0], "after_id": last[1], "rows": rows}
    return await database.rows(statement, **place, **values)


class DueCounts(NamedTuple):
    """Open tasks by when they are due."""

    overdue: int
    this_week: int
    later: int


def _counts(*where: ColumnElement[bool]) -> Query[DueCounts]:
    due, today, week_end = t.pm_task.c.due_date, param("today", Date), param("week_end", Date)
    count = func.count()
    return Query(
        DueCounts,
        select(
            count.filter(due < today).label("overdue"),
            count.filter(due >= today, due <= week_end).label("this_week"),
            count.filter(due > week_end).label("later"),
        ).where(t.pm_task.c.company_id == _company_id, _is_open, *where),
    )


_COUNTS = {False: _counts(), True: _counts(FILTERS["property_id"])}


async def due_counts(
    database: Database, company_id: int, property_id: int | None, today: datetime.date, week_end: datetime.date
) -> DueCounts:
    """week_end: the last day that counts as this week. Reads the open tasks."""
    values: dict[str, object] = {"company_id": company_id, "today": today, "week_end": week_end}
    if property_id is not None:
        values["property_id"] = property_id
    counts = await _COUNTS[property_id is not None].row(database, **values)
    assert counts is not None
    return counts


# How many tasks of a chain are read in each direction.
CHAIN_ROWS = 12


def _chain(*, later: bool) -> Statement:
    """The tasks before or after one, the nearest first."""
    start = select(t.pm_task.c.id, t.pm_task.c.previous_id, literal_column("0", Integer).label("step"))
    chain = start.where(*_same).cte("chain", recursive=True)
    neighbour = t.pm_task.alias("neighbour")
    step = neighbour.c.previous_id == chain.c.id if later else neighbour.c.id == chain.c.previous_id
    following = select(neighbour.c.id, neighbour.c.previous_id, chain.c.step + literal_column("1"))
    chain = chain.union_all(
        following.where(neighbour.c.company_id == _company_id, step, chain.c.step < literal_column(str(CHAIN_ROWS)))
    )
    of_chain = select(chain.c.id).where(chain.c.step > literal_column("0")).scalar_subquery()
    in_chain = t.pm_task.c.id == func.any(func.array(of_chain, type_=ARRAY(BigInteger)))
    return Statement(
        TASKS.where(t.pm_task.c.company_id == _company_id, in_chain).order_by(t.pm_task.c.due_date, t.pm_task.c.id)
    )


_EARLIER, _LATER = _chain(later=False), _chain(later=True)
_ASSET_NAME = Statement(
    select(schema.asset.c.name).where(
        schema.asset.c.company_id == _company_id, schema.asset.c.id == param("id", BigInteger)
    )
)


class Chain(NamedTuple):
    """A task with the tasks of its chain; rows of TASKS, ascending by due date."""

    task: Record
    earlier: list[Record]
    later: list[Record]


async def task_with_chain(database: Database, company_id: int, pm_task_id: int) -> Chain | None:
    key = {"company_id": company_id, "entity_id": pm_task_id}
    async with database.connection() as connection:
        task = await connection.row(EDITED, **key)
        if task is None:
            return None
        return Chain(task, await connection.rows(_EARLIER, **key), await connection.rows(_LATER, **key))


async def asset_name(database: Database, company_id: int, asset_id: int) -> str | None:
    name: str | None = await database.value(_ASSET_NAME, company_id=company_id, id=asset_id)
    return name


# Sweeps.


def due(day: Expression, _now: Expression) -> tuple[ColumnElement[bool], ...]:
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
    "assignee_id",
)

_TIMEZONE = Statement(
    select(schema.company.c.timezone).where(schema.company.c.id == _company_id, schema.company.c.version > 0)
)


async def timezone(connection: Connection | Database, company_id: int) -> str | None:
    """The company's timezone; None while the replica lacks the company."""
    timezone: str | None = await connection.value(_TIMEZONE, company_id=company_id)
    return timezone
