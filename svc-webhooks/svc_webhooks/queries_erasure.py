"""The SQL of a subscription's end: the subscription at once, its history batch by batch."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from sqlalchemy import Integer, bindparam, delete, func, literal_column, or_, select
from sqlalchemy.dialects.postgresql import UUID, insert

from chassis.database import Connection, Database
from chassis.statements import Statement
from svc_webhooks import tables as t
from svc_webhooks.queries import bigint

FIRST = uuid.UUID(int=0)

_gone = (
    delete(t.subscription)
    .where(t.subscription.c.company_id == bigint("company_id"), t.subscription.c.id == bigint("sub_id"))
    .returning(t.subscription.c.id)
    .cte("gone")
)
_DELETE_SUBSCRIPTION = Statement(
    insert(t.erasure)
    .from_select(["subscription_id"], select(_gone.c.id), include_defaults=False)
    .returning(t.erasure.c.subscription_id)
)


async def subscription_deleted(database: Database, company_id: int, sub_id: int) -> bool:
    """Deletes a subscription and notes that its history goes; False where the company has none with that id.

    It waits for the fan-outs and records under way, which hold the row FOR KEY SHARE: what they leave goes with the
    history, and what comes later finds no subscription.
    """
    return await database.value(_DELETE_SUBSCRIPTION, company_id=company_id, sub_id=sub_id) is not None


# One subscription's history is deleted by one process at a time; another process takes another's.
_any_or = or_(bigint("sub_id").is_(None), t.erasure.c.subscription_id == bigint("sub_id"))
_TAKEN = Statement(
    select(t.erasure.c.subscription_id)
    .where(_any_or)
    .order_by(t.erasure.c.asked_at)
    .limit(1)
    .with_for_update(skip_locked=True)
)


def _delete_some() -> Statement:
    """By the index of a subscription's deliveries, from one batch to the next; attempts by their primary key."""
    some = (
        select(t.delivery.c.event_id)
        .where(
            t.delivery.c.subscription_id == bigint("sub_id"),
            t.delivery.c.event_id > bindparam("after", type_=UUID(as_uuid=True)),
        )
        .order_by(t.delivery.c.event_id)
        .limit(bindparam("rows", type_=Integer))
        .cte("some")
    )
    tried = (
        delete(t.attempt)
        .where(t.attempt.c.event_id == some.c.event_id, t.attempt.c.subscription_id == bigint("sub_id"))
        .cte("tried")
    )
    gone = (
        delete(t.delivery)
        .where(t.delivery.c.event_id == some.c.event_id, t.delivery.c.subscription_id == bigint("sub_id"))
        .cte("gone")
    )
    last = select(some.c.event_id).order_by(some.c.event_id.desc()).limit(literal_column("1")).scalar_subquery()
    return Statement(select(func.count(), last).select_from(some).add_cte(tried, gone))


_DELETE_SOME = _delete_some()
_FORGET = Statement(delete(t.erasure).where(t.erasure.c.subscription_id == bigint("sub_id")))


class Batch(NamedTuple):
    """deliveries: how many were deleted; last: the last of their events."""

    deliveries: int
    last: uuid.UUID


async def erasure_taken(connection: Connection, sub_id: int | None) -> int | None:
    """Locks the noted subscription, or the one noted first; None where there is none that nobody else works on."""
    found: int | None = await connection.value(_TAKEN, sub_id=sub_id)
    return found


async def deliveries_deleted(connection: Connection, sub_id: int, after: uuid.UUID, rows: int) -> Batch:
    """Deletes up to `rows` deliveries of later events than `after`, with their attempts."""
    found = await connection.row(_DELETE_SOME, sub_id=sub_id, after=after, rows=rows)
    assert found is not None
    return Batch(found[0], found[1] or after)


async def forget_erasure(connection: Connection, sub_id: int) -> None:
    await connection.execute(_FORGET, sub_id=sub_id)
