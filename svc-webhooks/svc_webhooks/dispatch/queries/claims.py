"""The SQL statements of a sweep: what is due, claimed, recorded, and how subscriptions stand after it."""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    null,
    or_,
    select,
    text,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.sql.selectable import CTE

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from svc_webhooks import rules
from svc_webhooks import tables as t
from svc_webhooks.queries import Instant, Uuid, array_rows, bigint

# Rows become due, and cease to be, by the million between two looks that statistics take, and there is a partition for
# each of thirty-odd days, the newest of them empty when a statement is planned: left to choose, the planner reads whole
# partitions and plans for longer than it runs (a claim of 16 rows took 4.8 ms of CPU instead of 1.0). All that these
# statements meet is found by an index, a row at a time, and what is due in the order of `delivery_due`. That index is
# for those alone: the state stands as a literal where it may serve, and as a parameter where another one finds the row.
BY_INDEX = (
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off;"
    " SET LOCAL enable_mergejoin = off; SET LOCAL plan_cache_mode = force_generic_plan"
)
# Dispatchers claim one after another, each for the few milliseconds that it takes. A statement that meets a row which
# another one changes meanwhile looks at it again, and PostgreSQL 18.4, if the same statement looks partitions up while
# it runs, then reads memory that is gone: seen once in 400,000 deliveries by two dispatchers, as a crash of the server.
CLAIM_LOCK = 0x636C6169
CLAIMING = f"{BY_INDEX}; SELECT pg_advisory_xact_lock({CLAIM_LOCK})"

_due = and_(text("delivery.state = 'waiting'"), t.delivery.c.due_at <= bindparam("now", type_=Instant))
_unleased = or_(t.delivery.c.leased_until.is_(None), t.delivery.c.leased_until < func.now())
_active = select(t.company.c.active).where(t.company.c.id == t.subscription.c.company_id).scalar_subquery()
_sending = and_(text("subscription.health <> 'paused'"), _active.is_not(False))


def _is(row: Table, key: CTE) -> ColumnElement[bool]:
    """The delivery of a key, found in its own partition by either index that holds both its columns.

    An equation would let the planner read all deliveries and look for their keys, which it took for cheaper where
    statistics knew few of them: a claim of 256 met a million. A range of one has no such second side.
    """
    event_id, subscription_id = row.c.event_id, row.c.subscription_id
    by_event = tuple_(event_id, subscription_id), tuple_(key.c.event_id, key.c.subscription_id)
    by_subscription = tuple_(subscription_id, event_id), tuple_(key.c.subscription_id, key.c.event_id)
    ranges = ((event_id, key.c.event_id), by_event, by_subscription)
    return and_(*(left >= right for left, right in ranges), *(left <= right for left, right in ranges))


# LATERAL with a limit: one look into the index for each subscription, however many deliveries wait.
_oldest_due = (
    select(t.delivery.c.due_at)
    .where(t.delivery.c.subscription_id == t.subscription.c.id, _due)
    .order_by(t.delivery.c.due_at)
    .limit(1)
    .lateral("oldest_due")
)
_SUBSCRIPTIONS_DUE = Statement(
    select(t.subscription.c.id, t.subscription.c.health)
    .select_from(t.subscription.join(_oldest_due, true()))
    .where(_sending, t.subscription.c.id > bigint("after_id"))
    .order_by(t.subscription.c.id)
    .limit(bindparam("rows", type_=Integer))
)


async def subscriptions_due(database: Database, now: datetime.datetime, after_id: int, rows: int) -> list[Record]:
    """Ids and health, ascending by id, of subscriptions with a delivery due, leased or not."""
    async with database.transaction(BY_INDEX) as connection:
        return await connection.rows(_SUBSCRIPTIONS_DUE, now=now, after_id=after_id, rows=rows)


_BACKLOG = Statement(
    select(func.count(), func.min(_oldest_due.c.due_at))
    .select_from(t.subscription.join(_oldest_due, true()))
    .where(_sending)
)


async def backlog(database: Database, now: datetime.datetime) -> tuple[int, datetime.datetime | None]:
    """How many subscriptions have a delivery due, and since when the one that waits longest is due."""
    async with database.transaction(BY_INDEX) as connection:
        row = await connection.row(_BACKLOG, now=now)
    assert row is not None
    return row[0], row[1]


_SECRET = (t.subscription.c.destination_url, t.subscription.c.secret_key_id, t.subscription.c.secret_sealed)


def _claim(picked: CTE) -> Statement:
    """Leases what was picked and locked, and returns all that sending it takes."""
    claimed = (
        update(t.delivery)
        .where(_is(t.delivery, picked))
        .values(
            fence=t.delivery.c.fence + literal_column("1"),
            leased_until=func.clock_timestamp()
            + bindparam("lease_seconds", type_=Integer) * literal_column("interval '1 second'"),
        )
        .returning(
            t.delivery.c.event_id,
            t.delivery.c.subscription_id,
            t.delivery.c.attempts,
            t.delivery.c.rung,
            t.delivery.c.fence,
            *(picked.c[column.name] for column in _SECRET),
        )
        .cte("claimed")
    )
    its_event = (
        select(t.event.c.request_id, t.event.c.body)
        .where(t.event.c.event_id == claimed.c.event_id)
        .limit(1)
        .lateral("its_event")
    )
    return Statement(
        select(*claimed.c, its_event.c.request_id, its_event.c.body).select_from(claimed.join(its_event, true()))
    )


_wanted = array_rows("wanted", subscription_id=BigInteger, rows=Integer)
_served = (
    select(t.subscription.c.id, *_SECRET)
    .where(t.subscription.c.id == _wanted.c.subscription_id, _sending)
    .limit(1)
    .lateral("served")
)
_offered = (
    select(t.delivery.c.event_id, t.delivery.c.subscription_id)
    .where(t.delivery.c.subscription_id == _served.c.id, _due, _unleased)
    .order_by(t.delivery.c.due_at)
    .limit(_wanted.c.rows)
    .with_for_update(skip_locked=True)
    .correlate(_served, _wanted)
    .lateral("offered")
)
_CLAIM_DELIVERIES = _claim(
    select(*_offered.c, *(_served.c[column.name] for column in _SECRET))
    .select_from(_wanted.join(_served, true()).join(_offered, true()))
    .cte("picked")
)
_CLAIM_DELIVERY = _claim(
    select(t.delivery.c.event_id, t.delivery.c.subscription_id, *_SECRET)
    .select_from(t.subscription.join(t.delivery, true()))
    .where(
        t.delivery.c.event_id == bindparam("event_id", type_=Uuid),
        t.delivery.c.subscription_id == bigint("subscription_id"),
        t.subscription.c.id == bigint("subscription_id"),
        t.delivery.c.state == rules.WAITING,
        _unleased,
        _sending,
    )
    .with_for_update(of=t.delivery, skip_locked=True)
    .cte("picked")
)


def uptime() -> float:
    """Seconds on a clock that nobody sets and that goes on while the machine or the process sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Claims(NamedTuple):
    """Leased deliveries with all that sending them takes. since: their leases began then or later, see `uptime`."""

    rows: list[Record]
    since: float


async def claimed_deliveries(
    database: Database, wanted: Mapping[int, int], now: datetime.datetime, lease_seconds: int
) -> Claims:
    """Leases due deliveries, up to so many of each subscription, the longest due first."""
    async with database.transaction(CLAIMING) as connection:
        since = uptime()
        rows = await connection.rows(
            _CLAIM_DELIVERIES,
            subscription_id=list(wanted),
            rows=list(wanted.values()),
            now=now,
            lease_seconds=lease_seconds,
        )
    return Claims(rows, since)


async def claimed_delivery(database: Database, event_id: uuid.UUID, subscription_id: int, lease_seconds: int) -> Claims:
    """Leases one waiting delivery, due or not; none where it does not wait, must not be sent now or is leased."""
    async with database.transaction(CLAIMING) as connection:
        since = uptime()
        rows = await connection.rows(
            _CLAIM_DELIVERY, event_id=event_id, subscription_id=subscription_id, lease_seconds=lease_seconds
        )
    return Claims(rows, since)


class Attempt(NamedTuple):
    """One attempt and what it makes of its delivery."""

    event_id: uuid.UUID
    subscription_id: int
    fence: int
    number: int
    rung: int
    state: str
    due_at: datetime.datetime | None
    cause: str
    started_at: datetime.datetime
    duration_milliseconds: int
    connect_milliseconds: int | None
    tls_milliseconds: int | None
    first_byte_milliseconds: int | None
    address: str | None
    status: int | None
    error: str
    response_excerpt: bytes
    ours: bool  # not stored: the fault was on our side, the receiver's standing stays as it is


def _record_attempts() -> Statement:
    made = array_rows(
        "made",
        event_id=Uuid,
        subscription_id=BigInteger,
        fence=BigInteger,
        number=Integer,
        rung=SmallInteger,
        state=Text,
        due_at=Instant,
        cause=Text,
        started_at=Instant,
        duration_milliseconds=Integer,
        connect_milliseconds=Integer,
        tls_milliseconds=Integer,
        first_byte_milliseconds=Integer,
        address=Text,
        status=SmallInteger,
        error=Text,
        response_excerpt=LargeBinary,
    )
    # A subscription's delete waits for this, or this for the delete: no attempt outlives its subscription.
    alive = (
        select(t.subscription.c.id, t.subscription.c.failures_in_a_row)
        .where(t.subscription.c.id == func.any(bindparam("subscription_id", type_=ARRAY(BigInteger))))
        .with_for_update(read=True, key_share=True)
        .cte("alive")
    )
    kept = (
        "event_id", "subscription_id", "number", "cause", "started_at", "duration_milliseconds", "connect_milliseconds",
        "tls_milliseconds", "first_byte_milliseconds", "address", "status", "error", "response_excerpt", "state",
        "due_at",
    )  # fmt: skip
    moved = (
        update(t.delivery)
        .where(
            alive.c.id == made.c.subscription_id,
            _is(t.delivery, made),
            t.delivery.c.fence == made.c.fence,
            t.delivery.c.attempts == made.c.number - literal_column("1"),
            t.delivery.c.state == rules.WAITING,
        )
        .values(
            state=made.c.state,
            due_at=made.c.due_at,
            attempts=made.c.number,
            rung=made.c.rung,
            leased_until=null(),
            settled_at=case((text("made.state <> 'waiting'"), func.now())),
        )
        .returning(
            *(made.c[name] for name in kept), (alive.c.failures_in_a_row > literal_column("0")).label("has_failures")
        )
        .cte("moved")
    )
    record = insert(t.attempt).from_select(kept, select(*(moved.c[name] for name in kept)), include_defaults=False)
    told = (moved.c.event_id, moved.c.subscription_id, moved.c.has_failures)
    return Statement(select(*told).add_cte(record.cte("recorded")))


_RECORD_ATTEMPTS = _record_attempts()
_STANDINGS = Statement(
    select(t.subscription.c.id, t.subscription.c.health, t.subscription.c.failures_in_a_row)
    .where(t.subscription.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))))
    .order_by(t.subscription.c.id)
    .with_for_update(key_share=True)
)
_moved = array_rows("moved", id=BigInteger, health=Text, failures_in_a_row=Integer)
_SAVE_STANDINGS = Statement(
    update(t.subscription)
    .where(t.subscription.c.id >= _moved.c.id, t.subscription.c.id <= _moved.c.id)
    .values(health=_moved.c.health, failures_in_a_row=_moved.c.failures_in_a_row)
)


async def attempts_recorded(connection: Connection, attempts: Sequence[Attempt]) -> dict[tuple[uuid.UUID, int], bool]:
    """Records what the fences still allow; by (event_id, subscription_id): whether its subscription has failures."""
    columns = dict(zip(Attempt._fields, map(list, zip(*attempts, strict=True)), strict=True))
    del columns["ours"]
    rows = await connection.rows(_RECORD_ATTEMPTS, **columns)
    return {(row["event_id"], row["subscription_id"]): row["has_failures"] for row in rows}


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
