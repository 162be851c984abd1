"""The SQL statements about API keys, named for what they return."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence

from asyncpg import Record
from sqlalchemy import (
    BigInteger,
    Integer,
    LargeBinary,
    Text,
    all_,
    and_,
    bindparam,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by

from chassis.db.database import Connection, Database
from chassis.db.statements import CLOCK, TIME, Statement
from gateway.identity.keys import rules
from gateway.identity.keys.tables import api_key
from gateway.identity.tables.administrators import administrator
from gateway.identity.tables.companies import company
from gateway.identity.usage.tables import key_last_use

_company_id = bindparam("company_id", type_=BigInteger)
_key_columns = (
    api_key.c.id,
    api_key.c.company_id,
    api_key.c.name,
    api_key.c.prefix,
    api_key.c.scope,
    api_key.c.created_at,
    api_key.c.revoked_at,
    api_key.c.expires_at,
    api_key.c.administrator_id,
)

_KEY_BY_DIGEST = Statement(
    select(
        *_key_columns,
        company.c.name.label("company_name"),
        company.c.timezone,
        company.c.active,
        company.c.is_sandbox,
    )
    .join_from(api_key, company, company.c.id == api_key.c.company_id)
    .where(api_key.c.digest == bindparam("digest", type_=LargeBinary), company.c.ended_at.is_(None))
)


async def key_by_digest(database: Database, digest: bytes) -> Record | None:
    """The key with this SHA-256, revoked or not, and its company. A key of a company that has ended is none."""
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
    heads: bytes = await database.value(_UNCHECKED_DIGESTS, marks=list(marks))
    return heads


_NEW_KEY = Statement(
    insert(api_key)
    .values(
        company_id=_company_id,
        administrator_id=bindparam("administrator_id", type_=BigInteger),
        name=bindparam("name", type_=Text),
        prefix=bindparam("prefix", type_=Text),
        digest=bindparam("digest", type_=LargeBinary),
        scope=bindparam("scope", type_=Text),
        expires_at=bindparam("expires_at", type_=TIME),
        replaces=bindparam("replaces", type_=BigInteger),
    )
    .returning(api_key.c.id)
)
_successor = api_key.alias("successor")
_KEYS = (
    select(
        *_key_columns,
        api_key.c.replaces,
        company.c.is_sandbox,
        _successor.c.id.label("replaced_by"),
        func.coalesce(administrator.c.email, literal("", Text)).label("administrator_email"),
        func.coalesce(administrator.c.name, literal("", Text)).label("administrator_name"),
        administrator.c.active.label("administrator_active"),
        key_last_use.c.used_at.label("last_used_at"),
        key_last_use.c.address.label("last_used_address"),
        key_last_use.c.used_for.label("last_used_for"),
    )
    .select_from(api_key)
    .join(company, company.c.id == api_key.c.company_id)
    .outerjoin(administrator, administrator.c.id == api_key.c.administrator_id)
    .outerjoin(_successor, _successor.c.replaces == api_key.c.id)
    .outerjoin(key_last_use, key_last_use.c.api_key_id == api_key.c.id)
)
_administrator_id = bindparam("administrator_id", type_=BigInteger)
_is_working = and_(api_key.c.revoked_at.is_(None), or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > CLOCK))
_PAGE = (
    _KEYS.where(
        api_key.c.company_id == _company_id,
        api_key.c.id > bindparam("after_id", type_=BigInteger),
        or_(_administrator_id.is_(None), api_key.c.administrator_id == _administrator_id),
    )
    .order_by(api_key.c.id)
    .limit(bindparam("rows", type_=Integer))
)
_KEYS_PAGE = Statement(_PAGE)
_ACTIVE_KEYS_PAGE = Statement(_PAGE.where(_is_working))
_KEYS_BY_ID = Statement(
    _KEYS.where(api_key.c.id == func.any(bindparam("key_ids", type_=ARRAY(BigInteger)))).order_by(api_key.c.id)
)
_WORKING_FOR_UPDATE = Statement(
    select(api_key.c.id)
    .where(api_key.c.company_id == _company_id, api_key.c.administrator_id == _administrator_id, _is_working)
    .order_by(api_key.c.id)
    .with_for_update()
)
_key_id = bindparam("key_id", type_=BigInteger)
_KEY = Statement(_KEYS.where(api_key.c.id == _key_id))
_KEY_FOR_UPDATE = Statement(_KEYS.where(api_key.c.id == _key_id).with_for_update(of=api_key))
_KEY_EXPIRES = Statement(
    update(api_key).where(api_key.c.id == _key_id).values(expires_at=bindparam("new_expires_at", type_=TIME))
)
_KEY_OF = Statement(
    update(api_key)
    .where(api_key.c.id == _key_id)
    .values(administrator_id=bindparam("new_administrator_id", type_=BigInteger))
)
_KEY_REVOKED = Statement(
    update(api_key)
    .where(api_key.c.id == _key_id)
    .values(revoked_at=func.clock_timestamp())
    .returning(api_key.c.revoked_at)
)


@dataclasses.dataclass(frozen=True, slots=True)
class NewKey:
    """A key to store. The columns of api_key have the same names."""

    company_id: int
    administrator_id: int | None
    """Whom the key's writes name; None: nobody."""
    name: str
    prefix: str
    digest: bytes
    scope: str
    expires_at: datetime.datetime | None
    replaces: int | None
    """The key in whose place a rotation makes this one."""


async def new_key_id(connection: Connection, key: NewKey) -> int:
    key_id: int = await connection.value(_NEW_KEY, **dataclasses.asdict(key))
    return key_id


async def keys_page(
    connection: Connection,
    company_id: int,
    after_id: int,
    rows: int,
    *,
    active_only: bool,
    administrator_id: int | None = None,
) -> list[Record]:
    """Keys of the company with a higher id, ascending. administrator_id: only keys of this administrator."""
    page = _ACTIVE_KEYS_PAGE if active_only else _KEYS_PAGE
    return await connection.rows(
        page, company_id=company_id, after_id=after_id, rows=rows, administrator_id=administrator_id
    )


async def keys(connection: Connection, key_ids: Sequence[int]) -> list[Record]:
    """The keys with these ids, ascending."""
    return await connection.rows(_KEYS_BY_ID, key_ids=list(key_ids))


async def working_keys_for_update(connection: Connection, company_id: int, administrator_id: int) -> list[int]:
    """The ids of the administrator's keys that are neither revoked nor expired, ascending."""
    rows = await connection.rows(_WORKING_FOR_UPDATE, company_id=company_id, administrator_id=administrator_id)
    return [row["id"] for row in rows]


async def key(connection: Connection, key_id: int) -> Record | None:
    return await connection.row(_KEY, key_id=key_id)


async def key_for_update(connection: Connection, key_id: int) -> Record | None:
    return await connection.row(_KEY_FOR_UPDATE, key_id=key_id)


async def set_expiry(connection: Connection, key_id: int, expires_at: datetime.datetime) -> None:
    await connection.execute(_KEY_EXPIRES, key_id=key_id, new_expires_at=expires_at)


async def set_administrator(connection: Connection, key_id: int, administrator_id: int) -> None:
    await connection.execute(_KEY_OF, key_id=key_id, new_administrator_id=administrator_id)


async def key_revoked_at(connection: Connection, key_id: int) -> datetime.datetime:
    revoked_at: datetime.datetime = await connection.value(_KEY_REVOKED, key_id=key_id)
    return revoked_at
