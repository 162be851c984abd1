"""The SQL statements of make-ready tasks. The company comes first in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy import BigInteger, and_, func, insert, literal_column, select, update

from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany
from chassis.db.statements import TEXTS, Statement, param
from chassis.imports.importer import ImportTable
from svc_occupancy import schema
from svc_occupancy.turn_tasks import tables
from svc_occupancy.turns import tables as turn_tables
from svc_occupancy.turns.queries import Row
from svc_occupancy.units import tables as unit_tables

_company_id = param("company_id", BigInteger)

TASKS = ImportTable(
    tables.turn_task,
    "transition_id",
    "unit_id",
    "task_type",
    "status",
    "scheduled_date",
    "completed_at",
    "cancelled_at",
    "stale_at",
    "created_at",
)


def _turns() -> Statement:
    rows: Any = func.unnest(param("external_ids", TEXTS))
    named = rows.table_valued("external_id").render_derived(name="named")
    each = turn_tables.transition.alias("each")
    one = (
        select(each.c.id)
        .where(each.c.company_id == _company_id, each.c.external_id == named.c.external_id)
        .order_by(each.c.id.desc())
        .limit(literal_column("1"))
    )
    # Literals, for each of them has an index of its own.
    filed = one.where(each.c.source == literal_column("'import'")).correlate(named).scalar_subquery()
    fed = one.where(each.c.source != literal_column("'import'")).correlate(named).scalar_subquery()
    found = select(named.c.external_id, func.coalesce(filed, fed).label("id"))
    wanted = found.offset(literal_column("0")).subquery("wanted")
    turn = turn_tables.transition
    here = and_(turn.c.company_id == _company_id, turn.c.id == wanted.c.id)
    return Statement(select(wanted.c.external_id, turn.c.id, turn.c.unit_id).select_from(wanted.join(turn, here)))


TURNS = _turns()


async def turns(connection: Connection, company_id: int, external_ids: Sequence[str]) -> dict[str, Record]:
    """The turns that bear these external ids, with `id` and `unit_id`: the one that a file made, else the newest that a
    feed did."""
    rows = await connection.rows(TURNS, company_id=company_id, external_ids=external_ids)
    return {row["external_id"]: row for row in rows}


_task = tables.turn_task

_task_id = param("task_id", BigInteger)
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


_turn, _company, _state = turn_tables.transition, schema.company, unit_tables.unit_state


def overdue_tasks(day: Any, _now: Any) -> Sequence[sa.ColumnElement[bool]]:
    """That a task is to be told of as overdue, in a company where dates before the day are over."""
    # Literals, or the index of such tasks would not serve.
    is_open = tables.turn_task.c.status == sa.literal_column("'open'")
    return [is_open, tables.turn_task.c.stale_at.is_(None), tables.turn_task.c.scheduled_date < day]


TASKS_TOLD_OF = (
    sa.select(
        *(_task.c[name] for name in ("company_id", "id", "transition_id", "task_type", "updated_at")),
        schema.property_.c.name.label("property"),
        schema.unit.c.name.label("unit"),
    )
    .join_from(_task, _turn, sa.and_(_turn.c.company_id == _task.c.company_id, _turn.c.id == _task.c.transition_id))
    .join(schema.unit, schema.unit.c.id == _turn.c.unit_id)
    .join(schema.property_, schema.property_.c.id == _turn.c.property_id)
)
SAVE_STALE = UpdateMany(_task, ("stale_at",))
