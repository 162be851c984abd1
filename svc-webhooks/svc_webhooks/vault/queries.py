"""The SQL of the vault: sealed secrets, and which keys seal them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, LargeBinary, Text, func, select, update

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from svc_webhooks.array_rows import array_rows
from svc_webhooks.subscriptions.tables import subscription

_sealed = (subscription.c.id, subscription.c.secret_key_id, subscription.c.secret_sealed)
_SECRETS = Statement(
    select(*_sealed)
    .where(subscription.c.id > param("after_id", BigInteger))
    .order_by(subscription.c.id)
    .limit(param("rows", Integer))
)


async def secrets_sealed(database: Database, after_id: int, rows: int) -> list[Record]:
    """Id, secret_key_id and secret_sealed of subscriptions, ascending by id."""
    return await database.rows(_SECRETS, after_id=after_id, rows=rows)


# Any one stands for all that its key seals.
_one_each = select(subscription.c.secret_key_id, func.count().label("secrets"), func.min(subscription.c.id))
_keys = _one_each.group_by(subscription.c.secret_key_id).subquery("keys")
_KEYS = Statement(
    select(_keys.c.secrets, *_sealed)
    .select_from(_keys.join(subscription, subscription.c.id == _keys.c.min))
    .order_by(subscription.c.secret_key_id)
)


async def keys_in_use(database: Database) -> list[Record]:
    """Of each key that seals secrets: how many, and one of them with its subscription's id."""
    return await database.rows(_KEYS)


class Resealed(NamedTuple):
    """A secret as it was read, and as it shall be."""

    id: int
    old_key_id: str
    old_sealed: bytes
    key_id: str
    sealed: bytes


def _reseal() -> Statement:
    made = array_rows("made", id=BigInteger, old_key_id=Text, old_sealed=LargeBinary, key_id=Text, sealed=LargeBinary)
    # In the order of their ids, as everybody else locks them.
    locked = (
        select(subscription.c.id)
        .where(subscription.c.id.in_(select(made.c.id)))
        .order_by(subscription.c.id)
        .with_for_update(key_share=True)
        .cte("locked")
    )
    # A secret that was rotated since it was read is the new one, and stays.
    return Statement(
        update(subscription)
        .where(
            subscription.c.id == locked.c.id,
            subscription.c.id == made.c.id,
            subscription.c.secret_key_id == made.c.old_key_id,
            subscription.c.secret_sealed == made.c.old_sealed,
        )
        .values(secret_key_id=made.c.key_id, secret_sealed=made.c.sealed)
        .returning(subscription.c.id, subscription.c.company_id, made.c.old_key_id)
    )


_RESEAL = _reseal()


async def secrets_resealed(connection: Connection, made: Sequence[Resealed]) -> list[Record]:
    """Writes those that are still what was read; returns their id, company_id and old_key_id."""
    columns = dict(zip(Resealed._fields, map(list, zip(*made, strict=True)), strict=True))
    return await connection.rows(_RESEAL, **columns)
