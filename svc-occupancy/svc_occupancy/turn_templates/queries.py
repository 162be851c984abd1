"""The SQL statements of templates. The first parameter is the company."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec
from sqlalchemy import BigInteger, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany
from chassis.db.statements import TIME, Query, Statement, param
from svc_occupancy import schema
from svc_occupancy.turn_templates import tables as t
from svc_occupancy.turn_templates.tables import StoredTemplate, StoredTemplateTask

_template, _task = t.turn_template, t.turn_template_task
_company_id, _template_id = param("company_id", BigInteger), param("template_id", BigInteger)
_mine = (_template.c.company_id == _company_id,)
_same = (*_mine, _template.c.id == _template_id)
_named = ("name", "property_id", "floorplan")

_ALL = Query(StoredTemplate, select(_template).where(*_mine).order_by(_template.c.name, _template.c.id))
_COUNT = Statement(select(func.count()).select_from(_template).where(*_mine))
_LOCKED = Query(StoredTemplate, select(_template).where(*_same).with_for_update())
_SHARED = Query(StoredTemplate, select(_template).where(*_same).with_for_update(read=True))
_TASKS = Query(
    StoredTemplateTask,
    select(_task)
    .where(_task.c.company_id == _company_id, _task.c.template_id == func.any(param("ids", ARRAY(BigInteger))))
    .order_by(_task.c.template_id, _task.c.position),
)
_ADD = Statement(
    insert(_template)
    .values(
        {name: param(name, _template.c[name].type) for name in ("company_id", *_named)}
        | {name: param("at", TIME) for name in ("created_at", "updated_at")}
    )
    .returning(_template.c.id)
)
_SAVE = Statement(
    update(_template)
    .where(*_same)
    .values(
        {name: param(f"new_{name}", _template.c[name].type) for name in _named}
        | {"updated_at": param("at", TIME), "version": _template.c.version + 1}
    )
)
_REMOVE = Statement(delete(_template).where(*_same))
_REMOVE_TASKS = Statement(delete(_task).where(_task.c.company_id == _company_id, _task.c.template_id == _template_id))
_ADD_TASKS = InsertMany(_task, _task.c.keys())
_PROPERTY_NAMES = Statement(
    select(schema.property_.c.id, schema.property_.c.name).where(
        schema.property_.c.company_id == _company_id,
        schema.property_.c.id == func.any(param("ids", ARRAY(BigInteger))),
    )
)


async def templates(database: Database, company_id: int) -> list[StoredTemplate]:
    """All templates of the company by name."""
    return await _ALL.rows(database, company_id=company_id)


async def count(connection: Connection, company_id: int) -> int:
    number: int = await connection.value(_COUNT, company_id=company_id)
    return number


async def template_for_update(connection: Connection, company_id: int, template_id: int) -> StoredTemplate | None:
    return await _LOCKED.row(connection, company_id=company_id, template_id=template_id)


async def template_for_use(connection: Connection, company_id: int, template_id: int) -> StoredTemplate | None:
    """The template, which nobody changes until the end of the transaction."""
    return await _SHARED.row(connection, company_id=company_id, template_id=template_id)


async def tasks(
    connection: Connection | Database, company_id: int, template_ids: Sequence[int]
) -> dict[int, list[StoredTemplateTask]]:
    """The tasks of templates in their order, by template."""
    tasks_of: dict[int, list[StoredTemplateTask]] = {template_id: [] for template_id in template_ids}
    for task in await _TASKS.rows(connection, company_id=company_id, ids=template_ids) if template_ids else ():
        tasks_of[task.template_id].append(task)
    return tasks_of


async def add_template(connection: Connection, template: StoredTemplate) -> int:
    """Inserts a template without tasks; returns its id."""
    values = {name: getattr(template, name) for name in ("company_id", *_named)}
    template_id: int = await connection.value(_ADD, **values, at=template.created_at)
    return template_id


async def save_template(connection: Connection, template: StoredTemplate, at: datetime.datetime) -> None:
    """Stores a template as its next version."""
    values = {f"new_{name}": getattr(template, name) for name in _named}
    await connection.execute(_SAVE, company_id=template.company_id, template_id=template.id, at=at, **values)


async def save_tasks(
    connection: Connection, company_id: int, template_id: int, new_tasks: Sequence[StoredTemplateTask]
) -> None:
    """Replaces a template's tasks."""
    await connection.execute(_REMOVE_TASKS, company_id=company_id, template_id=template_id)
    await _ADD_TASKS.run(connection, [msgspec.structs.asdict(task) for task in new_tasks])


async def remove_template(connection: Connection, company_id: int, template_id: int) -> None:
    """Deletes a template with its tasks."""
    await connection.execute(_REMOVE, company_id=company_id, template_id=template_id)


async def property_names(
    connection: Connection | Database, company_id: int, several: Sequence[StoredTemplate]
) -> dict[int, str]:
    """The names of the properties that templates are for, by id."""
    ids = sorted({template.property_id for template in several if template.property_id is not None})
    rows = await connection.rows(_PROPERTY_NAMES, company_id=company_id, ids=ids) if ids else []
    return {row["id"]: row["name"] for row in rows}
