"""The SQL statements of preventive-maintenance tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, and_, insert, literal_column, select, update

from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany
from chassis.db.statements import Statement, param
from chassis.imports.importer import ExternalIds, ImportTable
from svc_tickets import tables as t

_company_id = param("company_id", BigInteger)
_is_open = t.pm_task.c.status == literal_column("'Open'")

# What a task has from the people who plan it.
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
STANDING = ("status", "completed_at", "cancelled_at")
_KEPT = ("version", "updated_at", *PLANNED, *STANDING)

_next = t.pm_task.alias("next")
TASKS = select(
    *t.pm_task.c, t.property_.c.name.label("property"), t.unit.c.name.label("unit"), _next.c.id.label("next_id")
).select_from(
    t.pm_task.join(t.property_, t.property_.c.id == t.pm_task.c.property_id)
    .outerjoin(t.unit, t.unit.c.id == t.pm_task.c.unit_id)
    .outerjoin(_next, and_(_next.c.company_id == t.pm_task.c.company_id, _next.c.previous_id == t.pm_task.c.id))
)

_same = (t.pm_task.c.company_id == _company_id, t.pm_task.c.id == param("pm_task_id", BigInteger))
_LOCK = Statement(select(t.pm_task.c.id).where(*_same).with_for_update(key_share=True))
_TASK = Statement(TASKS.where(*_same))


async def task_for_update(connection: Connection, company_id: int, pm_task_id: int) -> Record | None:
    """The task as it is under its lock. In two statements: one that has waited shows other tables as they were."""
    await connection.execute(_LOCK, company_id=company_id, pm_task_id=pm_task_id)
    return await task(connection, company_id, pm_task_id)


async def task(connection: Connection, company_id: int, pm_task_id: int) -> Record | None:
    """A row of TASKS."""
    return await connection.row(_TASK, company_id=company_id, pm_task_id=pm_task_id)


_NEW = ("property_id", *PLANNED, "previous_id", "created_at", "updated_at", "source")
_INSERT = Statement(
    insert(t.pm_task)
    .values(company_id=_company_id, **{name: param(name, t.pm_task.c[name].type) for name in _NEW})
    .returning(t.pm_task.c.id)
)
_SAVE = Statement(
    update(t.pm_task).where(*_same).values({name: param(f"new_{name}", t.pm_task.c[name].type) for name in _KEPT})
)


async def insert_task(connection: Connection, company_id: int, values: Mapping[str, Any]) -> int:
    """The id of a new open task. values: whatever is not given is null."""
    row = dict.fromkeys(_NEW) | {name: value for name, value in values.items() if name in _NEW}
    found: int = await connection.value(_INSERT, company_id=company_id, **row)
    return found


async def save_task(connection: Connection, company_id: int, pm_task_id: int, values: Mapping[str, Any]) -> None:
    """values: every column that may change."""
    new = {f"new_{name}": values[name] for name in _KEPT}
    await connection.execute(_SAVE, company_id=company_id, pm_task_id=pm_task_id, **new)


# A statement for each set of filters.


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


_TELL = UpdateMany(t.pm_task, ("stale_at",))


async def save_stale_at(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """rows: company_id, id, stale_at."""
    await _TELL.run(connection, rows)


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
    *STANDING,
    "stale_at",
    "created_at",
)
NAMED = {
    "property": ExternalIds(t.property_, replica=True),
    "unit": ExternalIds(t.unit, "property_id", replica=True),
    "asset": ExternalIds(t.asset, "property_id", replica=True),
}
_TIMEZONE = Statement(select(t.company.c.timezone).where(t.company.c.id == _company_id, t.company.c.version > 0))


async def timezone(connection: Connection | Database, company_id: int) -> str | None:
    """None where the gateway's word of the company has not come yet."""
    found: str | None = await connection.value(_TIMEZONE, company_id=company_id)
    return found
