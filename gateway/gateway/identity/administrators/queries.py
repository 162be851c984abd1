"""The SQL statements about administrators, named for what they return."""

from __future__ import annotations

from asyncpg import Record
from sqlalchemy import BigInteger, Text, bindparam, insert, select

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from gateway.identity.administrators.tables import administrator as _administrator

_NEW_ADMINISTRATOR = Statement(
    insert(_administrator)
    .values(
        company_id=bindparam("company_id", type_=BigInteger),
        email=bindparam("email", type_=Text),
        name=bindparam("name", type_=Text),
        password=bindparam("password", type_=Text),
    )
    .returning(_administrator.c.id)
)
_ADMINISTRATOR_BY_EMAIL = Statement(
    select(_administrator.c.id, _administrator.c.company_id).where(
        _administrator.c.email == bindparam("email", type_=Text)
    )
)


async def new_administrator_id(
    connection: Connection, company_id: int, email: str, name: str, password: str | None
) -> int:
    found: int = await connection.value(
        _NEW_ADMINISTRATOR, company_id=company_id, email=email, name=name, password=password
    )
    return found


async def administrator(connection: Connection | Database, email: str) -> Record | None:
    """id and company_id of the administrator with this email; no two have the same."""
    return await connection.row(_ADMINISTRATOR_BY_EMAIL, email=email)


async def administrator_id(connection: Connection, company_id: int, email: str) -> int | None:
    found = await administrator(connection, email)
    return found["id"] if found is not None and found["company_id"] == company_id else None
