"""The SQL statements of what an administrator changes: pause, resume, rotate, retry."""

from __future__ import annotations

import datetime
import uuid

from asyncpg import Record
from sqlalchemy import Integer, LargeBinary, Text, bindparam, null, select, text, update

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from svc_webhooks import rules
from svc_webhooks import tables as t
from svc_webhooks.queries import SHOWN, Instant, Uuid, bigint

_own = t.subscription.c.id == bigint("sub_id")
_administered = (*SHOWN, t.subscription.c.company_id, t.subscription.c.paused_at, t.subscription.c.failures_in_a_row)

# Subscriptions

_STANDING = Statement(
    select(
        t.subscription.c.company_id,
        t.subscription.c.health,
        t.subscription.c.failures_in_a_row,
        t.subscription.c.paused_at,
    )
    .where(_own)
    .with_for_update(key_share=True)
)
_SAVE_STANDING = Statement(
    update(t.subscription)
    .where(_own)
    .values(
        health=bindparam("health", type_=Text),
        failures_in_a_row=bindparam("failures_in_a_row", type_=Integer),
        paused_at=bindparam("paused_at", type_=Instant),
    )
    .returning(*_administered)
)
_SECRET_PREFIX = Statement(
    select(t.subscription.c.company_id, t.subscription.c.secret_prefix, t.subscription.c.secret_key_id).where(_own)
)
_SAVE_SECRET = Statement(
    update(t.subscription)
    .where(_own, t.subscription.c.secret_prefix == bindparam("known_prefix", type_=Text))
    .values(
        secret_prefix=bindparam("secret_prefix", type_=Text),
        secret_key_id=bindparam("secret_key_id", type_=Text),
        secret_sealed=bindparam("secret_sealed", type_=LargeBinary),
    )
    .returning(*_administered)
)
_COMPANY = Statement(
    select(t.subscription.c.company_id, t.subscription.c.health, t.company.c.active)
    .select_from(t.subscription.outerjoin(t.company, t.company.c.id == t.subscription.c.company_id))
    .where(_own)
)


async def standing_for_update(connection: Connection, sub_id: int) -> Record | None:
    """company_id, health, failures_in_a_row and paused_at, locked; fan-outs go on beside."""
    return await connection.row(_STANDING, sub_id=sub_id)


async def standing_saved(
    connection: Connection, sub_id: int, standing: rules.Standing, paused_at: datetime.datetime | None
) -> Record:
    """The subscription as it is then."""
    row = await connection.row(
        _SAVE_STANDING,
        sub_id=sub_id,
        health=standing.health,
        failures_in_a_row=standing.failures_in_a_row,
        paused_at=paused_at,
    )
    assert row is not None
    return row


async def secret_known(database: Database, sub_id: int) -> Record | None:
    """company_id, secret_prefix, secret_key_id."""
    return await database.row(_SECRET_PREFIX, sub_id=sub_id)


async def secret_replaced(
    connection: Connection, sub_id: int, known_prefix: str, *, prefix: str, key_id: str, sealed: bytes
) -> Record | None:
    """The subscription with its new secret; None where that of `known_prefix` is not its secret any more.

    All that belongs to a secret is replaced at once. A secret that was merely encrypted anew has its prefix still.
    """
    return await connection.row(
        _SAVE_SECRET,
        sub_id=sub_id,
        known_prefix=known_prefix,
        secret_prefix=prefix,
        secret_key_id=key_id,
        secret_sealed=sealed,
    )


async def company_of(database: Database, sub_id: int) -> Record | None:
    """company_id, the subscription's health, and whether the company is active (null: not known yet)."""
    return await database.row(_COMPANY, sub_id=sub_id)


# Deliveries

_DELIVERY = Statement(
    select(
        t.delivery.c.state,
        t.delivery.c.attempts,
        t.subscription.c.company_id,
        t.subscription.c.health,
        t.company.c.active,
    )
    .select_from(
        t.delivery.join(t.subscription, t.subscription.c.id == t.delivery.c.subscription_id).outerjoin(
            t.company, t.company.c.id == t.subscription.c.company_id
        )
    )
    .where(t.delivery.c.event_id == bindparam("event_id", type_=Uuid), t.delivery.c.subscription_id == bigint("sub_id"))
    .with_for_update(of=t.delivery)
)
# The ladder stays used up: an attempt that fails parks the delivery again.
_due = {"state": text("'waiting'"), "due_at": bindparam("now", type_=Instant), "settled_at": null()}
_MAKE_DUE = Statement(
    update(t.delivery)
    .where(
        t.delivery.c.event_id == bindparam("event_id", type_=Uuid),
        t.delivery.c.subscription_id == bigint("sub_id"),
        text("delivery.state = 'parked'"),
    )
    .values(**_due)
)
_parked = (
    select(t.delivery.c.event_id, t.delivery.c.subscription_id)
    .where(
        t.delivery.c.subscription_id == bigint("sub_id"),
        text("delivery.state = 'parked'"),
        t.delivery.c.event_id > bindparam("after_event_id", type_=Uuid),
    )
    .order_by(t.delivery.c.event_id)
    .limit(bindparam("rows", type_=Integer))
    .with_for_update(skip_locked=True)
    .cte("parked")
)
_MAKE_PARKED_DUE = Statement(
    update(t.delivery)
    .where(
        t.delivery.c.event_id == _parked.c.event_id,
        t.delivery.c.subscription_id == _parked.c.subscription_id,
    )
    .values(**_due)
    .returning(t.delivery.c.event_id)
)


async def delivery_for_update(connection: Connection, event_id: uuid.UUID, sub_id: int) -> Record | None:
    """state and attempts, locked, with company_id, health and whether the company is active."""
    return await connection.row(_DELIVERY, event_id=event_id, sub_id=sub_id)


async def make_due(connection: Connection, event_id: uuid.UUID, sub_id: int, now: datetime.datetime) -> None:
    """A parked delivery waits again."""
    await connection.execute(_MAKE_DUE, event_id=event_id, sub_id=sub_id, now=now)


async def parked_made_due(
    connection: Connection, sub_id: int, now: datetime.datetime, after_event_id: uuid.UUID, rows: int
) -> list[uuid.UUID]:
    """The events of up to `rows` deliveries that were parked and wait again, oldest first after an event."""
    found = await connection.rows(_MAKE_PARKED_DUE, sub_id=sub_id, now=now, after_event_id=after_event_id, rows=rows)
    return [row["event_id"] for row in found]
