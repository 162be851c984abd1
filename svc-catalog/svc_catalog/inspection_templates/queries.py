"""The SQL statements of inspection templates. The first parameter is the company."""

from __future__ import annotations

import datetime

from sqlalchemy import BigInteger, Text, delete, func, insert, select, text, type_coerce, update
from sqlalchemy.types import NullType

from chassis.db.database import Connection, Database
from chassis.db.statements import TIME, Query, Statement, param
from svc_catalog.inspection_templates.tables import StoredTemplate, inspection_template

_t = inspection_template.c
_company_id, _template_id = param("company_id", BigInteger), param("template_id", BigInteger)
_mine = _t.company_id == _company_id
# The rows as asyncpg returns them: a list.
_columns = [column if column is not _t.rows else type_coerce(column, NullType()).label("rows") for column in _t]
_SET = ("name", "inspection_type", "is_default", "rows")

_ALL = Query(StoredTemplate, select(*_columns).where(_mine).order_by(func.lower(_t.name), _t.id))
_COUNT = Statement(select(func.count()).select_from(inspection_template).where(_mine))
_SAME = (_mine, _t.id == _template_id)
_LOCKED = Query(StoredTemplate, select(*_columns).where(*_SAME).with_for_update())
_ONE = Query(StoredTemplate, select(*_columns).where(*_SAME))
_DEFAULT = Query(
    StoredTemplate,
    select(*_columns).where(
        _mine, func.lower(_t.inspection_type) == func.lower(param("inspection_type", Text)), text("is_default")
    ),
)
_ADD = Statement(
    insert(inspection_template)
    .values(
        {name: param(name, _t[name].type) for name in ("company_id", *_SET)}
        | {name: param("at", TIME) for name in ("created_at", "updated_at")}
    )
    .returning(_t.id)
)
_SAVE = Statement(
    update(inspection_template)
    .where(*_SAME)
    .values(
        {name: param(f"new_{name}", _t[name].type) for name in _SET}
        | {"updated_at": param("at", TIME), "version": _t.version + 1}
    )
)
_REMOVE = Statement(delete(inspection_template).where(*_SAME))


async def templates(database: Database, company_id: int) -> list[StoredTemplate]:
    """All templates of the company by name."""
    return await _ALL.rows(database, company_id=company_id)


async def count(connection: Connection, company_id: int) -> int:
    number: int = await connection.value(_COUNT, company_id=company_id)
    return number


async def template(connection: Connection, company_id: int, template_id: int) -> StoredTemplate | None:
    return await _ONE.row(connection, company_id=company_id, template_id=template_id)


async def template_for_update(connection: Connection, company_id: int, template_id: int) -> StoredTemplate | None:
    return await _LOCKED.row(connection, company_id=company_id, template_id=template_id)


async def default_of(connection: Connection, company_id: int, inspection_type: str) -> StoredTemplate | None:
    """The template whose rows inspections of a type have when none are given."""
    return await _DEFAULT.row(connection, company_id=company_id, inspection_type=inspection_type)


async def add(connection: Connection, company_id: int, values: dict[str, object], at: datetime.datetime) -> int:
    """values: by column. Returns the id."""
    template_id: int = await connection.value(_ADD, company_id=company_id, at=at, **values)
    return template_id


async def save(
    connection: Connection, company_id: int, template_id: int, values: dict[str, object], at: datetime.datetime
) -> None:
    """Stores a template as its next version."""
    sent = {f"new_{name}": value for name, value in values.items()}
    await connection.execute(_SAVE, company_id=company_id, template_id=template_id, at=at, **sent)


async def remove(connection: Connection, company_id: int, template_id: int) -> None:
    await connection.execute(_REMOVE, company_id=company_id, template_id=template_id)
