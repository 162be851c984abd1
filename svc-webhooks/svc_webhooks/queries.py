"""Every SQL statement of svc-webhooks, named for what it returns."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from asyncpg import Record
from sqlalchemy import (
    BigInteger,
    BindParameter,
    DateTime,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    null,
    or_,
    select,
    text,
    true,
    type_coerce,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, UUID, insert
from sqlalchemy.sql.selectable import CTE
from sqlalchemy.types import NullType

from chassis.database import Connection, Database
from chassis.idempotency import InsertOnce
from chassis.paging import Pages
from chassis.statements import Statement
from svc_webhooks import rules
from svc_webhooks import tables as t

_Uuid = UUID(as_uuid=True)
_Instant = DateTime(timezone=True)


def _id(name: str) -> BindParameter[int]:
    return bindparam(name, type_=BigInteger)


def _rows(name: str, **columns: Any) -> CTE:
    """Parameters of arrays, one a column, as rows."""
    arrays = [bindparam(column, type_=ARRAY(kind)) for column, kind in columns.items()]
    offered = func.unnest(*arrays).table_valued(*columns).render_derived()
    return select(*offered.c).cte(name)


# Subscriptions

_SHOWN = (
    t.subscription.c.id,
    t.subscription.c.destination_url,
    type_coerce(t.subscription.c.events, NullType()).label("events"),  # asyncpg's own list is what is wanted
    t.subscription.c.health,
    t.subscription.c.secret_prefix,
    t.subscription.c.created_at,
    t.subscription.c.source,
)

SUBSCRIPTIONS_PAGE = Pages(select(*_SHOWN), t.subscription.c.company_id, t.subscription.c.id, {})
CREATE_SUBSCRIPTION = InsertOnce(t.idempotency, t.subscription)

_OWN = and_(t.subscription.c.company_id == _id("company_id"), t.subscription.c.id == _id("sub_id"))
_LOCKED = Statement(select(t.subscription.c.id).where(_OWN).with_for_update())
_DELETE_ATTEMPTS = Statement(
    delete(t.attempt).where(
        t.delivery.c.subscription_id == _id("sub_id"),
        t.attempt.c.event_id == t.delivery.c.event_id,
        t.attempt.c.subscription_id == t.delivery.c.subscription_id,
    )
)
_DELETE_DELIVERIES = Statement(delete(t.delivery).where(t.delivery.c.subscription_id == _id("sub_id")))
_DELETE_SUBSCRIPTION = Statement(delete(t.subscription).where(_OWN))


async def subscription_deleted(database: Database, company_id: int, sub_id: int) -> bool:
    """Deletes a subscription with its history; False where the company has none with that id.

    The row's lock waits for the fan-outs under way: what they match is deleted too, and what comes later
    matches nothing.
    """
    async with database.transaction() as connection:
        if await connection.value(_LOCKED, company_id=company_id, sub_id=sub_id) is None:
            return False
        await connection.execute(_DELETE_ATTEMPTS, sub_id=sub_id)
        await connection.execute(_DELETE_DELIVERIES, sub_id=sub_id)
        await connection.execute(_DELETE_SUBSCRIPTION, company_id=company_id, sub_id=sub_id)
    return True


# Events


class StoredEvent(NamedTuple):
    """One event on its way into the database."""

    event_id: uuid.UUID
    company_id: int
    event: str
    entity_id: int
    occurred_at: datetime.datetime
    request_id: str
    body: bytes
    due_at: datetime.datetime


def _store_events() -> Statement:
    offered = _rows(
        "offered",
        event_id=_Uuid,
        company_id=BigInteger,
        event=Text,
        entity_id=BigInteger,
        occurred_at=_Instant,
        request_id=Text,
        body=LargeBinary,
        due_at=_Instant,
    )
    kept = ("event_id", "company_id", "event", "entity_id", "occurred_at", "request_id", "body")
    stored = insert(t.event).from_select(kept, select(*(offered.c[name] for name in kept)), include_defaults=False)
    # KEY SHARE: a subscription can't be deleted between the match and the commit, its health may change.
    matching = (
        select(t.subscription.c.id, t.subscription.c.company_id, t.subscription.c.events)
        .where(t.subscription.c.company_id.in_(select(offered.c.company_id)))
        .with_for_update(read=True, key_share=True, of=t.subscription)
        .cte("matching")
    )
    matched = select(offered.c.event_id, matching.c.id, offered.c.due_at).select_from(
        offered.join(
            matching,
            and_(matching.c.company_id == offered.c.company_id, offered.c.event == func.any(matching.c.events)),
        )
    )
    return Statement(
        insert(t.delivery)
        .from_select(["event_id", "subscription_id", "due_at"], matched, include_defaults=False)
        .add_cte(stored.cte("stored"))
    )


_STORE_EVENTS = _store_events()


async def store_events(connection: Connection, events: Sequence[StoredEvent]) -> None:
    """Inserts events and a delivery for every subscription of the company that names the event."""
    columns = map(list, zip(*events, strict=True))
    await connection.execute(_STORE_EVENTS, **dict(zip(StoredEvent._fields, columns, strict=True)))


# Sweeps. The states stand as literals, for the partial index.

_due = and_(
    t.delivery.c.subscription_id == t.subscription.c.id,
    text("delivery.state = 'waiting'"),
    t.delivery.c.due_at <= bindparam("now", type_=_Instant),
)
_unleased = or_(t.delivery.c.leased_until.is_(None), t.delivery.c.leased_until < func.now())
_sending = and_(text("subscription.health <> 'paused'"), t.company.c.active.is_not(False))
_subscriptions = t.subscription.outerjoin(t.company, t.company.c.id == t.subscription.c.company_id)

# LATERAL with a limit: one look into the index for each subscription, however many deliveries wait.
_one_due = select(t.delivery.c.leased_until).where(_due).limit(1).lateral("one_due")
_SUBSCRIPTIONS_DUE = Statement(
    select(t.subscription.c.id, t.subscription.c.health)
    .select_from(_subscriptions.join(_one_due, true()))
    .where(_sending, t.subscription.c.id > _id("after_id"))
    .order_by(t.subscription.c.id)
    .limit(bindparam("rows", type_=Integer))
)


async def subscriptions_due(database: Database, now: datetime.datetime, after_id: int, rows: int) -> list[Record]:
    """Ids and health, ascending by id, of subscriptions with a delivery due, leased or not."""
    return await database.rows(_SUBSCRIPTIONS_DUE, now=now, after_id=after_id, rows=rows)


def _claim_deliveries() -> Statement:
    picked = (
        select(t.delivery.c.event_id, t.delivery.c.subscription_id)
        .select_from(_subscriptions.join(t.delivery, true()))
        .where(_due, _unleased, _sending, t.subscription.c.id == _id("subscription_id"))
        .order_by(t.delivery.c.due_at)
        .limit(bindparam("rows", type_=Integer))
        .with_for_update(of=t.delivery, skip_locked=True)
        .cte("picked")
    )
    claimed = (
        update(t.delivery)
        .where(
            t.delivery.c.event_id == picked.c.event_id,
            t.delivery.c.subscription_id == picked.c.subscription_id,
        )
        .values(
            fence=t.delivery.c.fence + literal_column("1"),
            leased_until=func.now() + bindparam("lease_seconds", type_=Integer) * literal_column("interval '1 second'"),
        )
        .returning(
            t.delivery.c.event_id,
            t.delivery.c.subscription_id,
            t.delivery.c.attempts,
            t.delivery.c.rung,
            t.delivery.c.fence,
        )
        .cte("claimed")
    )
    return Statement(
        select(
            *claimed.c,
            t.event.c.request_id,
            t.event.c.body,
            t.subscription.c.destination_url,
            t.subscription.c.health,
            t.subscription.c.secret_key_id,
            t.subscription.c.secret_sealed,
        )
        .select_from(claimed.join(t.event, t.event.c.event_id == claimed.c.event_id))
        .join(t.subscription, t.subscription.c.id == claimed.c.subscription_id)
    )


_CLAIM_DELIVERIES = _claim_deliveries()


async def claimed_deliveries(
    database: Database, subscription_id: int, now: datetime.datetime, rows: int, lease_seconds: int
) -> list[Record]:
    """Leases up to `rows` due deliveries of one subscription, with all that sending them takes."""
    return await database.rows(
        _CLAIM_DELIVERIES, subscription_id=subscription_id, now=now, rows=rows, lease_seconds=lease_seconds
    )


class Attempt(NamedTuple):
    """One attempt and what it makes of its delivery."""

    event_id: uuid.UUID
    subscription_id: int
    fence: int
    number: int
    rung: int
    state: str
    due_at: datetime.datetime | None
    started_at: datetime.datetime
    duration_milliseconds: int
    status: int | None
    error: str
    response_excerpt: bytes
    ours: bool  # not stored: the fault was on our side, the receiver's standing stays as it is


def _record_attempts() -> Statement:
    made = _rows(
        "made",
        event_id=_Uuid,
        subscription_id=BigInteger,
        fence=BigInteger,
        number=SmallInteger,
        rung=SmallInteger,
        state=Text,
        due_at=_Instant,
        started_at=_Instant,
        duration_milliseconds=Integer,
        status=SmallInteger,
        error=Text,
        response_excerpt=LargeBinary,
    )
    # A subscription's delete waits for this, or this for the delete: no attempt outlives its subscription.
    alive = (
        select(t.subscription.c.id)
        .where(t.subscription.c.id.in_(select(made.c.subscription_id)))
        .with_for_update(read=True, key_share=True)
        .cte("alive")
    )
    moved = (
        update(t.delivery)
        .where(
            t.delivery.c.subscription_id == alive.c.id,
            t.delivery.c.event_id == made.c.event_id,
            t.delivery.c.subscription_id == made.c.subscription_id,
            t.delivery.c.fence == made.c.fence,
            t.delivery.c.attempts == made.c.number - literal_column("1"),
            text("delivery.state = 'waiting'"),
        )
        .values(
            state=made.c.state,
            due_at=made.c.due_at,
            attempts=made.c.number,
            rung=made.c.rung,
            leased_until=null(),
            settled_at=case((text("made.state <> 'waiting'"), func.now())),
        )
        .returning(t.delivery.c.event_id, t.delivery.c.subscription_id)
        .cte("moved")
    )
    kept = (
        "event_id", "subscription_id", "number", "started_at", "duration_milliseconds", "status", "error",
        "response_excerpt",
    )  # fmt: skip
    stands = and_(moved.c.event_id == made.c.event_id, moved.c.subscription_id == made.c.subscription_id)
    record = insert(t.attempt).from_select(
        kept, select(*(made.c[name] for name in kept)).select_from(made.join(moved, stands)), include_defaults=False
    )
    return Statement(record.returning(t.attempt.c.event_id, t.attempt.c.subscription_id))


_RECORD_ATTEMPTS = _record_attempts()
_STANDINGS = Statement(
    select(t.subscription.c.id, t.subscription.c.health, t.subscription.c.failures_in_a_row)
    .where(t.subscription.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))))
    .order_by(t.subscription.c.id)
    .with_for_update(key_share=True)
)
_moved = _rows("moved", id=BigInteger, health=Text, failures_in_a_row=Integer)
_SAVE_STANDINGS = Statement(
    update(t.subscription)
    .where(t.subscription.c.id == _moved.c.id)
    .values(health=_moved.c.health, failures_in_a_row=_moved.c.failures_in_a_row)
)


async def attempts_recorded(connection: Connection, attempts: Sequence[Attempt]) -> set[tuple[uuid.UUID, int]]:
    """Records what the fences still allow; returns (event_id, subscription_id) of those."""
    columns = dict(zip(Attempt._fields, map(list, zip(*attempts, strict=True)), strict=True))
    del columns["ours"]
    rows = await connection.rows(_RECORD_ATTEMPTS, **columns)
    return {(row["event_id"], row["subscription_id"]) for row in rows}


async def standings_for_update(connection: Connection, ids: Sequence[int]) -> dict[int, rules.Standing]:
    """Locked in the order of their ids; fan-outs go on beside."""
    rows = await connection.rows(_STANDINGS, ids=ids)
    return {row["id"]: rules.Standing(row["health"], row["failures_in_a_row"]) for row in rows}


async def save_standings(connection: Connection, standings: dict[int, rules.Standing]) -> None:
    await connection.execute(
        _SAVE_STANDINGS,
        id=list(standings),
        health=[standing.health for standing in standings.values()],
        failures_in_a_row=[standing.failures_in_a_row for standing in standings.values()],
    )


# Deliveries

_SUBSCRIPTION_EXISTS = Statement(select(t.subscription.c.id).where(t.subscription.c.id == _id("sub_id")))
_DELIVERIES = Statement(
    select(
        t.delivery.c.event_id,
        t.delivery.c.state,
        t.delivery.c.due_at,
        t.event.c.event,
        t.event.c.occurred_at,
    )
    .select_from(t.delivery.join(t.event, t.event.c.event_id == t.delivery.c.event_id))
    .where(t.delivery.c.subscription_id == _id("sub_id"))
    .order_by(t.delivery.c.event_id.desc())
    .limit(bindparam("rows", type_=Integer))
)
_ATTEMPTS = Statement(
    select(
        t.attempt.c.event_id,
        t.attempt.c.number,
        t.attempt.c.started_at,
        t.attempt.c.duration_milliseconds,
        t.attempt.c.status,
        t.attempt.c.error,
        t.attempt.c.response_excerpt,
    )
    .where(
        t.attempt.c.event_id == func.any(bindparam("event_ids", type_=ARRAY(_Uuid))),
        t.attempt.c.subscription_id == _id("sub_id"),
    )
    .order_by(t.attempt.c.event_id, t.attempt.c.number)
)


async def subscription_exists(database: Database, sub_id: int) -> bool:
    return await database.value(_SUBSCRIPTION_EXISTS, sub_id=sub_id) is not None


async def deliveries_newest(database: Database, sub_id: int, rows: int) -> list[Record]:
    return await database.rows(_DELIVERIES, sub_id=sub_id, rows=rows)


async def attempts_of(database: Database, sub_id: int, event_ids: Sequence[uuid.UUID]) -> list[Record]:
    """Ascending by event id and number."""
    return await database.rows(_ATTEMPTS, sub_id=sub_id, event_ids=event_ids)
