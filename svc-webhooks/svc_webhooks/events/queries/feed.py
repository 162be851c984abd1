"""The SQL of companies' feeds: the numbers that belong to an instant, and the deletion of the oldest events."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import BigInteger, Integer, Table, and_, delete, func, literal_column, select, text, true, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Statement, param
from svc_webhooks.days import OLDEST
from svc_webhooks.schema import Instant, Uuid
from svc_webhooks.tables.deliveries import attempt, delivery
from svc_webhooks.tables.events import event, feed, feed_entry

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


async def expired_deleted(
    connection: Connection, company_id: int, before: datetime.datetime, rows: int
) -> list[uuid.UUID]:
    """Deletes up to `rows` of the company's oldest events, those that were stored before an instant, from its feed;
    returns their ids. Readers see all of it or nothing."""
    after = await connection.value(_LOCKED, company_id=company_id)
    gone = await _DELETE.rows(connection, company_id=company_id, after=after, before=before, rows=rows)
    if gone:
        last = max(gone)
        await connection.execute(
            _BEGIN_AFTER, company_id=company_id, begins_after=last.position, event_id=last.event_id
        )
    return [row.event_id for row in gone]


# A sandbox's events, which go before their days do


def _of_them(table: Table) -> sa.ColumnElement[bool]:
    """The bounds limit any plan to the partitions concerned."""
    return and_(
        table.c.event_id == func.any(param("ids", ARRAY(Uuid))),
        table.c.event_id >= param("first", Uuid),
        table.c.event_id <= param("last", Uuid),
    )


DELETE_EVENTS = Statement(
    delete(event)
    .where(_of_them(event))
    .add_cte(*(delete(table).where(_of_them(table)).cte(f"gone_{table.name}") for table in (delivery, attempt)))
)
# A test is in no feed.
OLD_TESTS = Statement(
    select(event.c.event_id)
    .where(event.c.company_id == _company, event.c.event == text("'webhook.test'"), event.c.stored_at < _before)
    .limit(param("rows", Integer))
)


async def old_tests(connection: Connection, company_id: int, before: datetime.datetime, rows: int) -> list[uuid.UUID]:
    """Up to `rows` events of a company's tests that were stored before an instant."""
    tests = await connection.rows(OLD_TESTS, company_id=company_id, before=before, rows=rows)
    return [row["event_id"] for row in tests]


async def events_deleted(connection: Connection, event_ids: Sequence[uuid.UUID]) -> None:
    """Deletes events with their deliveries and attempts."""
    await connection.execute(DELETE_EVENTS, ids=list(event_ids), first=min(event_ids), last=max(event_ids))


# Numbers by instant


class Found(NamedTuple):
    """A number."""

    number: int


def _last_before() -> Query[Found]:
    """Halves the numbers: they are dense, and their instants never go back."""
    low = feed.c.begins_after.label("low")
    bounds = select(low, (feed.c.position + literal_column("1")).label("high")).where(feed.c.company_id == _company)
    search = bounds.cte("search", recursive=True)
    middle = literal_column("(search.low + search.high) / 2", BigInteger)
    half = (
        select(feed_entry.c.position, (feed_entry.c.stored_at < param("instant", Instant)).label("is_before"))
        .where(feed_entry.c.company_id == _company, feed_entry.c.position == middle)
        .correlate(search)
        .lateral("half")
    )
    step = select(
        sa.case((half.c.is_before, half.c.position), else_=search.c.low),
        sa.case((half.c.is_before, search.c.high), else_=half.c.position),
    ).select_from(search.join(half, true()))
    search = search.union_all(step.where(search.c.high - search.c.low > literal_column("1")))
    done = search.c.high - search.c.low <= literal_column("1")
    return Query(Found, select(search.c.low.label("number")).where(done))


LAST_BEFORE = _last_before()


async def last_before(on: Database | Connection, company_id: int, instant: datetime.datetime) -> int:
    """The number of the last event that was stored before an instant; that before the oldest one if none was."""
    last = await LAST_BEFORE.row(on, company_id=company_id, instant=instant)
    return 0 if last is None else last.number


_ID_AT = Statement(
    select(feed_entry.c.event_id).where(
        feed_entry.c.company_id == _company, feed_entry.c.position == param("position", BigInteger)
    )
)


async def id_before(database: Database, company_id: int, instant: datetime.datetime) -> uuid.UUID:
    """The id of the last event of the company's feed that was stored before an instant; the lowest id if none was."""
    last = await last_before(database, company_id, instant)
    event_id = await database.value(_ID_AT, company_id=company_id, position=last)
    return OLDEST if event_id is None else uuid.UUID(int=event_id.int)
