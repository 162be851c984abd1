"""The SQL statements about what became of deliveries: lists of them, one event's, and their attempts."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    LargeBinary,
    Select,
    and_,
    bindparam,
    func,
    or_,
    select,
    text,
    true,
    type_coerce,
    union_all,
)
from sqlalchemy.sql.selectable import FromClause

from chassis.db.database import Database
from chassis.db.statements import Statement
from svc_webhooks import rules
from svc_webhooks import tables as t
from svc_webhooks.days import NEWEST
from svc_webhooks.queries import Uuid, array_rows, bigint

_delivery = (
    t.delivery.c.event_id,
    t.delivery.c.subscription_id,
    t.delivery.c.state,
    t.delivery.c.due_at,
    t.delivery.c.attempts,
)


def _uuid(name: str) -> Any:
    return bindparam(name, type_=Uuid)


def _in_state(state: str) -> ColumnElement[bool]:
    """As a literal, for the partial indexes."""
    assert state in rules.DELIVERY_STATES
    return text(f"delivery.state = '{state}'")  # type: ignore[return-value]


def _shown(found: FromClause) -> Select[Any]:
    """Deliveries with what is shown beside them; those of a subscription that is gone are not."""
    return (
        select(
            *found.c,
            t.event.c.event,
            t.event.c.occurred_at,
            t.subscription.c.destination_url,
            t.subscription.c.health,
            t.company.c.active,
        )
        .select_from(found)
        .join(t.subscription, t.subscription.c.id == found.c.subscription_id)
        .join(t.event, t.event.c.event_id == found.c.event_id)
        .outerjoin(t.company, t.company.c.id == t.subscription.c.company_id)
    )


# Of one subscription


def _newest(state: str | None) -> Statement:
    found = select(*_delivery).where(
        t.delivery.c.subscription_id == bigint("sub_id"), t.delivery.c.event_id < _uuid("before")
    )
    if state is not None:
        found = found.where(_in_state(state))
    cut = found.order_by(t.delivery.c.event_id.desc()).limit(bindparam("rows", type_=Integer)).subquery("found")
    return Statement(_shown(cut).order_by(cut.c.event_id.desc()))


_NEWEST = {state: _newest(state) for state in (None, *rules.DELIVERY_STATES)}
_COMPANY_OF = Statement(select(t.subscription.c.company_id).where(t.subscription.c.id == bigint("sub_id")))


async def company_of(database: Database, sub_id: int) -> int | None:
    """The subscription's company; None where there is no such subscription."""
    found: int | None = await database.value(_COMPANY_OF, sub_id=sub_id)
    return found


async def deliveries_newest(
    database: Database, sub_id: int, state: str | None, before: uuid.UUID | None, rows: int
) -> list[Record]:
    """Newest first. state: only those in it. before: only of older events."""
    return await database.rows(_NEWEST[state], sub_id=sub_id, before=before or NEWEST, rows=rows)


# Of one company


def _undelivered(states: Sequence[str]) -> Statement:
    """The oldest of each subscription, then the oldest of those: no subscription's history is walked through."""
    after = and_(
        t.delivery.c.event_id >= _uuid("after_event_id"),
        or_(t.delivery.c.event_id > _uuid("after_event_id"), t.delivery.c.subscription_id > bigint("after_sub_id")),
    )
    own = select(*_delivery).where(
        t.delivery.c.subscription_id == t.subscription.c.id, t.delivery.c.event_id < _uuid("until"), after
    )
    rows = bindparam("rows", type_=Integer)
    oldest = [
        own.where(_in_state(state))
        .order_by(t.delivery.c.event_id)
        .limit(rows)
        .correlate(t.subscription)
        .subquery(f"oldest_{state}")
        for state in states
    ]
    each = union_all(*(select(*one.c) for one in oldest)).lateral("each")
    cut = (
        select(*each.c)
        .select_from(t.subscription.join(each, true()))
        .where(t.subscription.c.company_id == bigint("company_id"))
        .order_by(each.c.event_id, each.c.subscription_id)
        .limit(rows)
        .subquery("found")
    )
    return Statement(_shown(cut).order_by(cut.c.event_id, cut.c.subscription_id))


_UNDELIVERED: dict[str | None, Statement] = {
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
) -> list[Record]:
    """Waiting and parked ones, oldest first. state: only those. until: only of events before that id."""
    return await database.rows(
        _UNDELIVERED[state],
        company_id=company_id,
        until=until,
        after_event_id=after_event_id,
        after_sub_id=after_sub_id,
        rows=rows,
    )


# Of one event

_EVENT = Statement(select(*t.event.c).where(t.event.c.event_id == _uuid("event_id")))
_of_event = select(*_delivery).where(t.delivery.c.event_id == _uuid("event_id"))
_DELIVERIES_OF_EVENT = Statement(_shown(_of_event.subquery("found")).order_by(text("found.subscription_id")))
_DELIVERY = Statement(_shown(_of_event.where(t.delivery.c.subscription_id == bigint("sub_id")).subquery("found")))


async def event(database: Database, event_id: uuid.UUID) -> Record | None:
    return await database.row(_EVENT, event_id=event_id)


async def deliveries_of_event(database: Database, event_id: uuid.UUID) -> list[Record]:
    """Ascending by subscription."""
    return await database.rows(_DELIVERIES_OF_EVENT, event_id=event_id)


async def delivery(database: Database, event_id: uuid.UUID, sub_id: int) -> Record | None:
    return await database.row(_DELIVERY, event_id=event_id, sub_id=sub_id)


# Attempts


def _attempts() -> Statement:
    wanted = array_rows(
        "wanted",
        event_id=Uuid,
        subscription_id=BigInteger,
        since=Integer,
        until=Integer,
    )
    shown = [column for column in t.attempt.c if column.name != "response_excerpt"]
    excerpt = func.substring(t.attempt.c.response_excerpt, 1, bindparam("excerpt_bytes", type_=Integer))
    return Statement(
        select(*shown, type_coerce(excerpt, LargeBinary()).label("response_excerpt"))
        .join(
            wanted,
            and_(
                t.attempt.c.event_id == wanted.c.event_id,
                t.attempt.c.subscription_id == wanted.c.subscription_id,
                t.attempt.c.number.between(wanted.c.since, wanted.c.until),
            ),
        )
        .order_by(t.attempt.c.event_id, t.attempt.c.subscription_id, t.attempt.c.number)
    )


_ATTEMPTS = _attempts()


async def attempts_of(
    database: Database, deliveries: Sequence[Record], *, excerpt_bytes: int, last_alone: bool = False
) -> list[Record]:
    """The attempts of these deliveries, as far as their rows count them, ascending by number."""
    return await database.rows(
        _ATTEMPTS,
        event_id=[row["event_id"] for row in deliveries],
        subscription_id=[row["subscription_id"] for row in deliveries],
        since=[row["attempts"] if last_alone else 1 for row in deliveries],
        until=[row["attempts"] for row in deliveries],
        excerpt_bytes=excerpt_bytes,
    )
