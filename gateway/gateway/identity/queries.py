"""Every SQL statement of the gateway, named for what it returns or does."""

from __future__ import annotations

from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Boolean, LargeBinary, Text, bindparam, func, insert, select, update

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from gateway.identity import tables as t

# Told at commit whatever makes a cached key stale: "key ID" or "company ID".
CHANNEL = "identity"

_company_id = bindparam("company_id", type_=BigInteger)
_key_columns = (
    t.api_key.c.id,
    t.api_key.c.company_id,
    t.api_key.c.name,
    t.api_key.c.prefix,
    t.api_key.c.scope,
    t.api_key.c.created_at,
    t.api_key.c.revoked_at,
    t.api_key.c.administrator_id,
)

# The bearer

_KEY_BY_DIGEST = Statement(
    select(
        *_key_columns,
        t.company.c.name.label("company_name"),
        t.company.c.timezone,
        t.company.c.active,
    )
    .join_from(t.api_key, t.company, t.company.c.id == t.api_key.c.company_id)
    .where(t.api_key.c.digest == bindparam("digest", type_=LargeBinary))
)


async def key_by_digest(database: Database, digest: bytes) -> Record | None:
    """The key with this SHA-256, revoked or not, and its company."""
    return await database.row(_KEY_BY_DIGEST, digest=digest)


# Companies

_COMPANIES = Statement(select(t.company).order_by(t.company.c.id))
_COMPANY = Statement(select(t.company).where(t.company.c.id == _company_id))
_COMPANY_FOR_UPDATE = Statement(select(t.company).where(t.company.c.id == _company_id).with_for_update())
_NEW_COMPANY = Statement(
    insert(t.company)
    .values(name=bindparam("name", type_=Text), timezone=bindparam("timezone", type_=Text))
    .returning(*t.company.c)
)
_CHANGED_COMPANY = Statement(
    update(t.company)
    .where(t.company.c.id == _company_id)
    .values(
        active=bindparam("active", type_=Boolean),
        timezone=bindparam("new_timezone", type_=Text),
        version=t.company.c.version + 1,
        updated_at=func.greatest(func.clock_timestamp(), t.company.c.updated_at),
    )
    .returning(*t.company.c)
)


async def companies(database: Database) -> list[Record]:
    return await database.rows(_COMPANIES)


async def company(connection: Connection, company_id: int) -> Record | None:
    return await connection.row(_COMPANY, company_id=company_id)


async def company_for_update(connection: Connection, company_id: int) -> Record | None:
    return await connection.row(_COMPANY_FOR_UPDATE, company_id=company_id)


async def new_company(connection: Connection, name: str, timezone: str) -> Record:
    return _one(await connection.row(_NEW_COMPANY, name=name, timezone=timezone))


async def changed_company(connection: Connection, company_id: int, active: bool, timezone: str) -> Record:
    return _one(await connection.row(_CHANGED_COMPANY, company_id=company_id, active=active, new_timezone=timezone))


# Administrators

_NEW_ADMINISTRATOR = Statement(
    insert(t.administrator)
    .values(
        company_id=_company_id,
        email=bindparam("email", type_=Text),
        name=bindparam("name", type_=Text),
        password=bindparam("password", type_=Text),
    )
    .returning(t.administrator.c.id)
)
_ADMINISTRATOR_BY_EMAIL = Statement(
    select(t.administrator.c.id, t.administrator.c.company_id).where(
        t.administrator.c.email == bindparam("email", type_=Text)
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
    """id and company_id; an email names one administrator alone."""
    return await connection.row(_ADMINISTRATOR_BY_EMAIL, email=email)


async def administrator_id(connection: Connection, company_id: int, email: str) -> int | None:
    found = await administrator(connection, email)
    return found["id"] if found is not None and found["company_id"] == company_id else None


# Keys

_NEW_KEY = Statement(
    insert(t.api_key)
    .values(
        company_id=_company_id,
        administrator_id=bindparam("administrator_id", type_=BigInteger),
        name=bindparam("name", type_=Text),
        prefix=bindparam("prefix", type_=Text),
        digest=bindparam("digest", type_=LargeBinary),
        scope=bindparam("scope", type_=Text),
    )
    .returning(t.api_key.c.id)
)
_KEYS = (
    select(*_key_columns, func.coalesce(t.administrator.c.email, "").label("administrator_email"))
    .select_from(t.api_key)
    .outerjoin(t.administrator, t.administrator.c.id == t.api_key.c.administrator_id)
)
_KEYS_OF_COMPANY = Statement(_KEYS.where(t.api_key.c.company_id == _company_id).order_by(t.api_key.c.id))
_key_id = bindparam("key_id", type_=BigInteger)
_KEY_FOR_UPDATE = Statement(_KEYS.where(t.api_key.c.id == _key_id).with_for_update(of=t.api_key))
_KEY_REVOKED = Statement(
    update(t.api_key)
    .where(t.api_key.c.id == _key_id)
    .values(revoked_at=func.clock_timestamp())
    .returning(t.api_key.c.revoked_at)
)


async def new_key_id(
    connection: Connection,
    company_id: int,
    *,
    administrator_id: int | None,
    name: str,
    prefix: str,
    digest: bytes,
    scope: str,
) -> int:
    found: int = await connection.value(
        _NEW_KEY,
        company_id=company_id,
        administrator_id=administrator_id,
        name=name,
        prefix=prefix,
        digest=digest,
        scope=scope,
    )
    return found


async def keys_of_company(connection: Connection, company_id: int) -> list[Record]:
    return await connection.rows(_KEYS_OF_COMPANY, company_id=company_id)


async def key_for_update(connection: Connection, key_id: int) -> Record | None:
    return await connection.row(_KEY_FOR_UPDATE, key_id=key_id)


async def key_revoked_at(connection: Connection, key_id: int) -> Any:
    return await connection.value(_KEY_REVOKED, key_id=key_id)


# What happened

_NOTIFY = Statement(select(func.pg_notify(CHANNEL, bindparam("payload", type_=Text))))


async def notify(connection: Connection, payload: str) -> None:
    """Reaches every gateway when, and only when, the transaction commits."""
    await connection.execute(_NOTIFY, payload=payload)


def _one(row: Record | None) -> Record:
    assert row is not None
    return row
