"""The SQL statements that list deliveries: of a subscription, a company or an event, and their attempts."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnCollection,
    ColumnElement,
    Integer,
    LargeBinary,
    Text,
    and_,
    func,
    literal_column,
    or_,
    select,
    text,
    true,
    type_coerce,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.selectable import FromClause

from chassis.db.database import Database
from chassis.db.rows import array_rows
from chassis.db.statements import Query, Selection, Statement, param
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.days import expires_at
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.schema import Uuid, company
from svc_webhooks.tables.deliveries import attempt, delivery
from svc_webhooks.tables.events import event
from svc_webhooks.tables.subscriptions import subscription


class ShownDelivery(NamedTuple):
    """A delivery with the columns rendered next to it. active, is_sandbox: of the company; null if the replica lacks
    it."""

    event_id: uuid.UUID
    subscription_id: int
    state: str
    due_at: datetime.datetime | None
    attempts: int
    rung: int
    event: str
    entity_id: int
    occurred_at: datetime.datetime
    stored_at: datetime.datetime
    destination_url: str
    health: str
    active: bool | None
    is_sandbox: bool | None

    @property
    def expires_at(self) -> datetime.datetime:
        return expires_at(self.event_id, self.stored_at if self.is_sandbox else None)


class ShownAttempt(NamedTuple):
    """An attempt as recorded; its excerpt may be cut: see tables/deliveries.py."""

    event_id: uuid.UUID
    subscription_id: int
    number: int
    cause: str
    actor: str
    started_at: datetime.datetime
    duration_milliseconds: int
    connect_milliseconds: int | None
    tls_milliseconds: int | None
    first_byte_milliseconds: int | None
    address: str | None
    status: int | None
    error: str
    replay_id: int | None
    clock_offset: datetime.timedelta | None
    state: str
    due_at: datetime.datetime | None
    response_excerpt: bytes

    @property
    def signed_at(self) -> datetime.datetime:
        """When it began by the real clock."""
        return self.started_at - (self.clock_offset or datetime.timedelta())


class KeptEvent(NamedTuple):
    """A stored event: see tables/events.py."""

    event_id: uuid.UUID
    company_id: int
    event: str
    entity_id: int
    occurred_at: datetime.datetime
    request_id: str
    traceparent: str | None
    body: bytes
    stored_at: datetime.datetime


_delivery = (
    delivery.c.event_id,
    delivery.c.subscription_id,
    delivery.c.state,
    delivery.c.due_at,
    delivery.c.attempts,
    delivery.c.rung,
)


def _in_state(state: str) -> ColumnElement[bool]:
    """As a literal, so that the partial indexes serve."""
    assert state in rules.DELIVERY_STATES
    return text(f"delivery.state = '{state}'")  # type: ignore[return-value]


def _shown(deliveries: FromClause) -> Selection:
    """Deliveries joined with the columns rendered next to them; leaves out those of deleted subscriptions."""
    return (
        select(
            *deliveries.c,
            event.c.event,
            event.c.entity_id,
            event.c.occurred_at,
            event.c.stored_at,
            subscription.c.destination_url,
            subscription.c.health,
            company.c.active,
            company.c.is_sandbox,
        )
        .select_from(deliveries)
        .join(subscription, subscription.c.id == deliveries.c.subscription_id)
        .join(event, event.c.event_id == deliveries.c.event_id)
        .outerjoin(company, company.c.id == subscription.c.company_id)
    )


# Of one subscription


def _newest(state: str | None) -> Query[ShownDelivery]:
    statement = select(*_delivery).where(
        delivery.c.subscription_id == param("sub_id", BigInteger),
        delivery.c.event_id < param("before", Uuid),
        delivery.c.event_id >= param("since", Uuid),
    )
    if state is not None:
        statement = statement.where(_in_state(state))
    cut = statement.order_by(delivery.c.event_id.desc()).limit(param("rows", Integer)).subquery("deliveries")
    return Query(ShownDelivery, _shown(cut).order_by(cut.c.event_id.desc()))


_NEWEST = {state: _newest(state) for state in (None, *rules.DELIVERY_STATES)}
_COMPANY_OF = Statement(select(subscription.c.company_id).where(subscription.c.id == param("sub_id", BigInteger)))


async def company_of(database: Database, sub_id: int) -> int | None:
    """The subscription's company; None if the subscription does not exist."""
    company_id: int | None = await database.value(_COMPANY_OF, sub_id=sub_id)
    return company_id


async def deliveries_newest(
    database: Database, sub_id: int, state: str | None, before: uuid.UUID, since: uuid.UUID, rows: int
) -> list[ShownDelivery]:
    """Newest first. state: only deliveries in it. before, since: only deliveries of events with ids between these."""
    return await _NEWEST[state].rows(database, sub_id=sub_id, before=before, since=since, rows=rows)


_AFTER = (
    delivery.c.subscription_id == param("sub_id", BigInteger),
    delivery.c.event_id > param("after", Uuid),
    delivery.c.event_id >= param("since", Uuid),
)


def _oldest(state: str | None) -> Query[ShownDelivery]:
    """Ascending. Only parked ones have an index in this order: of the others in a state, those among the next
    `looked_at`."""
    columns: ColumnCollection[str, Any] = delivery.c
    statement = select(*_delivery).where(*_AFTER)
    if state == rules.PARKED:
        statement = statement.where(_in_state(state))
    elif state is not None:
        looked_at = statement.order_by(delivery.c.event_id).limit(param("looked_at", Integer)).subquery("looked_at")
        columns = looked_at.c
        statement = select(*columns).where(columns.state == literal_column(f"'{state}'", Text))
    cut = statement.order_by(columns.event_id).limit(param("rows", Integer)).subquery("deliveries")
    return Query(ShownDelivery, _shown(cut).order_by(cut.c.event_id))


_OLDEST = {state: _oldest(state) for state in (None, *rules.DELIVERY_STATES)}
_REACHED = Statement(
    select(delivery.c.event_id).where(*_AFTER).order_by(delivery.c.event_id).offset(param("skipped", Integer)).limit(1)
)
LOOKED_AT = 5000
LOOKS_MAX = 4


async def deliveries_oldest(
    database: Database, sub_id: int, state: str | None, after: uuid.UUID, since: uuid.UUID, limit: int
) -> tuple[list[ShownDelivery], uuid.UUID | None]:
    """Up to `limit` deliveries of events after one and from another on, ascending, and the event after which the next
    page begins; None if no page follows. A page can be short, or empty, although another follows: one call looks at a
    bounded number of deliveries."""
    rows: list[ShownDelivery] = []
    at = {"sub_id": sub_id, "since": since}
    has_index = state in (None, rules.PARKED)
    looked_at = {} if has_index else {"looked_at": LOOKED_AT}
    for _ in range(LOOKS_MAX):
        async with database.transaction(BY_INDEX, writes=False) as connection:
            rows += await _OLDEST[state].rows(connection, **at, **looked_at, after=after, rows=limit + 1 - len(rows))
            if len(rows) > limit:
                return rows[:limit], rows[limit - 1].event_id
            reached = None
            if not has_index:
                reached = await connection.value(_REACHED, **at, after=after, skipped=LOOKED_AT - 1)
        if reached is None:
            return rows, None
        after = uuid.UUID(int=reached.int)
    return rows, after


# Of one company


def _undelivered(states: Sequence[str]) -> Query[ShownDelivery]:
    """Takes the oldest deliveries of each subscription, then the oldest of those, so that it scans no subscription's
    history."""
    after = and_(
        delivery.c.event_id >= param("after_event_id", Uuid),
        or_(
            delivery.c.event_id > param("after_event_id", Uuid),
            delivery.c.subscription_id > param("after_sub_id", BigInteger),
        ),
    )
    of_subscription = select(*_delivery).where(
        delivery.c.subscription_id == subscription.c.id, delivery.c.event_id < param("until", Uuid), after
    )
    rows = param("rows", Integer)
    oldest = [
        of_subscription.where(_in_state(state))
        .order_by(delivery.c.event_id)
        .limit(rows)
        .correlate(subscription)
        .subquery(f"oldest_{state}")
        for state in states
    ]
    each = union_all(*(select(*oldest_in_state.c) for oldest_in_state in oldest)).lateral("each")
    cut = (
        select(*each.c)
        .select_from(subscription.join(each, true()))
        .where(subscription.c.company_id == param("company_id", BigInteger))
        .order_by(each.c.event_id, each.c.subscription_id)
        .limit(rows)
        .subquery("deliveries")
    )
    return Query(ShownDelivery, _shown(cut).order_by(cut.c.event_id, cut.c.subscription_id))


_UNDELIVERED: dict[str | None, Query[ShownDelivery]] = {
    None: _undelivered([rules.WAITING, rules.PARKED]),
    **{state: _undelivered([state]) for state in (rules.WAITING, rules.PARKED)},
}


async def deliveries_undelivered(
    database: Database,
    company_id: int,
    *,
    state: str | None,
    until: uuid.UUID,
    after_event_id: uuid.UUID,
    after_sub_id: int,
    rows: int,
) -> list[ShownDelivery]:
    """Waiting and parked deliveries, oldest first. state: only one of these. until: only events before that id."""
    return await _UNDELIVERED[state].rows(
        database,
        company_id=company_id,
        until=until,
        after_event_id=after_event_id,
        after_sub_id=after_sub_id,
        rows=rows,
    )


# Of one event

_EVENT = Query(KeptEvent, select(*event.c).where(event.c.event_id == param("event_id", Uuid)))
_of_event = select(*_delivery).where(delivery.c.event_id == param("event_id", Uuid))
_DELIVERIES_OF_EVENT = Query(
    ShownDelivery, _shown(_of_event.subquery("deliveries")).order_by(text("deliveries.subscription_id"))
)
_DELIVERY = Query(
    ShownDelivery,
    _shown(_of_event.where(delivery.c.subscription_id == param("sub_id", BigInteger)).subquery("deliveries")),
)


_of_events = select(*_delivery).where(
    delivery.c.event_id == func.any(param("event_ids", ARRAY(Uuid))),
    # These limit any plan to the days concerned.
    delivery.c.event_id >= param("first", Uuid),
    delivery.c.event_id <= param("last", Uuid),
)
OF_EVENTS = Query(ShownDelivery, _shown(_of_events.subquery("deliveries")))


async def deliveries_of_events(database: Database, event_ids: Sequence[uuid.UUID]) -> list[ShownDelivery]:
    """In any order."""
    if not event_ids:
        return []
    async with database.transaction(BY_INDEX, writes=False) as connection:
        return await OF_EVENTS.rows(connection, event_ids=list(event_ids), first=min(event_ids), last=max(event_ids))


class Body(NamedTuple):
    """The body of an event, which names the record."""

    event_id: uuid.UUID
    event: str
    body: bytes


BODIES = Query(
    Body,
    select(event.c.event_id, event.c.event, event.c.body).where(
        event.c.event_id == func.any(param("event_ids", ARRAY(Uuid))),
        event.c.event_id >= param("first", Uuid),
        event.c.event_id <= param("last", Uuid),
        func.octet_length(event.c.body) <= param("bytes_max", Integer),
    ),
)


async def bodies_of(database: Database, event_ids: Sequence[uuid.UUID], bytes_max: int) -> list[Body]:
    """In any order, without those that are longer."""
    if not event_ids:
        return []
    bounds = {"first": min(event_ids), "last": max(event_ids), "bytes_max": bytes_max}
    async with database.transaction(BY_INDEX, writes=False) as connection:
        return await BODIES.rows(connection, event_ids=list(event_ids), **bounds)


async def event_by_id(database: Database, event_id: uuid.UUID) -> KeptEvent | None:
    return await _EVENT.row(database, event_id=event_id)


async def deliveries_of_event(database: Database, event_id: uuid.UUID) -> list[ShownDelivery]:
    """Ascending by subscription."""
    return await _DELIVERIES_OF_EVENT.rows(database, event_id=event_id)


async def delivery_by_ids(database: Database, event_id: uuid.UUID, sub_id: int) -> ShownDelivery | None:
    return await _DELIVERY.row(database, event_id=event_id, sub_id=sub_id)


# Attempts


def _attempts() -> Query[ShownAttempt]:
    requested = array_rows(
        "requested", {"event_id": Uuid, "subscription_id": BigInteger, "since": Integer, "until": Integer}
    )
    shown_columns = [column for column in attempt.c if column.name != "response_excerpt"]
    excerpt = func.substring(attempt.c.response_excerpt, 1, param("excerpt_bytes", Integer))
    return Query(
        ShownAttempt,
        select(*shown_columns, type_coerce(excerpt, LargeBinary()).label("response_excerpt"))
        .join(
            requested,
            and_(
                attempt.c.event_id == requested.c.event_id,
                attempt.c.subscription_id == requested.c.subscription_id,
                attempt.c.number.between(requested.c.since, requested.c.until),
            ),
        )
        .order_by(attempt.c.event_id, attempt.c.subscription_id, attempt.c.number),
    )


_ATTEMPTS = _attempts()


async def attempts_of(
    database: Database, deliveries: Sequence[ShownDelivery], *, excerpt_bytes: int, last_alone: bool = False
) -> list[ShownAttempt]:
    """The attempts that these rows count, ascending by number."""
    return await _ATTEMPTS.rows(
        database,
        event_id=[row.event_id for row in deliveries],
        subscription_id=[row.subscription_id for row in deliveries],
        since=[row.attempts if last_alone else 1 for row in deliveries],
        until=[row.attempts for row in deliveries],
        excerpt_bytes=excerpt_bytes,
    )
