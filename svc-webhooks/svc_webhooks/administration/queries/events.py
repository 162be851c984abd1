"""The SQL statements that list a company's events: with some keys, about a record, or of a request; newest first."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Integer, Text, and_, func, select, text, true
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.db.database import Connection, Database
from chassis.db.rows import columns_of_tuples
from chassis.db.statements import Query, Statement, param
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.events.queries.events import StoredEvent
from svc_webhooks.schema import Uuid
from svc_webhooks.tables.deliveries import delivery
from svc_webhooks.tables.events import event


class ListedEvent(NamedTuple):
    """A stored event without its body: see tables/events.py."""

    event_id: uuid.UUID
    event: str
    entity_id: int
    occurred_at: datetime.datetime
    stored_at: datetime.datetime
    request_id: str


_columns = (
    event.c.event_id,
    event.c.event,
    event.c.entity_id,
    event.c.occurred_at,
    event.c.stored_at,
    event.c.request_id,
)
_rows = param("rows", Integer)
_key = func.unnest(param("keys", ARRAY(Text))).table_valued("key").render_derived(name="named")


def _newest(*having: ColumnElement[bool]) -> Query[ListedEvent]:
    return Query(ListedEvent, _of_company(*having).order_by(event.c.event_id.desc()).limit(_rows))


def _of_company(*having: ColumnElement[bool]):  # type: ignore[no-untyped-def]
    return select(*_columns).where(
        event.c.company_id == param("company_id", BigInteger),
        *having,
        event.c.event_id < param("before", Uuid),
        event.c.event_id >= param("since", Uuid),
    )


# The newest of each key through the index of keys, then the newest of those.
_each = _of_company(event.c.event == _key.c.key).order_by(event.c.event_id.desc()).limit(_rows).lateral("each")
WITH_KEYS = Query(
    ListedEvent, select(*_each.c).select_from(_key.join(_each, true())).order_by(_each.c.event_id.desc()).limit(_rows)
)
OF_RECORD = _newest(event.c.entity_id == param("entity_id", BigInteger))
# The literal condition is that of the index.
OF_REQUEST = _newest(and_(event.c.request_id == param("request_id", Text), text("request_id <> ''")))


async def events_newest(
    database: Database,
    company_id: int,
    keys: Sequence[str],
    *,
    entity_id: int | None,
    request_id: str,
    before: uuid.UUID,
    since: uuid.UUID,
    rows: int,
) -> list[ListedEvent]:
    """Newest first, by the filter that few events pass; the caller compares the others."""
    bounds = {"company_id": company_id, "before": before, "since": since, "rows": rows}
    async with database.transaction(BY_INDEX, writes=False) as connection:
        if request_id:
            return await OF_REQUEST.rows(connection, request_id=request_id, **bounds)
        if entity_id is not None:
            return await OF_RECORD.rows(connection, entity_id=entity_id, **bounds)
        return await WITH_KEYS.rows(connection, keys=list(keys), **bounds)


# The states of events' deliveries


class StateCount(NamedTuple):
    """Deliveries of an event in a state."""

    event_id: uuid.UUID
    state: str
    deliveries: int


STATES = Query(
    StateCount,
    select(delivery.c.event_id, delivery.c.state, func.count().label("deliveries"))
    .where(
        delivery.c.event_id == func.any(param("event_ids", ARRAY(Uuid))),
        # These limit any plan to the days concerned.
        delivery.c.event_id >= param("first", Uuid),
        delivery.c.event_id <= param("last", Uuid),
    )
    .group_by(delivery.c.event_id, delivery.c.state),
)


async def states_of(database: Database, event_ids: Sequence[uuid.UUID]) -> list[StateCount]:
    if not event_ids:
        return []
    async with database.transaction(BY_INDEX, writes=False) as connection:
        return await STATES.rows(connection, event_ids=list(event_ids), first=min(event_ids), last=max(event_ids))


# Tests

_STORE_EVENT = Statement(
    insert(event).values(
        {
            name: param(name, event.c[name].type)
            for name in (
                "event_id",
                "company_id",
                "event",
                "entity_id",
                "occurred_at",
                "request_id",
                "traceparent",
                "body",
                "stored_at",
            )
        }
    )
)
_STORE_DELIVERY = Statement(
    insert(delivery).values(
        event_id=param("event_id", Uuid),
        subscription_id=param("sub_id", BigInteger),
        state=text("'failed'"),
        settled_at=param("settled_at", event.c.occurred_at.type),
    )
)


async def test_stored(connection: Connection, stored: StoredEvent, sub_id: int) -> None:
    """Stores the event of a test with its delivery, which has not arrived yet and does not wait."""
    values = {name: column[0] for name, column in columns_of_tuples([stored]).items() if name != "due_at"}
    await connection.execute(_STORE_EVENT, stored_at=stored.occurred_at, **values)
    await connection.execute(_STORE_DELIVERY, event_id=stored.event_id, sub_id=sub_id, settled_at=stored.occurred_at)
