"""The SQL statements of svc-webhooks, named for what they return: subscriptions and events.

Those of a sweep are in queries_sweep.py, of what became of deliveries in queries_deliveries.py, and of what an
administrator changes in queries_administration.py.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    BindParameter,
    DateTime,
    LargeBinary,
    Text,
    and_,
    bindparam,
    func,
    select,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY, UUID, insert
from sqlalchemy.sql.selectable import CTE
from sqlalchemy.types import NullType

from chassis.db.database import Connection
from chassis.db.statements import Statement
from chassis.lists.paging import Pages
from chassis.writes.idempotency import InsertOnce
from svc_webhooks import tables as t

Uuid = UUID(as_uuid=True)
Instant = DateTime(timezone=True)


def bigint(name: str) -> BindParameter[int]:
    return bindparam(name, type_=BigInteger)


def array_rows(name: str, **columns: Any) -> CTE:
    """Parameters of arrays, one a column, as rows."""
    arrays = [bindparam(column, type_=ARRAY(kind)) for column, kind in columns.items()]
    offered = func.unnest(*arrays).table_valued(*columns).render_derived()
    return select(*offered.c).cte(name)


# Subscriptions

SHOWN = (
    t.subscription.c.id,
    t.subscription.c.destination_url,
    type_coerce(t.subscription.c.events, NullType()).label("events"),  # asyncpg's own list is what is wanted
    t.subscription.c.health,
    t.subscription.c.secret_prefix,
    t.subscription.c.created_at,
    t.subscription.c.source,
)

SUBSCRIPTIONS_PAGE = Pages(select(*SHOWN), t.subscription.c.company_id, t.subscription.c.id, {})
CREATE_SUBSCRIPTION = InsertOnce(t.idempotency, t.subscription)


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
    offered = array_rows(
        "offered",
        event_id=Uuid,
        company_id=BigInteger,
        event=Text,
        entity_id=BigInteger,
        occurred_at=Instant,
        request_id=Text,
        body=LargeBinary,
        due_at=Instant,
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
