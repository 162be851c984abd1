"""The SQL of the vault: sealed secrets, and the keys that seal them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, Integer, LargeBinary, Text, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.rows import columns_of_tuples
from chassis.db.statements import Query, Statement, param, sql
from svc_webhooks.tables.subscriptions import subscription


class SealedSecret(NamedTuple):
    """A subscription's secret as stored."""

    id: int
    secret_key_id: str
    secret_sealed: bytes


class KeyInUse(NamedTuple):
    """A key that seals secrets: their number, and one of them with its subscription's id."""

    secrets: int
    id: int
    secret_key_id: str
    secret_sealed: bytes


_sealed = (subscription.c.id, subscription.c.secret_key_id, subscription.c.secret_sealed)
_SECRETS = Query(
    SealedSecret,
    select(*_sealed)
    .where(subscription.c.id > param("after_id", BigInteger))
    .order_by(subscription.c.id)
    .limit(param("rows", Integer)),
)


async def secrets_sealed(database: Database, after_id: int, rows: int) -> list[SealedSecret]:
    """Ascending by subscription id."""
    return await _SECRETS.rows(database, after_id=after_id, rows=rows)


# One secret stands for all that its key seals.
_one_each = select(subscription.c.secret_key_id, func.count().label("secrets"), func.min(subscription.c.id))
_keys = _one_each.group_by(subscription.c.secret_key_id).subquery("keys")
_KEYS = Query(
    KeyInUse,
    select(_keys.c.secrets, *_sealed)
    .select_from(_keys.join(subscription, subscription.c.id == _keys.c.min))
    .order_by(subscription.c.secret_key_id),
)


async def keys_in_use(database: Database) -> list[KeyInUse]:
    return await _KEYS.rows(database)


class Resealed(NamedTuple):
    """A secret as it was read, and as it is to be stored."""

    id: int
    old_key_id: str
    old_sealed: bytes
    key_id: str
    sealed: bytes


class Written(NamedTuple):
    """A secret that was sealed anew. id: of its subscription."""

    id: int
    company_id: int
    old_key_id: str


# All statements lock subscriptions in the order of ids. A secret that was rotated since it was read stays as it is.
_RESEAL = Statement(
    sql(
        """
        WITH resealed AS (
            SELECT * FROM unnest(:id, :old_key_id, :old_sealed, :key_id, :sealed)
                AS row(id, old_key_id, old_sealed, key_id, sealed)
        ),
        locked AS (
            SELECT id FROM subscription WHERE id IN (SELECT id FROM resealed) ORDER BY id FOR NO KEY UPDATE
        )
        UPDATE subscription SET secret_key_id = resealed.key_id, secret_sealed = resealed.sealed
        FROM locked, resealed
        WHERE subscription.id = locked.id
          AND subscription.id = resealed.id
          AND subscription.secret_key_id = resealed.old_key_id
          AND subscription.secret_sealed = resealed.old_sealed
        RETURNING subscription.id, subscription.company_id, resealed.old_key_id
        """,
        id=ARRAY(BigInteger),
        old_key_id=ARRAY(Text),
        old_sealed=ARRAY(LargeBinary),
        key_id=ARRAY(Text),
        sealed=ARRAY(LargeBinary),
    )
)


async def secrets_resealed(connection: Connection, resealed: Sequence[Resealed]) -> list[Written]:
    """Writes the secrets that have not changed since they were read, and returns them."""
    rows = await connection.rows(_RESEAL, **columns_of_tuples(resealed))
    return [Written(*row) for row in rows]
