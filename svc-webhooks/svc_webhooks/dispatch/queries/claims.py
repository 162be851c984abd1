"""The SQL that finds due deliveries and claims them."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Label,
    Text,
    TextClause,
    and_,
    case,
    func,
    literal_column,
    not_,
    null,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.selectable import CTE

from chassis.db.clocks import uptime
from chassis.db.database import Database
from chassis.db.rows import array_rows
from chassis.db.statements import Query, Statement, param
from svc_webhooks.by_index import BY_INDEX, same_delivery
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.schema import Instant, Uuid, company
from svc_webhooks.tables.deliveries import delivery
from svc_webhooks.tables.events import event
from svc_webhooks.tables.subscriptions import subscription

# Dispatchers claim one after another; a claim takes a few milliseconds. A statement rechecks a row that another one
# changes meanwhile. If it also looks up partitions while it runs, PostgreSQL 18.4 then reads freed memory and the
# server crashes. This was seen once in 400,000 deliveries by two dispatchers.
CLAIM_LOCK = 0x636C6169
CLAIMING = f"{BY_INDEX}; SELECT pg_advisory_xact_lock({CLAIM_LOCK})"


class DueSubscription(NamedTuple):
    """A subscription with a due delivery, claimed or not."""

    id: int
    company_id: int
    health: str
    destination_url: str


class ClaimedDelivery(NamedTuple):
    """A claimed delivery with all data to send it. attempts, rung, state, due_at: before this attempt; see
    tables/deliveries.py. clock_offset: how far its sandbox's clock is ahead; None for a live company."""

    event_id: uuid.UUID
    subscription_id: int
    attempts: int
    rung: int
    fence: int
    state: str
    due_at: datetime.datetime | None
    requested_by: str | None
    replay_id: int | None
    resumes_at: datetime.datetime | None
    company_id: int
    destination_url: str
    secret_key_id: str
    secret_sealed: bytes
    clock_offset: datetime.timedelta | None
    request_id: str
    traceparent: str | None
    body: bytes


_due = and_(text("delivery.state = 'waiting'"), delivery.c.due_at <= param("now", Instant))
_unclaimed = or_(delivery.c.leased_until.is_(None), delivery.c.leased_until < func.now())
_its_company = company.c.id == subscription.c.company_id
_active = select(company.c.active).where(_its_company).scalar_subquery()
_live = select(and_(company.c.active, not_(company.c.is_sandbox))).where(_its_company).scalar_subquery()
_clock_offset = select(case((company.c.is_sandbox, company.c.clock_offset))).where(_its_company).scalar_subquery()
_not_paused = text("subscription.health <> 'paused'")
_sending = and_(_not_paused, _active.is_not(False))
_sending_live = and_(_not_paused, _live.is_not(False))
_of_company = subscription.c.company_id == param("company_id", BigInteger)

# LATERAL with a limit: one index lookup for each subscription, however many deliveries wait.
_oldest_due = (
    select(delivery.c.due_at)
    .where(delivery.c.subscription_id == subscription.c.id, _due)
    .order_by(delivery.c.due_at)
    .limit(1)
    .lateral("oldest_due")
)


def _subscriptions_due(*sending: ColumnElement[bool]) -> Query[DueSubscription]:
    return Query(
        DueSubscription,
        select(subscription.c.id, subscription.c.company_id, subscription.c.health, subscription.c.destination_url)
        .select_from(subscription.join(_oldest_due, true()))
        .where(*sending, subscription.c.id > param("after_id", BigInteger))
        .order_by(subscription.c.id)
        .limit(param("rows", Integer)),
    )


_SUBSCRIPTIONS_DUE = _subscriptions_due(_sending_live)
_SUBSCRIPTIONS_DUE_OF = _subscriptions_due(_sending, _of_company)


async def subscriptions_due(
    database: Database, now: datetime.datetime, after_id: int, rows: int, sandbox_id: int | None = None
) -> list[DueSubscription]:
    """Ascending by id: those of live companies, or of one sandbox."""
    async with database.transaction(BY_INDEX, writes=False) as connection:
        if sandbox_id is None:
            return await _SUBSCRIPTIONS_DUE.rows(connection, now=now, after_id=after_id, rows=rows)
        at = {"now": now, "after_id": after_id, "rows": rows}
        return await _SUBSCRIPTIONS_DUE_OF.rows(connection, company_id=sandbox_id, **at)


_oldest_waiting = (
    select(delivery.c.due_at)
    .where(delivery.c.subscription_id == subscription.c.id, text("delivery.state = 'waiting'"))
    .order_by(delivery.c.due_at)
    .limit(1)
    .lateral("oldest_waiting")
)
NEXT_DUE = Statement(
    select(func.min(_oldest_waiting.c.due_at))
    .select_from(subscription.join(_oldest_waiting, true()))
    .where(_sending, _of_company)
)


async def next_due_at(database: Database, company_id: int) -> datetime.datetime | None:
    """When the next delivery of a company that is not held back is due; None if none waits."""
    async with database.transaction(BY_INDEX, writes=False) as connection:
        due_at: datetime.datetime | None = await connection.value(NEXT_DUE, company_id=company_id)
    return due_at


_left = (
    select(delivery.c.event_id, delivery.c.subscription_id)
    .select_from(subscription.join(delivery, delivery.c.subscription_id == subscription.c.id))
    .where(_sending, _of_company, _due, _unclaimed)
    .with_for_update(of=delivery, skip_locked=True)
    .cte("left_over")
)
PUT_OFF = Statement(update(delivery).where(same_delivery(delivery, _left)).values(due_at=param("due_at", Instant)))


async def deliveries_put_off(
    database: Database, company_id: int, now: datetime.datetime, due_at: datetime.datetime
) -> None:
    """Makes what is due as of `now`, and not claimed, due at a later instant."""
    async with database.transaction(CLAIMING) as connection:
        await connection.execute(PUT_OFF, company_id=company_id, now=now, due_at=due_at)


_BACKLOG = Statement(
    select(func.count(), func.min(_oldest_due.c.due_at))
    .select_from(subscription.join(_oldest_due, true()))
    .where(_sending_live)
)


def _count(name: str, *conditions: ColumnElement[bool] | TextClause) -> Label[int]:
    return select(func.count()).select_from(delivery).where(and_(*conditions)).scalar_subquery().label(name)


_waiting, _later = text("delivery.state = 'waiting'"), delivery.c.due_at > param("now", Instant)
_COUNTS = Statement(
    select(
        _count("due", _due), _count("waiting", _waiting, _later), _count("parked", text("delivery.state = 'parked'"))
    )
)


async def counts(database: Database, now: datetime.datetime) -> dict[str, int]:
    """The number of deliveries that are due, that wait for a later attempt, and that are parked."""
    async with database.transaction(BY_INDEX) as connection:
        row = await connection.row(_COUNTS, now=now)
    return dict(row or {})


async def backlog(database: Database, now: datetime.datetime) -> tuple[int, datetime.datetime | None]:
    """The number of live companies' subscriptions with a due delivery, and since when the longest waiting one is
    due."""
    async with database.transaction(BY_INDEX, writes=False) as connection:
        row = await connection.row(_BACKLOG, now=now)
    assert row is not None
    return row[0], row[1]


_ITS_SUBSCRIPTION = (
    subscription.c.company_id,
    subscription.c.destination_url,
    subscription.c.secret_key_id,
    subscription.c.secret_sealed,
    _clock_offset.label("clock_offset"),
)


def _claim(picked: CTE) -> Query[ClaimedDelivery]:
    """Claims the picked and locked deliveries, and returns everything needed to send them."""
    claimed = (
        update(delivery)
        .where(same_delivery(delivery, picked))
        .values(
            fence=delivery.c.fence + literal_column("1"),
            leased_until=func.clock_timestamp()
            + param("claim_seconds", Integer) * literal_column("interval '1 second'"),
        )
        .returning(
            delivery.c.event_id,
            delivery.c.subscription_id,
            delivery.c.attempts,
            delivery.c.rung,
            delivery.c.fence,
            delivery.c.state,
            delivery.c.due_at,
            delivery.c.requested_by,
            delivery.c.replay_id,
            delivery.c.resumes_at,
            *(picked.c[column.name] for column in _ITS_SUBSCRIPTION),
        )
        .cte("claimed")
    )
    its_event = (
        select(event.c.request_id, event.c.traceparent, event.c.body)
        .where(event.c.event_id == claimed.c.event_id)
        .limit(1)
        .lateral("its_event")
    )
    return Query(
        ClaimedDelivery,
        select(*claimed.c, *its_event.c).select_from(claimed.join(its_event, true())),
    )


_wanted = array_rows("wanted", {"subscription_id": BigInteger, "rows": Integer})
_served = (
    select(subscription.c.id, *_ITS_SUBSCRIPTION)
    .where(subscription.c.id == _wanted.c.subscription_id, _sending)
    .limit(1)
    .lateral("served")
)
_offered = (
    select(delivery.c.event_id, delivery.c.subscription_id)
    .where(delivery.c.subscription_id == _served.c.id, _due, _unclaimed)
    .order_by(delivery.c.due_at)
    .limit(_wanted.c.rows)
    .with_for_update(skip_locked=True)
    .correlate(_served, _wanted)
    .lateral("offered")
)
_CLAIM_DELIVERIES = _claim(
    select(*_offered.c, *(_served.c[column.name] for column in _ITS_SUBSCRIPTION))
    .select_from(_wanted.join(_served, true()).join(_offered, true()))
    .cte("picked")
)
_CLAIM_DELIVERY = _claim(
    select(delivery.c.event_id, delivery.c.subscription_id, *_ITS_SUBSCRIPTION)
    .select_from(subscription.join(delivery, true()))
    .where(
        delivery.c.event_id == param("event_id", Uuid),
        delivery.c.subscription_id == param("subscription_id", BigInteger),
        subscription.c.id == param("subscription_id", BigInteger),
        delivery.c.state == rules.WAITING,
        _unclaimed,
        _sending,
    )
    .with_for_update(of=delivery, skip_locked=True)
    .cte("picked")
)


# A paused subscription gets no delivery, but a test, which is none of its deliveries.
_CLAIM_SETTLED = _claim(
    select(delivery.c.event_id, delivery.c.subscription_id, *_ITS_SUBSCRIPTION)
    .select_from(subscription.join(delivery, true()))
    .where(
        delivery.c.event_id == param("event_id", Uuid),
        delivery.c.subscription_id == param("subscription_id", BigInteger),
        subscription.c.id == param("subscription_id", BigInteger),
        delivery.c.state == param("state", Text),
        delivery.c.attempts == param("attempts", Integer),
        _unclaimed,
        _active.is_not(False),
        or_(_not_paused, param("state", Text) == param("failed", Text)),
    )
    .with_for_update(of=delivery, skip_locked=True)
    .cte("picked")
)


_given_up = array_rows(
    "given_up", {"event_id": Uuid, "subscription_id": BigInteger, "fence": BigInteger, "state": Text}
)
_GIVE_UP = Statement(
    update(delivery)
    .where(
        same_delivery(delivery, _given_up),
        delivery.c.fence == _given_up.c.fence,
        delivery.c.state == _given_up.c.state,
    )
    .values(leased_until=null())
)
_WAITING = Statement(
    select(func.count())
    .select_from(delivery)
    .where(delivery.c.subscription_id == func.any(param("ids", ARRAY(BigInteger))), _due)
)


async def claims_given_up(database: Database, claimed: Sequence[ClaimedDelivery]) -> None:
    """Ends the claims of deliveries that were not attempted."""
    async with database.transaction(BY_INDEX) as connection:
        await connection.execute(
            _GIVE_UP,
            event_id=[delivery.event_id for delivery in claimed],
            subscription_id=[delivery.subscription_id for delivery in claimed],
            fence=[delivery.fence for delivery in claimed],
            state=[delivery.state for delivery in claimed],
        )


async def waiting(database: Database, ids: Collection[int], now: datetime.datetime) -> int:
    """The number of due deliveries of these subscriptions."""
    async with database.transaction(BY_INDEX) as connection:
        count: int = await connection.value(_WAITING, ids=list(ids), now=now)
    return count


class Claims(NamedTuple):
    """Claimed deliveries. since: a lower bound of the start of their claims, see `uptime`."""

    rows: list[ClaimedDelivery]
    since: float


async def claimed_deliveries(
    database: Database, rows_max: Mapping[int, int], now: datetime.datetime, claim_seconds: int
) -> Claims:
    """Claims due deliveries, by subscription as many as `rows_max` says, longest due first."""
    async with database.transaction(CLAIMING) as connection:
        since = uptime()
        rows = await _CLAIM_DELIVERIES.rows(
            connection,
            subscription_id=list(rows_max),
            rows=list(rows_max.values()),
            now=now,
            claim_seconds=claim_seconds,
        )
    return Claims(rows, since)


async def claimed_delivery(database: Database, event_id: uuid.UUID, subscription_id: int, claim_seconds: int) -> Claims:
    """Claims one waiting delivery, due or not; none if it does not wait, is claimed or must not be sent now."""
    async with database.transaction(CLAIMING) as connection:
        since = uptime()
        rows = await _CLAIM_DELIVERY.rows(
            connection, event_id=event_id, subscription_id=subscription_id, claim_seconds=claim_seconds
        )
    return Claims(rows, since)


async def claimed_settled(
    database: Database, event_id: uuid.UUID, subscription_id: int, state: str, attempts: int, claim_seconds: int
) -> Claims:
    """Claims one delivery that has succeeded, or a test, in this state and with so many attempts; none if it has
    others, is claimed or must not be sent now."""
    async with database.transaction(CLAIMING) as connection:
        since = uptime()
        rows = await _CLAIM_SETTLED.rows(
            connection,
            event_id=event_id,
            subscription_id=subscription_id,
            state=state,
            attempts=attempts,
            failed=rules.FAILED,
            claim_seconds=claim_seconds,
        )
    return Claims(rows, since)
