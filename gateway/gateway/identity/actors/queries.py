"""The SQL statement that names actors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, ColumnElement, Select, Table, bindparam, func, literal, select, union_all
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Database
from chassis.db.statements import Statement
from gateway.identity.administrators.tables import administrator
from gateway.identity.keys.tables import api_key
from gateway.identity.staff.tables import staff

_company_id = bindparam("company_id", type_=BigInteger)


def _named(kind: str, table: Table, active: ColumnElement[bool], ids: str) -> Select[Any]:
    return select(literal(kind).label("kind"), table.c.id, table.c.name, active.label("active")).where(
        table.c.company_id == _company_id, table.c.id == func.any(bindparam(ids, type_=ARRAY(BigInteger)))
    )


_ACTORS = Statement(
    union_all(
        _named("administrator", administrator, administrator.c.active, "administrator_ids"),
        _named("staff", staff, staff.c.active, "staff_ids"),
        _named("key", api_key, api_key.c.revoked_at.is_(None), "key_ids"),
    )
)


async def actors(
    database: Database,
    company_id: int,
    administrator_ids: Sequence[int],
    staff_ids: Sequence[int],
    key_ids: Sequence[int],
) -> list[Record]:
    """kind ("administrator", "staff", "key"), id, name and active of those of the company that exist."""
    return await database.rows(
        _ACTORS,
        company_id=company_id,
        administrator_ids=list(administrator_ids),
        staff_ids=list(staff_ids),
        key_ids=list(key_ids),
    )
