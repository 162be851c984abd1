"""The SQL statements of make-ready tasks. The company comes first in each."""

from __future__ import annotations

from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, insert, literal_column, select, update

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from svc_occupancy import tables as t
from svc_occupancy.units import Row

_task = t.turn_task
_company_id, _task_id = param("company_id", BigInteger), param("task_id", BigInteger)
_of_turn = (_task.c.company_id == _company_id, _task.c.transition_id == param("turn_id", BigInteger))

_TASK_LOCKED = Statement(
    select(_task).where(_task.c.company_id == _company_id, _task.c.id == _task_id).with_for_update(key_share=True)
)
_TASKS = Statement(select(_task).where(*_of_turn).order_by(_task.c.id))
_OPEN_LOCKED = Statement(
    select(_task)
    .where(*_of_turn, _task.c.status == literal_column("'open'"))
    .order_by(_task.c.id)
    .with_for_update(key_share=True)
)

_FRESH = (
    "company_id",
    "transition_id",
    "unit_id",
    "task_type",
    "status",
    "scheduled_date",
    "created_at",
    "updated_at",
    "source",
)
_INSERT = Statement(insert(_task).values({name: param(name, _task.c[name].type) for name in _FRESH}).returning(_task))
_CHANGED = ("task_type", "status", "scheduled_date", "completed_at", "cancelled_at", "updated_at")
_SAVE = Statement(
    update(_task)
    .where(_task.c.company_id == _company_id, _task.c.id == _task_id)
    .values(
        {name: param(f"new_{name}", _task.c[name].type) for name in _CHANGED}
        | {"version": _task.c.version + literal_column("1")}
    )
)


async def task_for_update(connection: Connection, company_id: int, task_id: int) -> dict[str, Any] | None:
    row = await connection.row(_TASK_LOCKED, company_id=company_id, task_id=task_id)
    return None if row is None else dict(row)


async def tasks(connection: Database, company_id: int, turn_id: int) -> list[Record]:
    """A turn's tasks, ascending by id."""
    return await connection.rows(_TASKS, company_id=company_id, turn_id=turn_id)


async def open_tasks_for_update(connection: Connection, company_id: int, turn_id: int) -> list[Record]:
    """A turn's open tasks, ascending by id."""
    return await connection.rows(_OPEN_LOCKED, company_id=company_id, turn_id=turn_id)


async def add_task(connection: Connection, task: Row) -> Record:
    """The whole row of a new task."""
    row = await connection.row(_INSERT, **{name: task[name] for name in _FRESH})
    assert row is not None
    return row


async def save_task(connection: Connection, task: Row) -> None:
    """Stores what people change of a whole task, as its next version."""
    values = {f"new_{name}": task[name] for name in _CHANGED}
    await connection.execute(_SAVE, company_id=task["company_id"], task_id=task["id"], **values)
