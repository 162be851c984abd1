"""The SQL statements of administrators' changes: pause, resume, rotate, retry."""

from __future__ import annotations

import datetime
import uuid
from typing import NamedTuple

from sqlalchemy import BigInteger, Integer, LargeBinary, Text, exists, func, null, or_, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Statement, param
from svc_webhooks.rules.subscriptions import SubscriptionHealth
from svc_webhooks.schema import Instant, Uuid, company
from svc_webhooks.subscriptions.records import ADMINISTERED, AdministeredSubscription
from svc_webhooks.tables.deliveries import delivery
from svc_webhooks.tables.events import event
from svc_webhooks.tables.subscriptions import subscription

_own = subscription.c.id == param("sub_id", BigInteger)
_shown = ADMINISTERED.renderer().record

# Subscriptions


class LockedHealth(NamedTuple):
    """A subscription's health; its row is locked, but fan-outs proceed."""

    company_id: int
    health: str
    failures_in_a_row: int
    paused_at: datetime.datetime | None
    paused_by: str
    pause_reason: str


class Pause(NamedTuple):
    """Since when, by whom and why a subscription is paused; none unless it is."""

    paused_at: datetime.datetime | None = None
    paused_by: str = ""
    pause_reason: str = ""


class SecretInUse(NamedTuple):
    """The visible part of a subscription's secret."""

    company_id: int
    secret_prefix: str
    secret_key_id: str
    secret_sealed: bytes
    secret_since: datetime.datetime


class Owned(NamedTuple):
    """A subscription's company and health. active: of the company; null if the replica lacks the company."""

    company_id: int
    health: str
    active: bool | None


_HEALTH = Query(
    LockedHealth,
    select(
        subscription.c.company_id,
        subscription.c.health,
        subscription.c.failures_in_a_row,
        subscription.c.paused_at,
        subscription.c.paused_by,
        subscription.c.pause_reason,
    )
    .where(_own)
    .with_for_update(key_share=True),
)
_SAVE_HEALTH = Statement(
    update(subscription)
    .where(_own)
    .values(
        health=param("health", Text),
        failures_in_a_row=param("failures_in_a_row", Integer),
        failing_since=null(),
        paused_at=param("paused_at", Instant),
        paused_by=param("paused_by", Text),
        pause_reason=param("pause_reason", Text),
    )
    .returning(*ADMINISTERED.columns)
)
_SECRET_PREFIX = Query(
    SecretInUse,
    select(
        subscription.c.company_id,
        subscription.c.secret_prefix,
        subscription.c.secret_key_id,
        subscription.c.secret_sealed,
        subscription.c.secret_since,
    ).where(_own),
)
_SAVE_SECRET = Statement(
    update(subscription)
    .where(_own, subscription.c.secret_prefix == param("known_prefix", Text))
    .values(
        secret_prefix=param("secret_prefix", Text),
        secret_key_id=param("secret_key_id", Text),
        secret_sealed=param("secret_sealed", LargeBinary),
        secret_since=param("secret_since", Instant),
    )
    .returning(*ADMINISTERED.columns)
)
_company = (
    select(subscription.c.company_id, subscription.c.health, company.c.active)
    .select_from(subscription.outerjoin(company, company.c.id == subscription.c.company_id))
    .where(_own)
)
_COMPANY = Query(Owned, _company)
# So that the subscription is not deleted until its delivery is there to be deleted with it.
_COMPANY_LOCKED = Query(Owned, _company.with_for_update(read=True, key_share=True, of=subscription))


async def health_for_update(connection: Connection, sub_id: int) -> LockedHealth | None:
    return await _HEALTH.row(connection, sub_id=sub_id)


async def health_saved(
    connection: Connection, sub_id: int, health: SubscriptionHealth, pause: Pause
) -> AdministeredSubscription:
    """Saves the health, which counts no failures, and returns the subscription after that."""
    row = await connection.row(
        _SAVE_HEALTH,
        sub_id=sub_id,
        health=health.health,
        failures_in_a_row=health.failures_in_a_row,
        **pause._asdict(),
    )
    assert row is not None
    return _shown(row)


async def secret_in_use(database: Database | Connection, sub_id: int) -> SecretInUse | None:
    return await _SECRET_PREFIX.row(database, sub_id=sub_id)


async def secret_replaced(
    connection: Connection,
    sub_id: int,
    known_prefix: str,
    *,
    prefix: str,
    key_id: str,
    sealed: bytes,
    since: datetime.datetime,
) -> AdministeredSubscription | None:
    """The subscription with its new secret; None if `known_prefix` no longer belongs to its secret.

    All columns of a secret change together. A secret that was only encrypted anew retains its prefix.
    """
    row = await connection.row(
        _SAVE_SECRET,
        sub_id=sub_id,
        known_prefix=known_prefix,
        secret_prefix=prefix,
        secret_key_id=key_id,
        secret_sealed=sealed,
        secret_since=since,
    )
    return None if row is None else _shown(row)


async def company_of(database: Database, sub_id: int) -> Owned | None:
    return await _COMPANY.row(database, sub_id=sub_id)


async def company_locked(connection: Connection, sub_id: int) -> Owned | None:
    """The subscription's row is locked; fan-outs and changes proceed."""
    return await _COMPANY_LOCKED.row(connection, sub_id=sub_id)


# Deliveries


class LockedDelivery(NamedTuple):
    """A locked delivery, with its event's key, its subscription's health and its company. active: as in `Owned`."""

    event: str
    state: str
    attempts: int
    company_id: int
    health: str
    active: bool | None


_DELIVERY = Query(
    LockedDelivery,
    select(
        event.c.event,
        delivery.c.state,
        delivery.c.attempts,
        subscription.c.company_id,
        subscription.c.health,
        company.c.active,
    )
    .select_from(
        delivery.join(subscription, subscription.c.id == delivery.c.subscription_id)
        .join(event, event.c.event_id == delivery.c.event_id)
        .outerjoin(company, company.c.id == subscription.c.company_id)
    )
    .where(delivery.c.event_id == param("event_id", Uuid), delivery.c.subscription_id == param("sub_id", BigInteger))
    .with_for_update(of=delivery),
)
# The ladder stays used up, so an attempt that fails parks the delivery again.
_due = {
    "state": text("'waiting'"),
    "due_at": param("now", Instant),
    "settled_at": null(),
    "requested_by": param("requested_by", Text),
}
_MAKE_DUE = Statement(
    update(delivery)
    .where(
        delivery.c.event_id == param("event_id", Uuid),
        delivery.c.subscription_id == param("sub_id", BigInteger),
        text("delivery.state = 'parked'"),
    )
    .values(**_due)
)
_has_key = exists().where(event.c.event_id == delivery.c.event_id, event.c.event == param("event", Text))
_parked = (
    select(delivery.c.event_id, delivery.c.subscription_id)
    .where(
        delivery.c.subscription_id == param("sub_id", BigInteger),
        text("delivery.state = 'parked'"),
        delivery.c.event_id > param("after_event_id", Uuid),
        delivery.c.event_id < param("until", Uuid),
        or_(param("event", Text).is_(None), _has_key),
        or_(
            param("event_ids", ARRAY(Uuid)).is_(None), delivery.c.event_id == func.any(param("event_ids", ARRAY(Uuid)))
        ),
    )
    .order_by(delivery.c.event_id)
    .limit(param("rows", Integer))
    .with_for_update(skip_locked=True)
    .cte("parked")
)
MAKE_PARKED_DUE = Statement(
    update(delivery)
    .where(
        delivery.c.event_id == _parked.c.event_id,
        delivery.c.subscription_id == _parked.c.subscription_id,
    )
    .values(**_due)
    .returning(delivery.c.event_id)
)


async def delivery_for_update(connection: Connection, event_id: uuid.UUID, sub_id: int) -> LockedDelivery | None:
    return await _DELIVERY.row(connection, event_id=event_id, sub_id=sub_id)


async def make_due(
    connection: Connection, event_id: uuid.UUID, sub_id: int, now: datetime.datetime, requested_by: str
) -> None:
    """Returns a parked delivery to waiting, due at `now`."""
    await connection.execute(_MAKE_DUE, event_id=event_id, sub_id=sub_id, now=now, requested_by=requested_by)


class Parked(NamedTuple):
    """Which parked deliveries of a subscription: of events after `after_event_id` and before `until`; with this key,
    and among these events, unless null."""

    after_event_id: uuid.UUID
    until: uuid.UUID
    event: str | None
    event_ids: list[uuid.UUID] | None


async def parked_made_due(
    connection: Connection, sub_id: int, which: Parked, now: datetime.datetime, requested_by: str, rows: int
) -> list[uuid.UUID]:
    """Returns up to `rows` parked deliveries to waiting, oldest first; returns their events."""
    made_due = await connection.rows(
        MAKE_PARKED_DUE, sub_id=sub_id, now=now, requested_by=requested_by, rows=rows, **which._asdict()
    )
    return [row["event_id"] for row in made_due]
