"""The statements of the administrators' lists read what they return, however many rows the days and others have."""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from chassis.db.database import Database
from svc_webhooks import tables as t
from svc_webhooks.administration.queries import changes, deliveries, events, subscriptions
from svc_webhooks.administration.queries.changes import Parked
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.days import NEWEST, OLDEST
from testkit.plans import Plan, statement_plan
from testkit.plugin import PostgresServer
from testkit.schemas import declare
from testkit.skewed_rows import analyze

from ..days_of_events import DAY, TODAY, event_id, partitions_of

pytestmark = pytest.mark.plans

DAYS, EVENTS, SUBSCRIPTIONS, ROWS = 6, 6000, 4, 50
COMPANY, OTHER = 1, 2
STORED = """
INSERT INTO event (event_id, company_id, event, entity_id, occurred_at, request_id, body)
SELECT id, CASE WHEN n % 2 = 0 THEN 1 ELSE 2 END,
  CASE WHEN n % 500 = 0 THEN 'vendor.hold' ELSE 'ticket.created' END, n % 300, now(),
  CASE WHEN n % 3 = 0 THEN '' ELSE 'req-' || n END, '{}'
FROM unnest($1::uuid[]) WITH ORDINALITY each (id, n)
"""
DELIVERED = """
INSERT INTO delivery (event_id, subscription_id, state, due_at, settled_at, attempts)
SELECT id, s, CASE n % 100 WHEN 0 THEN 'parked' WHEN 1 THEN 'waiting' ELSE 'succeeded' END,
  CASE n % 100 WHEN 1 THEN now() END, CASE n % 100 WHEN 1 THEN NULL ELSE now() END, 1
FROM unnest($1::uuid[]) WITH ORDINALITY each (id, n), generate_series(1, $2::int) s
"""
ATTEMPTED = """
INSERT INTO attempt (event_id, subscription_id, number, started_at, duration_milliseconds, first_byte_milliseconds,
  status, error, response_excerpt, state)
SELECT event_id, subscription_id, 1,
  timestamptz '2026-06-01' + row_number() OVER (ORDER BY event_id) * interval '1 s', 1, 1, 200, '', '', 'succeeded'
FROM delivery
"""


@pytest.fixture(scope="module")
async def crowd(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    url = postgres_server.create_database("webhooks_administration_plans")
    await declare(url, t.metadata)
    database = Database(url, application="tests", plans="auto")
    await database.open()
    async with database.connection() as connection:
        await connection.raw.execute("CREATE SCHEMA partitions")
        await connection.raw.execute(
            "INSERT INTO subscription (id, company_id, destination_url, events, secret_prefix, secret_key_id,"
            " secret_sealed, created_at, source) SELECT id, $2, 'https://receiver.test/', '{ticket.created}', '', '',"
            " '', '2020-01-01', 'api' FROM generate_series(1, $1::int) id",
            SUBSCRIPTIONS, COMPANY,
        )  # fmt: skip
    maker = partitions_of(database)
    for number in range(DAYS):
        assert await maker.ensure_day(event_id(TODAY - number * DAY))
    # Every day has each kind of event: the day and what `STORED` makes of the number are independent.
    ids = [event_id(TODAY - number // 7 % DAYS * DAY, number) for number in range(EVENTS)]
    async with database.connection() as connection:
        await connection.raw.execute(STORED, ids)
        await connection.raw.execute(DELIVERED, ids, SUBSCRIPTIONS)
        await connection.raw.execute(ATTEMPTED)
    await analyze(database)
    yield database
    await database.close()


BOUNDS = {"company_id": COMPANY, "before": NEWEST, "since": OLDEST, "rows": ROWS}


async def plan_of(crowd: Database, query: Any, first: str = BY_INDEX, /, **values: Any) -> Plan:
    plan = await statement_plan(crowd, query.statement, first, **values)
    assert not plan.whole_tables
    return plan


async def test_events_are_read_by_key_by_record_and_by_request(crowd: Database) -> None:
    # Each key is read for itself, from each day until there are enough.
    plan = await plan_of(crowd, events.WITH_KEYS, **BOUNDS, keys=["ticket.created", "vendor.hold"])
    assert plan.returned == ROWS and plan.rows_met <= 3 * ROWS
    plan = await plan_of(crowd, events.WITH_KEYS, **BOUNDS, keys=["vendor.hold"])
    assert plan.returned == plan.rows_met == EVENTS // 500
    plan = await plan_of(crowd, events.OF_RECORD, **BOUNDS, entity_id=4)
    assert plan.returned == plan.rows_met == EVENTS // 300
    plan = await plan_of(crowd, events.OF_REQUEST, **BOUNDS, request_id="req-4")
    assert plan.returned == plan.rows_met == 1


async def test_deliveries_of_events_are_read_by_their_keys(crowd: Database) -> None:
    ids = sorted(event_id(TODAY, number) for number in range(0, 7 * DAYS * 4, 7 * DAYS))
    values = {"event_ids": ids, "first": ids[0], "last": ids[-1]}
    plan = await plan_of(crowd, events.STATES, **values)
    assert plan.rows_met == len(ids) * SUBSCRIPTIONS
    plan = await plan_of(crowd, deliveries.OF_EVENTS, **values)
    # The deliveries, and for each its event and its subscription; companies are not replicated here.
    assert plan.returned == len(ids) * SUBSCRIPTIONS and plan.rows_met <= 3 * plan.returned
    plan = await plan_of(crowd, deliveries.BODIES, **values, bytes_max=64)
    assert plan.returned == plan.rows_met == len(ids)


async def test_what_waits_and_is_parked_is_counted_in_its_own_indexes(crowd: Database) -> None:
    each = EVENTS // 100
    plan = await plan_of(crowd, subscriptions.DETAILS, sub_id=1)
    assert plan.rows_met <= 2 * each + 2
    plan = await plan_of(crowd, subscriptions.DETAILS_PAGE, company_id=COMPANY, after_id=0, rows=ROWS)
    assert plan.returned == SUBSCRIPTIONS and plan.rows_met <= SUBSCRIPTIONS * (2 * each + 2)
    plan = await plan_of(crowd, subscriptions.HISTORY, sub_id=1)
    assert plan.rows_met <= EVENTS + 2 * each


async def test_a_count_reads_the_deliveries_that_it_counts(crowd: Database) -> None:
    values = {"sub_id": 1, "since": OLDEST, "before": NEWEST}
    for state in ("parked", "waiting"):
        plan = await plan_of(crowd, subscriptions.COUNTS[state, False], **values)
        assert plan.rows_met <= EVENTS // 100 + 1
    plan = await plan_of(crowd, subscriptions.COUNTS[None, False], **values | {"since": event_id(TODAY)})
    assert plan.rows_met <= EVENTS // DAYS + 1
    plan = await plan_of(crowd, subscriptions.COUNTS["parked", True], **values | {"event": "vendor.hold"})
    assert plan.rows_met <= 3 * (EVENTS // 100)  # and their events


async def test_the_progress_of_a_retry_reads_what_is_due_and_what_was_attempted_since(crowd: Database) -> None:
    since = datetime.datetime(2026, 6, 1, 1, tzinfo=datetime.UTC)
    attempted = EVENTS - 3600 // SUBSCRIPTIONS
    plan = await plan_of(crowd, subscriptions.RETRIED, sub_id=1, since=since)
    assert 0 < plan.rows_met <= attempted + SUBSCRIPTIONS
    due_by = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    waiting_plan = await statement_plan(crowd, subscriptions.RETRIES_WAITING, BY_INDEX, sub_id=1, due_by=due_by)
    assert waiting_plan.rows_met <= EVENTS // 100 + 1 and not waiting_plan.whole_tables


async def test_statistics_read_the_attempts_of_their_period_alone(crowd: Database) -> None:
    since = datetime.datetime(2026, 6, 1, 1, tzinfo=datetime.UTC)
    period = {"sub_id": 1, "since": since, "until": since + datetime.timedelta(minutes=4)}
    plan = await plan_of(crowd, subscriptions.STATS, subscriptions.NO_SCAN, **period, step="hour")
    assert 0 < plan.rows_met <= 240 / SUBSCRIPTIONS + SUBSCRIPTIONS
    plan = await plan_of(crowd, subscriptions.ANSWERS, subscriptions.NO_SCAN, **period, rows=20)
    assert 0 < plan.rows_met <= 240 / SUBSCRIPTIONS + SUBSCRIPTIONS


@pytest.mark.parametrize("narrowed", [False, True])
async def test_parked_deliveries_are_made_due_from_their_own_index(crowd: Database, narrowed: bool) -> None:
    async with crowd.connection() as connection:
        find = "SELECT event_id FROM delivery WHERE subscription_id = 2 AND state = 'parked' ORDER BY 1 LIMIT 5"
        ids: list[uuid.UUID] = [row[0] for row in await connection.raw.fetch(find)]
    which = Parked(OLDEST, NEWEST, None, None)
    if narrowed:
        which = Parked(uuid.UUID(int=ids[0].int - 1), uuid.UUID(int=ids[-1].int + 1), None, ids)
    now = datetime.datetime.now(datetime.UTC)
    values = {"sub_id": 2, "now": now, "requested_by": "operator", "rows": 5, **which._asdict()}
    statement = changes.MAKE_PARKED_DUE
    async with crowd.transaction(BY_INDEX) as connection:
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}"
        (plan,) = json.loads(await connection.raw.fetchval(explain, *statement.arguments(values)))
        raw = "SELECT event_id FROM delivery WHERE subscription_id = 2 AND requested_by = 'operator' ORDER BY 1"
        assert [row[0] for row in await connection.raw.fetch(raw)] == ids
        await connection.raw.execute("UPDATE delivery SET requested_by = NULL WHERE requested_by IS NOT NULL")
        await connection.raw.execute(
            "UPDATE delivery SET state = 'parked', due_at = NULL, settled_at = now() WHERE event_id = ANY($1)"
            " AND subscription_id = 2",
            ids,
        )
    indexes = {node.get("Index Name", "") for node in nodes(plan["Plan"]) if node["Actual Loops"]}
    assert any("delivery" in name for name in indexes)
    assert not [node for node in nodes(plan["Plan"]) if node["Node Type"] == "Seq Scan" and node["Actual Loops"]]


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from nodes(below)
