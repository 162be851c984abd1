"""The SQL statements of make-ready tasks. The first parameter is the company."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from asyncpg import Record
from sqlalchemy import BigInteger, Date, FromClause, Integer, Text, and_, func, literal_column, select, tuple_, update
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import IN_ORDER, Connection, Database
from chassis.db.rows import UpdateMany, array_rows
from chassis.db.statements import Expression, Query, Selection, Statement, param
from chassis.imports.importer import ImportTable
from chassis.lists.updated_since import stretch
from chassis.writes.editing import EditableTable
from svc_occupancy import schema
from svc_occupancy.dates import Position
from svc_occupancy.turn_tasks import records, tables
from svc_occupancy.turn_tasks.tables import StoredTask
from svc_occupancy.turns import tables as turn_tables

_company_id = param("company_id", BigInteger)

TASKS = ImportTable(
    tables.turn_task,
    "transition_id",
    "unit_id",
    "property_id",
    "task_type",
    "status",
    "scheduled_date",
    "completed_at",
    "cancelled_at",
    "stale_at",
    "created_at",
    "assignee_id",
    "vendor_id",
)


def _turns() -> Statement:
    named = array_rows("named", {"external_id": Text()})
    each = turn_tables.transition.alias("each")
    newest = (
        select(each.c.id)
        .where(each.c.company_id == _company_id, each.c.external_id == named.c.external_id)
        .order_by(each.c.id.desc())
        .limit(literal_column("1"))
    )
    # Literals, so that PostgreSQL can use the partial index of each.
    filed = newest.where(each.c.source == literal_column("'import'")).correlate(named).scalar_subquery()
    fed = newest.where(each.c.source != literal_column("'import'")).correlate(named).scalar_subquery()
    ids = select(named.c.external_id, func.coalesce(filed, fed).label("id"))
    turns = ids.offset(literal_column("0")).subquery("turns")
    turn = turn_tables.transition
    here = and_(turn.c.company_id == _company_id, turn.c.id == turns.c.id)
    columns = (turns.c.external_id, turn.c.id, turn.c.unit_id, turn.c.property_id)
    return Statement(select(*columns).select_from(turns.join(turn, here)))


TURNS = _turns()


async def turns(connection: Connection, company_id: int, external_ids: Sequence[str]) -> dict[str, Record]:
    """The turns with these external ids, with `id`, `unit_id` and `property_id`: of each the imported one, else the
    newest from a feed."""
    rows = await connection.rows(TURNS, company_id=company_id, external_id=external_ids)
    return {row["external_id"]: row for row in rows}


_task = tables.turn_task
_of_turn = (_task.c.company_id == _company_id, _task.c.transition_id == param("turn_id", BigInteger))
_is_open = _task.c.status == literal_column("'open'")  # a literal: the indexes of open tasks are partial

_LOCKED = Query(
    StoredTask,
    select(_task)
    .where(_task.c.company_id == _company_id, _task.c.id == param("task_id", BigInteger))
    .with_for_update(key_share=True),
)
# The order in which a turn's work is done and is to be done: what has ended, by when it did, then the open tasks.
_TASKS = Query(
    StoredTask,
    select(_task)
    .where(*_of_turn)
    .order_by(_is_open, func.coalesce(_task.c.completed_at, _task.c.cancelled_at), *tables.open_order),
)
_OPEN_LOCKED = Query(
    StoredTask, select(_task).where(*_of_turn, _is_open).order_by(_task.c.id).with_for_update(key_share=True)
)
# The columns that commands and imports set.
_EDITABLE = EditableTable(
    _task,
    "transition_id",
    "unit_id",
    "property_id",
    "task_type",
    "status",
    "scheduled_date",
    "completed_at",
    "cancelled_at",
    "assignee_id",
    "vendor_id",
)
_ORDER = UpdateMany(_task, ("position",))


async def task_for_update(connection: Connection, company_id: int, task_id: int) -> StoredTask | None:
    return await _LOCKED.row(connection, company_id=company_id, task_id=task_id)


async def tasks(database: Connection | Database, company_id: int, turn_id: int) -> list[StoredTask]:
    """A turn's tasks: those that have ended, by when they did, then the open ones in their order."""
    return await _TASKS.rows(database, company_id=company_id, turn_id=turn_id)


async def open_tasks_for_update(connection: Connection, company_id: int, turn_id: int) -> list[StoredTask]:
    """A turn's open tasks, ascending by id."""
    return await _OPEN_LOCKED.rows(connection, company_id=company_id, turn_id=turn_id)


async def add_task(
    connection: Connection, company_id: int, values: Mapping[str, object], at: datetime.datetime
) -> StoredTask:
    """Inserts a task that staff add; columns without a value are null."""
    task_id = await _EDITABLE.insert(connection, company_id, values, at)
    stamps = {"company_id": company_id, "id": task_id, "version": 1, "created_at": at, "updated_at": at}
    row: dict[str, Any] = {**dict.fromkeys(_task.c.keys()), **values, **stamps, "source": "staff"}
    return StoredTask(**row)


async def save_task(connection: Connection, task: StoredTask) -> None:
    """Stores the changed columns of a task, as its next version."""
    await _EDITABLE.update(connection, msgspec.structs.asdict(task), task.updated_at)


async def save_order(connection: Connection, company_id: int, positions: Mapping[int, int | None]) -> None:
    """positions: of tasks, by id."""
    keys = [{"company_id": company_id, "id": task_id, "position": place} for task_id, place in positions.items()]
    await _ORDER.run(connection, keys)


def overdue_tasks(day: Expression, _now: Expression) -> Sequence[ColumnElement[bool]]:
    """The condition for overdue tasks. day: in the company, dates before it are over."""
    return [_is_open, _task.c.stale_at.is_(None), _task.c.scheduled_date < day]


_PLACES = (
    schema.unit.c.name.label("unit"),
    schema.property_.c.id.label("of_property"),
    schema.property_.c.name.label("property"),
)


def _placed(task: FromClause) -> Selection:
    """The task's columns, then those of `records.PlacedTask`."""
    places = task.join(schema.unit, schema.unit.c.id == task.c.unit_id)
    places = places.join(schema.property_, schema.property_.c.id == schema.unit.c.property_id)
    return select(*task.c, *_PLACES).select_from(places)


_TASK = Statement(_placed(_task).where(_task.c.company_id == _company_id, _task.c.id == param("task_id", BigInteger)))


_FILTERS = ("assignee_id", "vendor_id", "property_id")
_UNASSIGNED = "unassigned"


def _open_tasks(names: Collection[str]) -> Statement:
    """names: the filters. The first of them in the order of `_FILTERS` is the one that the index begins with."""
    filters = [(_task.c[name], param(name, BigInteger)) for name in _FILTERS if name in names]
    conditions = [column == value for column, value in filters]
    if _UNASSIGNED in names:
        conditions += [_task.c.assignee_id.is_(None), _task.c.vendor_id.is_(None)]
        filters = []
    stretched, order = stretch([(_task.c.company_id, _company_id), *filters[:1]], [])
    stretched += conditions[len(filters[:1]) :]
    after = tuple_(tables.date_key, _task.c.id) > tuple_(param("after_date", Date), param("after_id", BigInteger))
    first = (
        select(_task)
        .where(*stretched, _is_open, after, tables.date_key <= param("until", Date))
        .order_by(*order, tables.date_key, _task.c.id)
        .limit(param("rows", Integer))
        .subquery("first")
    )
    return Statement(_placed(first).order_by(func.coalesce(first.c.scheduled_date, schema.NO_DATE), first.c.id))


OPEN_TASKS: Mapping[frozenset[str], Statement] = {
    frozenset(names): _open_tasks(names)
    for several in range(len(_FILTERS) + 2)
    for names in itertools.combinations((*_FILTERS, _UNASSIGNED), several)
}
_COLUMNS = len(_task.c)


def _split(row: Record) -> tuple[StoredTask, records.PlacedTask]:
    values = tuple(row)
    return StoredTask(*values[:_COLUMNS]), records.PlacedTask(*values[_COLUMNS:])


async def task(database: Database, company_id: int, task_id: int) -> tuple[StoredTask, records.PlacedTask] | None:
    row = await database.row(_TASK, company_id=company_id, task_id=task_id)
    return None if row is None else _split(row)


async def open_tasks(
    database: Database,
    company_id: int,
    after: Position,
    until: datetime.date,
    rows: int,
    filters: Mapping[str, int],
    *,
    unassigned: bool = False,
) -> list[tuple[StoredTask, records.PlacedTask]]:
    """Open tasks scheduled on `until` or before, by their date; those without one last, with the calendar's last.

    filters: ids of an assignee, a vendor and a property, by column. unassigned: only tasks with neither of the two.
    """
    statement = OPEN_TASKS[frozenset((*filters, *([_UNASSIGNED] if unassigned else [])))]
    values = {"after_date": after.date, "after_id": after.id, "until": until, "rows": rows, **filters}
    async with database.transaction(IN_ORDER, writes=False) as connection:
        return [_split(row) for row in await connection.rows(statement, company_id=company_id, **values)]


PLACE_TASKS = Statement(
    update(_task)
    .where(_task.c.property_id.is_(None), schema.unit.c.id == _task.c.unit_id)
    .values(property_id=schema.unit.c.property_id)
)


_turn = turn_tables.transition
# The columns of `records.STALE_TASK`, then those that marking a task needs.
OVERDUE = records.STALE_TASK.select(
    _task.join(_turn, and_(_turn.c.company_id == _task.c.company_id, _turn.c.id == _task.c.transition_id))
    .join(schema.unit, schema.unit.c.id == _turn.c.unit_id)
    .join(schema.property_, schema.property_.c.id == _turn.c.property_id)
).add_columns(_task.c.company_id, _task.c.id, _task.c.updated_at)
MARK_STALE = UpdateMany(_task, ("stale_at",))
