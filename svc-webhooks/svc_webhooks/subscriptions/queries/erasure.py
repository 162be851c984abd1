"""The SQL of a subscription's end: the subscription at once, its history batch by batch."""

from __future__ import annotations

import uuid

from sqlalchemy import BigInteger, ColumnElement, Integer, Table, and_, delete, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from svc_webhooks.dispatch.tables import attempt, delivery
from svc_webhooks.schema import Uuid
from svc_webhooks.subscriptions.tables import erasure, subscription

_gone = (
    delete(subscription)
    .where(
        subscription.c.company_id == param("company_id", BigInteger), subscription.c.id == param("sub_id", BigInteger)
    )
    .returning(subscription.c.id)
    .cte("gone")
)
_DELETE_SUBSCRIPTION = Statement(
    insert(erasure)
    .from_select(["subscription_id"], select(_gone.c.id), include_defaults=False)
    .returning(erasure.c.subscription_id)
)


async def subscription_deleted(database: Database, company_id: int, sub_id: int) -> bool:
    """Deletes a subscription and notes that its history goes; False where the company has none with that id.

    It waits for the fan-outs and records under way, which hold the row FOR KEY SHARE: what they leave goes with the
    history, and what comes later finds no subscription.
    """
    return await database.value(_DELETE_SUBSCRIPTION, company_id=company_id, sub_id=sub_id) is not None


# One subscription's history is deleted by one process at a time; another process takes another's.
_any_or = or_(param("sub_id", BigInteger).is_(None), erasure.c.subscription_id == param("sub_id", BigInteger))
_TAKEN = Statement(
    select(erasure.c.subscription_id)
    .where(_any_or)
    .order_by(erasure.c.asked_at)
    .limit(1)
    .with_for_update(skip_locked=True)
)


# By the index of a subscription's deliveries, from one batch to the next.
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
    """Given as values: joined to what it finds, the planner would now and then read whole partitions. The bounds keep
    it to the partitions concerned, whichever plan it has."""
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
    """Locks the noted subscription, or the one noted first; None where there is none that nobody else works on."""
    found: int | None = await connection.value(_TAKEN, sub_id=sub_id)
    return found


async def deliveries_deleted(connection: Connection, sub_id: int, after: uuid.UUID, rows: int) -> list[uuid.UUID]:
    """Deletes up to `rows` deliveries of later events than `after`, with their attempts; returns their events."""
    ids = [row["event_id"] for row in await connection.rows(SOME, sub_id=sub_id, after=after, rows=rows)]
    if ids:
        await connection.execute(DELETE_THEM, sub_id=sub_id, ids=ids, first=ids[0], last=ids[-1])
    return ids


async def forget_erasure(connection: Connection, sub_id: int) -> None:
    await connection.execute(_FORGET, sub_id=sub_id)
