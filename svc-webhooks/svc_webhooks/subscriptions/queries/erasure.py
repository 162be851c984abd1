"""The SQL that deletes a subscription at once and its history in batches."""

from __future__ import annotations

import uuid

from sqlalchemy import BigInteger, ColumnElement, Integer, Table, and_, delete, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from svc_webhooks.schema import Uuid
from svc_webhooks.tables.deliveries import attempt, delivery
from svc_webhooks.tables.subscriptions import erasure, subscription

_gone = (
    delete(subscription)
    .where(
        subscription.c.company_id == param("company_id", BigInteger), subscription.c.id == param("sub_id", BigInteger)
    )
    .returning(subscription.c.id)
    .cte("gone")
)
DELETED = Statement(
    insert(erasure)
    .from_select(["subscription_id"], select(_gone.c.id), include_defaults=False)
    .returning(erasure.c.subscription_id)
)


async def subscription_deleted(database: Database, company_id: int, sub_id: int) -> bool:
    """Deletes a subscription and notes its history for erasure; False if the company has none with that id.

    It waits for running fan-outs and records, which hold the row FOR KEY SHARE: their rows are erased with the history.
    Later ones find no subscription.
    """
    return await database.value(DELETED, company_id=company_id, sub_id=sub_id) is not None


# One process at a time deletes a subscription's history; another process takes another subscription.
_any_or = or_(param("sub_id", BigInteger).is_(None), erasure.c.subscription_id == param("sub_id", BigInteger))
_TAKEN = Statement(
    select(erasure.c.subscription_id)
    .where(_any_or)
    .order_by(erasure.c.asked_at)
    .limit(1)
    .with_for_update(skip_locked=True)
)


# Reads the index of a subscription's deliveries from one batch to the next.
SOME = Statement(
    select(delivery.c.event_id)
    .where(
        delivery.c.subscription_id == param("sub_id", BigInteger),
        delivery.c.event_id > param("after", Uuid),
    )
    .order_by(delivery.c.event_id)
    .limit(param("rows", Integer))
)


def _of_them(table: Table) -> ColumnElement[bool]:
    """The ids are parameters: with a join the planner sometimes reads whole partitions. The bounds limit any plan to
    the partitions concerned."""
    return and_(
        table.c.subscription_id == param("sub_id", BigInteger),
        table.c.event_id == func.any(param("ids", ARRAY(Uuid))),
        table.c.event_id >= param("first", Uuid),
        table.c.event_id <= param("last", Uuid),
    )


DELETE_THEM = Statement(
    delete(delivery).where(_of_them(delivery)).add_cte(delete(attempt).where(_of_them(attempt)).cte("tried"))
)
_FORGET = Statement(delete(erasure).where(erasure.c.subscription_id == param("sub_id", BigInteger)))


async def erasure_taken(connection: Connection, sub_id: int | None) -> int | None:
    """Locks a noted subscription, either this one or the oldest; None if other processes work on all of them."""
    taken: int | None = await connection.value(_TAKEN, sub_id=sub_id)
    return taken


async def deliveries_deleted(connection: Connection, sub_id: int, after: uuid.UUID, rows: int) -> list[uuid.UUID]:
    """Deletes up to `rows` deliveries of events after `after`, with their attempts; returns their events."""
    ids = [row["event_id"] for row in await connection.rows(SOME, sub_id=sub_id, after=after, rows=rows)]
    if ids:
        await connection.execute(DELETE_THEM, sub_id=sub_id, ids=ids, first=ids[0], last=ids[-1])
    return ids


async def forget_erasure(connection: Connection, sub_id: int) -> None:
    await connection.execute(_FORGET, sub_id=sub_id)
