"""A page of subscriptions and a batch of a deletion cost the same, however many rows the tables or others have."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chassis.db.database import IN_ORDER, Database
from chassis.writes.purging import CompanyRows
from svc_webhooks import tables as t
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.subscriptions.queries import erasure, subscriptions
from testkit.plans import lists_of, statement_plan
from testkit.plugin import PostgresServer
from testkit.schemas import declare
from testkit.skewed_rows import analyze, check_pages, make_crowd

from .days_of_events import DAY, SUB, TODAY, event_id, partitions_of

pytestmark = pytest.mark.plans

FILLS = (
    "subscription (id, company_id, destination_url, events, secret_prefix, secret_key_id, secret_sealed, created_at,"
    " source) SELECT id, company_id, 'https://receiver.test/', '{ticket.created}', '', '', '', '2020-01-01', 'api'",
)
LISTS = lists_of(subscriptions)
DAYS, EVENTS_A_DAY, SUBSCRIPTIONS, ROWS = 4, 250, 20, 50


@pytest.fixture(scope="module")
async def crowd(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    url = postgres_server.create_database("webhooks_plans")
    await declare(url, t.metadata)
    database = Database(url, application="tests", plans="auto")
    await database.open()
    await make_crowd(database, FILLS)
    async with database.connection() as connection:
        await connection.raw.execute("CREATE SCHEMA partitions")
    maker = partitions_of(database)
    for number in range(DAYS):
        assert await maker.ensure_day(event_id(TODAY - number * DAY))
    ids = [event_id(TODAY - number % DAYS * DAY, number) for number in range(DAYS * EVENTS_A_DAY)]
    async with database.connection() as connection:
        for number in range(SUBSCRIPTIONS):
            await connection.raw.execute(
                "INSERT INTO delivery (event_id, subscription_id, state, settled_at, attempts)"
                " SELECT id, $2, 'succeeded', now(), 2 FROM unnest($1::uuid[]) id",
                ids, SUB + number,
            )  # fmt: skip
        await connection.raw.execute(
            "INSERT INTO attempt (event_id, subscription_id, number, started_at, duration_milliseconds, status, error,"
            " response_excerpt, state) SELECT event_id, subscription_id, number, now(), 1, 200, '', '', 'succeeded'"
            " FROM delivery, generate_series(1, 2) number"
        )
    await analyze(database)
    yield database
    await database.close()


async def test_a_page_of_subscriptions_costs_the_same_wherever_it_is(crowd: Database) -> None:
    assert await check_pages(crowd, subscriptions.SUBSCRIPTIONS_PAGE, (), {}, with_changes=False)


async def test_a_batch_of_a_deletion_meets_what_it_deletes(crowd: Database) -> None:
    after = uuid.UUID(int=0)
    for _ in range(3):
        finding = await statement_plan(crowd, erasure.SOME, BY_INDEX, sub_id=SUB, after=after, rows=ROWS)
        assert finding.rows_met <= ROWS and not finding.whole_tables
        ids = [row["event_id"] for row in await crowd.rows(erasure.SOME, sub_id=SUB, after=after, rows=ROWS)]
        values = {"sub_id": SUB, "ids": ids, "first": ids[0], "last": ids[-1]}
        deleting = await statement_plan(crowd, erasure.DELETE_THEM, BY_INDEX, **values)
        assert deleting.rows_met <= (1 + 2) * ROWS and not deleting.whole_tables
        after = ids[-1]
    async with crowd.connection() as connection:  # EXPLAIN ANALYZE has executed the deletions
        count = "SELECT count(*) FROM attempt WHERE subscription_id = $1"
        assert await connection.raw.fetchval(count, SUB) == 2 * (DAYS * EVENTS_A_DAY - 3 * ROWS)


def test_every_list_is_measured() -> None:
    assert list(LISTS) == ["SUBSCRIPTIONS_PAGE"]


@pytest.mark.parametrize("table", ["attempt", "delivery", "event"])
async def test_a_purge_looks_at_no_rows_of_other_companies(crowd: Database, table: str) -> None:
    rows: Any = CompanyRows(crowd, t.metadata)._parts[table]
    batch = await statement_plan(crowd, rows._some, IN_ORDER, company_id=999, rows=16)
    count = await statement_plan(crowd, rows._count, IN_ORDER, company_id=999)
    assert (batch.rows_met, count.rows_met, batch.whole_tables, count.whole_tables) == (0, 0, [], [])
