"""The SQL statements about API keys, named for what they return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, LargeBinary, Text, all_, bindparam, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from gateway.identity.administrators.tables import administrator
from gateway.identity.companies.tables import company
from gateway.identity.keys import rules
from gateway.identity.keys.tables import api_key

_company_id = bindparam("company_id", type_=BigInteger)
_key_columns = (
    api_key.c.id,
    api_key.c.company_id,
    api_key.c.name,
    api_key.c.prefix,
    api_key.c.scope,
    api_key.c.created_at,
    api_key.c.revoked_at,
    api_key.c.administrator_id,
)

_KEY_BY_DIGEST = Statement(
    select(
        *_key_columns,
        company.c.name.label("company_name"),
        company.c.timezone,
        company.c.active,
    )
    .join_from(api_key, company, company.c.id == api_key.c.company_id)
    .where(api_key.c.digest == bindparam("digest", type_=LargeBinary))
)


async def key_by_digest(database: Database, digest: bytes) -> Record | None:
    """The key with this SHA-256, revoked or not, and its company."""
    return await database.row(_KEY_BY_DIGEST, digest=digest)


DIGEST_HEAD_BYTES = 8
_UNCHECKED_DIGESTS = Statement(
    select(
        func.coalesce(
            func.string_agg(
                func.substring(api_key.c.digest, 1, DIGEST_HEAD_BYTES),
                aggregate_order_by(literal(b"", LargeBinary), api_key.c.digest),
            ),
            literal(b"", LargeBinary),
        )
    ).where(
        # A prefix is the key's mark and the visible random characters.
        func.left(api_key.c.prefix, -rules.VISIBLE_CHARACTERS) != all_(bindparam("marks", type_=ARRAY(Text)))
    )
)


async def unchecked_digests(database: Database, marks: Sequence[str]) -> bytes:
    """The first DIGEST_HEAD_BYTES of the SHA-256 of each key whose check can't be verified here, in ascending order.

    marks: those of the keys whose check can. The others are of release 0.2.0, or of a ring that is not known here.
    """
    found: bytes = await database.value(_UNCHECKED_DIGESTS, marks=list(marks))
    return found


_NEW_KEY = Statement(
    insert(api_key)
    .values(
        company_id=_company_id,
        administrator_id=bindparam("administrator_id", type_=BigInteger),
        name=bindparam("name", type_=Text),
        prefix=bindparam("prefix", type_=Text),
        digest=bindparam("digest", type_=LargeBinary),
        scope=bindparam("scope", type_=Text),
    )
    .returning(api_key.c.id)
)
_KEYS = (
    select(*_key_columns, func.coalesce(administrator.c.email, "").label("administrator_email"))
    .select_from(api_key)
    .outerjoin(administrator, administrator.c.id == api_key.c.administrator_id)
)
_KEYS_OF_COMPANY = Statement(_KEYS.where(api_key.c.company_id == _company_id).order_by(api_key.c.id))
_key_id = bindparam("key_id", type_=BigInteger)
_KEY_FOR_UPDATE = Statement(_KEYS.where(api_key.c.id == _key_id).with_for_update(of=api_key))
_KEY_REVOKED = Statement(
    update(api_key)
    .where(api_key.c.id == _key_id)
    .values(revoked_at=func.clock_timestamp())
    .returning(api_key.c.revoked_at)
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
