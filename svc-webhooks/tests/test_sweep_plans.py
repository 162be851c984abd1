"""What a sweep's statements meet is in proportion to what they return, however many deliveries wait."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import AsyncIterator

import pytest
from webhooks_days import DAY, TODAY, event_id, partitions_of

from chassis.database import Database
from makeready_local.crowd import analyze
from makeready_local.plans import statement_plan
from makeready_local.schemas import declare
from makeready_local.testing import PostgresServer
from svc_webhooks import queries_sweep as queries
from svc_webhooks import tables as t

DAYS, EVENTS, SUBSCRIPTIONS, DUE = 8, 2000, 40, 5  # 80,000 deliveries, of which 5 a subscription are due
SUBSCRIBED = """
INSERT INTO subscription (id, company_id, destination_url, events, secret_prefix, secret_key_id, secret_sealed,
  created_at, source) SELECT id, 1, 'https://receiver.test/', '{ticket.created}', '', '', '', '2020-01-01', 'api'
FROM generate_series(1, $1::int) id
"""
STORED = """
INSERT INTO event (event_id, company_id, event, entity_id, occurred_at, request_id, body)
SELECT id, 1, 'ticket.created', 1, now(), '', '{}' FROM unnest($1::uuid[]) id
"""
WAITING = """
INSERT INTO delivery (event_id, subscription_id, due_at)
SELECT id, s, CASE WHEN number <= $3 THEN now() - interval '1 hour' ELSE now() + interval '1 day' END
FROM unnest($1::uuid[]) WITH ORDINALITY offered (id, number), generate_series(1, $2::int) s
"""


@pytest.fixture(scope="module")
async def waiting(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    url = postgres_server.create_database("webhooks_sweep_plans")
    await declare(url, t.metadata)
    database = Database(url, application="tests", plans="auto")
    await database.open()
    async with database.connection() as connection:
        await connection.raw.execute("CREATE SCHEMA partitions")
    maker = partitions_of(database)
    for number in range(DAYS):
        assert await maker.hold(event_id(TODAY - number * DAY))
    ids = [event_id(TODAY - number % DAYS * DAY, number) for number in range(EVENTS)]
    async with database.connection() as connection:
        await connection.raw.execute(SUBSCRIBED, SUBSCRIPTIONS)
        await connection.raw.execute(STORED, ids)
        await connection.raw.execute(WAITING, ids, SUBSCRIPTIONS, DUE)
    await analyze(database)
    yield database
    await database.close()


def now(*, all_due: bool) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) + (2 * DAY if all_due else datetime.timedelta())


@pytest.mark.parametrize("all_due", [False, True], ids=["few", "all"])
async def test_finding_who_has_something_due_meets_a_delivery_or_two_of_each(waiting: Database, all_due: bool) -> None:
    plan = await statement_plan(
        waiting, queries._SUBSCRIPTIONS_DUE, queries.BY_INDEX, now=now(all_due=all_due), after_id=0, rows=1000
    )
    assert plan.returned == SUBSCRIPTIONS
    assert plan.rows_met <= 3 * SUBSCRIPTIONS and not plan.whole_tables
    assert plan.buffers <= 4 * DAYS * SUBSCRIPTIONS


@pytest.mark.parametrize(("all_due", "rows"), [(False, DUE), (True, 16)], ids=["few", "all"])
async def test_a_claim_meets_what_it_claims(waiting: Database, all_due: bool, rows: int) -> None:
    """Each row when it is found, changed and joined with its event and subscription; and one of each day in between."""
    plan = await statement_plan(
        waiting,
        queries._CLAIM_DELIVERIES,
        queries.BY_INDEX,
        subscription_id=list(range(1, SUBSCRIPTIONS + 1)),
        rows=[16] * SUBSCRIPTIONS,
        now=now(all_due=all_due),
        lease_seconds=0,
    )
    assert plan.returned == rows * SUBSCRIPTIONS
    assert plan.rows_met <= (4 * rows + DAYS + 4) * SUBSCRIPTIONS and not plan.whole_tables
    assert plan.buffers <= (40 * rows + 4 * DAYS) * SUBSCRIPTIONS


async def test_a_record_meets_what_it_records(waiting: Database) -> None:
    wanted = dict.fromkeys(range(1, 17), 16)
    rows = await queries.claimed_deliveries(waiting, wanted, now(all_due=True), 60)
    many = len(rows)
    assert many == 256
    columns: dict[str, list[object]] = {
        "event_id": [row["event_id"] for row in rows],
        "subscription_id": [row["subscription_id"] for row in rows],
        "fence": [row["fence"] for row in rows],
        "response_excerpt": [b"thanks"] * many,
        "started_at": [datetime.datetime.now(datetime.UTC)] * many,
    }
    same = {"number": 1, "rung": 1, "state": "succeeded", "due_at": None, "cause": "sweep", "status": 200, "error": ""}
    same |= dict.fromkeys(("connect_milliseconds", "tls_milliseconds", "first_byte_milliseconds", "address"))
    same |= {"duration_milliseconds": 1}
    columns |= {name: [value] * many for name, value in same.items()}
    plan = await statement_plan(waiting, queries._RECORD_ATTEMPTS, queries.BY_INDEX, **columns)
    assert plan.returned == many
    assert plan.rows_met <= 4 * many and not plan.whole_tables
    assert plan.buffers <= 60 * many


async def test_the_backlog_is_told_by_the_oldest_of_each(waiting: Database) -> None:
    plan = await statement_plan(waiting, queries._BACKLOG, queries.BY_INDEX, now=now(all_due=True))
    assert plan.rows_met <= (DAYS + 2) * SUBSCRIPTIONS and not plan.whole_tables
    many, since = await queries.backlog(waiting, now(all_due=True))
    assert many == SUBSCRIPTIONS
    assert since is not None and since < now(all_due=False)
    assert await queries.backlog(waiting, now(all_due=False) - DAY) == (0, None)


async def test_one_delivery_is_claimed_by_its_key(waiting: Database) -> None:
    async with waiting.connection() as connection:
        chosen: uuid.UUID = await connection.raw.fetchval("SELECT event_id FROM delivery WHERE subscription_id = 40")
    plan = await statement_plan(
        waiting, queries._CLAIM_DELIVERY, queries.BY_INDEX, event_id=chosen, subscription_id=40, lease_seconds=0
    )
    assert plan.returned == 1
    assert plan.rows_met <= 8 and not plan.whole_tables
