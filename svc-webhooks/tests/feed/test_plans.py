"""A page of the feed costs what its events cost, at any depth and by any filter."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chassis.db.database import Database
from svc_webhooks import tables as t
from svc_webhooks.events.queries import feed
from svc_webhooks.feed.queries import events
from testkit.plans import Plan, statement_plan
from testkit.plugin import PostgresServer
from testkit.schemas import declare
from testkit.skewed_rows import analyze

pytestmark = pytest.mark.plans

EVENTS, COMPANIES, ROWS = 20_000, 3, 51
FIRST = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
NUMBERED = """
INSERT INTO feed_entry (company_id, position, stored_at, event_id, event, entity_id)
SELECT c, n, timestamptz '2026-06-01' + n * interval '1 s', gen_random_uuid(),
  CASE WHEN n % 2000 = 0 THEN 'vendor.hold' ELSE 'ticket.created' END, n % 400
FROM generate_series(1, $1::int) c, generate_series(1, $2::int) n
"""


@pytest.fixture(scope="module")
async def feeds(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    url = postgres_server.create_database("webhooks_feed_plans")
    await declare(url, t.metadata)
    database = Database(url, application="tests", plans="auto")
    await database.open()
    async with database.connection() as connection:
        await connection.raw.execute(NUMBERED, COMPANIES, EVENTS)
        await connection.raw.execute(
            "INSERT INTO feed (company_id, position, stored_at)"
            " SELECT company_id, max(position), max(stored_at) FROM feed_entry GROUP BY company_id"
        )
    await analyze(database)
    yield database
    await database.close()


async def plan_of(feeds: Database, query: Any, **values: Any) -> Plan:
    plan = await statement_plan(feeds, query.statement, events.BY_NUMBER, company_id=2, **values)
    assert "feed_entry" not in plan.whole_tables
    return plan


async def test_a_page_reads_its_events_at_any_depth_and_by_any_filter(feeds: Database) -> None:
    for after in (0, EVENTS // 2, EVENTS - ROWS):
        plan = await plan_of(feeds, events.PAGE, after=after, rows=ROWS)
        # Besides the events: the feed, the event that the page follows, the newest one, and the row that they join.
        assert plan.returned == ROWS and plan.rows_met <= ROWS + 4
    assert (await plan_of(feeds, events.PAGE, after=EVENTS, rows=ROWS)).rows_met <= 4
    plan = await plan_of(feeds, events.PAGE_OF_KIND, after=EVENTS // 2, rows=ROWS, key="vendor.hold")
    assert plan.returned == EVENTS // 2 // 2000 and plan.rows_met <= plan.returned + 4
    keys = ["ticket.created", "vendor.hold"]
    plan = await plan_of(feeds, events.PAGE_OF_RECORD, after=EVENTS // 2, rows=ROWS, entity_id=7, keys=keys)
    assert plan.returned == EVENTS // 2 // 400 and plan.rows_met <= plan.returned + 4


async def test_an_instant_is_found_by_halves(feeds: Database) -> None:
    for number in (1, 2, 777, EVENTS):
        instant = FIRST + datetime.timedelta(seconds=number)
        assert await feed.last_before(feeds, 2, instant) == number - 1
    plan = await plan_of(feeds, feed.LAST_BEFORE, instant=FIRST + datetime.timedelta(seconds=777))
    assert plan.rows_met <= 4 * EVENTS.bit_length()
