"""The SQL that stores events, each with a delivery for every subscription that names it."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, LargeBinary, Text, and_, func, select
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Connection
from chassis.db.rows import array_rows, columns_of_tuples
from chassis.db.statements import Statement
from svc_webhooks.schema import Instant, Uuid
from svc_webhooks.tables.deliveries import delivery
from svc_webhooks.tables.events import event
from svc_webhooks.tables.subscriptions import subscription


class StoredEvent(NamedTuple):
    """An event to be stored."""

    event_id: uuid.UUID
    company_id: int
    event: str
    entity_id: int
    occurred_at: datetime.datetime
    request_id: str
    traceparent: str | None
    body: bytes
    due_at: datetime.datetime


def _store_events() -> Statement:
    rows = array_rows(
        "rows",
        {
            "event_id": Uuid,
            "company_id": BigInteger,
            "event": Text,
            "entity_id": BigInteger,
            "occurred_at": Instant,
            "request_id": Text,
            "traceparent": Text,
            "body": LargeBinary,
            "due_at": Instant,
        },
    )
    offered = select(*rows.c).cte("offered")  # it is used three times
    columns = ("event_id", "company_id", "event", "entity_id", "occurred_at", "request_id", "traceparent", "body")
    stored = insert(event).from_select(columns, select(*(offered.c[name] for name in columns)), include_defaults=False)
    # KEY SHARE: the subscription can't be deleted between the match and the commit, but its health may change.
    matching = (
        select(subscription.c.id, subscription.c.company_id, subscription.c.events)
        .where(subscription.c.company_id.in_(select(offered.c.company_id)))
        .with_for_update(read=True, key_share=True, of=subscription)
        .cte("matching")
    )
    matched = select(offered.c.event_id, matching.c.id, offered.c.due_at).select_from(
        offered.join(
            matching,
            and_(matching.c.company_id == offered.c.company_id, offered.c.event == func.any(matching.c.events)),
        )
    )
    return Statement(
        insert(delivery)
        .from_select(["event_id", "subscription_id", "due_at"], matched, include_defaults=False)
        .add_cte(stored.cte("stored"))
    )


_STORE_EVENTS = _store_events()


async def store_events(connection: Connection, events: Sequence[StoredEvent]) -> None:
    """Inserts events and a delivery for every subscription of the company that names the event."""
    await connection.execute(_STORE_EVENTS, **columns_of_tuples(events))
