"""The SQL that deletes the oldest events of companies' feeds."""

from __future__ import annotations

import datetime
import uuid
from typing import NamedTuple

from sqlalchemy import BigInteger, Integer, and_, delete, literal_column, select, update

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Statement, param
from svc_webhooks.schema import Instant, Uuid
from svc_webhooks.tables.events import feed, feed_entry

_company, _before = param("company_id", BigInteger), param("before", Instant)


class Gone(NamedTuple):
    """An event of the feed that was deleted."""

    position: int
    event_id: uuid.UUID


class Expired(NamedTuple):
    """A company with events that were stored before an instant."""

    company_id: int


_oldest = and_(
    feed_entry.c.company_id == feed.c.company_id,
    feed_entry.c.position == feed.c.begins_after + literal_column("1"),
)
# In the order of the numbers, so a process that is killed has deleted the oldest ones.
_LOCKED = Statement(select(feed.c.begins_after).where(feed.c.company_id == _company).with_for_update())
_some_old = (
    select(feed_entry.c.position, feed_entry.c.stored_at)
    .where(feed_entry.c.company_id == _company, feed_entry.c.position > param("after", BigInteger))
    .order_by(feed_entry.c.position)
    .limit(param("rows", Integer))
    .cte("some_old")
)
_DELETE = Query(
    Gone,
    delete(feed_entry)
    .where(
        feed_entry.c.company_id == _company,
        feed_entry.c.position == _some_old.c.position,
        _some_old.c.stored_at < _before,
    )
    .returning(feed_entry.c.position, feed_entry.c.event_id),
)
_BEGIN_AFTER = Statement(
    update(feed)
    .where(feed.c.company_id == _company)
    .values(begins_after=param("begins_after", BigInteger), begins_after_event_id=param("event_id", Uuid))
)
EXPIRED = Query(
    Expired,
    select(feed.c.company_id).select_from(feed.join(feed_entry, _oldest)).where(feed_entry.c.stored_at < _before),
)


async def companies_with_expired(database: Database, before: datetime.datetime) -> list[int]:
    return [row.company_id for row in await EXPIRED.rows(database, before=before)]


async def expired_deleted(connection: Connection, company_id: int, before: datetime.datetime, rows: int) -> int:
    """Deletes up to `rows` of the company's oldest events, those that were stored before an instant, from its feed;
    returns how many. Readers see all of it or nothing."""
    after = await connection.value(_LOCKED, company_id=company_id)
    gone = await _DELETE.rows(connection, company_id=company_id, after=after, before=before, rows=rows)
    if gone:
        last = max(gone)
        await connection.execute(
            _BEGIN_AFTER, company_id=company_id, begins_after=last.position, event_id=last.event_id
        )
    return len(gone)
