"""The SQL statements about staff, named for what they return."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, bindparam, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.statements import TEXTS, Statement, param
from chassis.imports.importer import ImportTable
from gateway.identity.staff.tables import staff

STAFF = ImportTable(staff, "name", "email", "title", "created_at")

_company_id = bindparam("company_id", type_=BigInteger)
_of_company = staff.c.company_id == _company_id

# The fields of makeready.events.v1.StaffReference.
_REFERENCES = Statement(
    select(*(staff.c[name] for name in ("id", "version", "company_id", "name", "external_id"))).where(
        _of_company,
        or_(
            staff.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))),
            staff.c.external_id == func.any(bindparam("external_ids", type_=TEXTS)),
        ),
    )
)


async def staff_references(
    database: Database, company_id: int, ids: Sequence[int], external_ids: Sequence[str]
) -> list[Record]:
    """The company's members of staff that have one of the ids or external ids."""
    return await database.rows(_REFERENCES, company_id=company_id, ids=ids, external_ids=external_ids)


# The fields of a member of staff that the back office sets.
_SET = ("name", "email", "title", "external_id")
_staff_id = bindparam("staff_id", type_=BigInteger)

_STAFF_PAGE = Statement(
    select(staff)
    .where(_of_company, staff.c.id > bindparam("after_id", type_=BigInteger))
    .order_by(staff.c.id)
    .limit(bindparam("rows", type_=Integer))
)
_FOR_UPDATE = Statement(select(staff).where(_of_company, staff.c.id == _staff_id).with_for_update(key_share=True))
_ADDED = Statement(
    insert(staff)
    .values({name: param(name, staff.c[name].type) for name in ("company_id", *_SET, "created_at", "source")})
    .returning(*staff.c)
)
_CHANGED = Statement(
    update(staff)
    .where(_of_company, staff.c.id == _staff_id)
    .values({name: param(f"new_{name}", staff.c[name].type) for name in _SET} | {"version": staff.c.version + 1})
    .returning(*staff.c)
)


async def staff_page(database: Database, company_id: int, after_id: int, rows: int) -> list[Record]:
    """Members of the company's staff ascending by id."""
    return await database.rows(_STAFF_PAGE, company_id=company_id, after_id=after_id, rows=rows)


async def member_for_update(connection: Connection, company_id: int, staff_id: int) -> Record | None:
    return await connection.row(_FOR_UPDATE, company_id=company_id, staff_id=staff_id)


async def added_member(
    connection: Connection, company_id: int, values: Mapping[str, Any], at: datetime.datetime
) -> Record:
    row: dict[str, Any] = {**dict.fromkeys(_SET), **values}
    found = await connection.row(_ADDED, company_id=company_id, created_at=at, source="staff", **row)
    assert found is not None
    return found


async def changed_member(connection: Connection, before: Record, values: Mapping[str, Any]) -> Record:
    new = {f"new_{name}": values[name] if name in values else before[name] for name in _SET}
    found = await connection.row(_CHANGED, company_id=before["company_id"], staff_id=before["id"], **new)
    assert found is not None
    return found
