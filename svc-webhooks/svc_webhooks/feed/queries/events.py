"""The SQL that reads a company's feed: a page after a number, and the numbers that belong to an instant."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Column, ColumnElement, Integer, Text, func, literal_column, select, true
from sqlalchemy.dialects.postgresql import ARRAY, array

from chassis.db.database import IN_ORDER, ONE_PLAN, Connection
from chassis.db.history import SERVER, TIMELINE
from chassis.db.statements import Query, param
from svc_webhooks.schema import Uuid
from svc_webhooks.tables.events import event, feed, feed_entry

# A page reads its rows through the index that has their order.
BY_NUMBER = f"{IN_ORDER}; SET LOCAL enable_bitmapscan = off; SET LOCAL plan_cache_mode = {ONE_PLAN}"


class FeedRow(NamedTuple):
    """The company's feed, next to one of the page's events; the last four are null if the page is empty.

    position, begins_after: null for a company without events. after_event_id: of the event that the page follows, and
    null if that is deleted; newest_event_id: of the newest one, likewise.
    """

    epoch: int
    newest: int | None
    begins_after: int | None
    begins_after_event_id: uuid.UUID | None
    after_event_id: uuid.UUID | None
    newest_event_id: uuid.UUID | None
    number: int | None
    stored_at: datetime.datetime | None
    event_id: uuid.UUID | None
    body: bytes | None


_company = param("company_id", BigInteger)
_epoch = literal_column(f"hashtextextended(concat_ws(' ', 'feed'::regclass::oid, {SERVER}, {TIMELINE}), 0)", BigInteger)


def _event_id_at(number: ColumnElement[int]) -> ColumnElement[uuid.UUID]:
    entry_at = feed_entry.alias()
    return (
        select(entry_at.c.event_id)
        .where(entry_at.c.company_id == feed.c.company_id, entry_at.c.position == number)
        .scalar_subquery()
    )


def _is(column: Column[Any], name: str) -> ColumnElement[bool]:
    """As the only element of an array: a column that equals a value is no part of an order, and then an index without
    it would serve as well."""
    return column == func.any(array([param(name, column.type)]))


def _page(*by: ColumnElement[bool], order: Sequence[Column[Any]] = ()) -> Query[FeedRow]:
    """One statement, so that the page and what is said about the feed are of the same moment."""
    entry, after = feed_entry, param("after", BigInteger)
    entries = (
        select(entry.c.position, entry.c.stored_at, entry.c.event_id, entry.c.body)
        .where(_is(entry.c.company_id, "company_id"), entry.c.position > after, *by)
        .order_by(entry.c.company_id, *order, entry.c.position)
        .limit(param("rows", Integer))
        .lateral("entries")
    )
    one_row = select(literal_column("1").label("one")).subquery("one_row")
    # Materialized: once, and not for each event of the page.
    about = (
        select(
            _epoch.label("epoch"),
            feed.c.position.label("newest"),
            feed.c.begins_after,
            feed.c.begins_after_event_id,
            _event_id_at(after).label("after_event_id"),
            _event_id_at(feed.c.position).label("newest_event_id"),
        )
        .select_from(one_row.outerjoin(feed, feed.c.company_id == _company))
        .cte("about")
        .prefix_with("MATERIALIZED")
    )
    return Query(
        FeedRow,
        select(
            *about.c, entries.c.position.label("number"), entries.c.stored_at, entries.c.event_id, entries.c.body
        ).select_from(about.outerjoin(entries, true())),
    )


_keys = param("keys", ARRAY(Text))
PAGE = _page()
PAGE_OF_KIND = _page(_is(feed_entry.c.event, "key"), order=(feed_entry.c.event,))
PAGE_OF_RECORD = _page(
    _is(feed_entry.c.entity_id, "entity_id"), feed_entry.c.event == func.any(_keys), order=(feed_entry.c.entity_id,)
)


class Body(NamedTuple):
    """An event's envelope."""

    event_id: uuid.UUID
    body: bytes


BODIES = Query(
    Body,
    select(event.c.event_id, event.c.body).where(
        event.c.event_id == func.any(param("event_ids", ARRAY(Uuid))),
        # These limit any plan to the days concerned.
        event.c.event_id >= param("first", Uuid),
        event.c.event_id <= param("last", Uuid),
    ),
)


class Narrowed(NamedTuple):
    """The filters of a page: by the event's `key`, or by the record's `entity_id` with the `keys` of its kind."""

    key: str | None = None
    entity_id: int | None = None
    keys: Sequence[str] = ()


async def page(connection: Connection, company_id: int, after: int, by: Narrowed, rows: int) -> list[FeedRow]:
    """Up to `rows` events after a number, ascending; a single row without event if there are none."""
    at = {"company_id": company_id, "after": after, "rows": rows}
    if by.entity_id is not None:
        return await PAGE_OF_RECORD.rows(connection, entity_id=by.entity_id, keys=list(by.keys), **at)
    if by.key is not None:
        return await PAGE_OF_KIND.rows(connection, key=by.key, **at)
    return await PAGE.rows(connection, **at)


async def bodies(connection: Connection, event_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, bytes]:
    """By the event's id."""
    if not event_ids:
        return {}
    first, last = min(event_ids), max(event_ids)
    rows = await BODIES.rows(connection, event_ids=list(event_ids), first=first, last=last)
    return {row.event_id: row.body for row in rows}
