"""The rows that a sweep's statements read are proportional to those that they return, however many deliveries wait."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from chassis.db.database import Database
from svc_webhooks import tables as t
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.queries import recording
from svc_webhooks.dispatch.queries.claims import ClaimedDelivery
from testkit.plans import Plan, explained, statement_plan
from testkit.plugin import PostgresServer
from testkit.schemas import declare
from testkit.skewed_rows import analyze

from ..days_of_events import DAY, TODAY, event_id, partitions_of

pytestmark = pytest.mark.plans

DAYS, EVENTS, SUBSCRIPTIONS, DUE = 8, 2000, 40, 5  # 80,000 deliveries; 5 of each subscription are due
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


async def prepared(postgres_server: PostgresServer, name: str) -> Database:
    """A database with days and subscriptions, but without events."""
    url = postgres_server.create_database(name)
    await declare(url, t.metadata)
    database = Database(url, application="tests", plans="auto")
    await database.open()
    async with database.connection() as connection:
        await connection.raw.execute("CREATE SCHEMA partitions")
        await connection.raw.execute(SUBSCRIBED, SUBSCRIPTIONS)
    maker = partitions_of(database)
    for number in range(DAYS):
        assert await maker.ensure_day(event_id(TODAY - number * DAY))
    return database


async def fill(database: Database, first: int, last: int) -> None:
    ids = [event_id(TODAY - number % DAYS * DAY, number) for number in range(first, last)]
    async with database.connection() as connection:
        await connection.raw.execute(STORED, ids)
        await connection.raw.execute(WAITING, ids, SUBSCRIPTIONS, DUE)


@pytest.fixture(scope="module")
async def waiting(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    database = await prepared(postgres_server, "webhooks_sweep_plans")
    await fill(database, 0, EVENTS)
    await analyze(database)
    yield database
    await database.close()


def now(*, all_due: bool) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) + (2 * DAY if all_due else datetime.timedelta())


def look_for(*, all_due: bool) -> dict[str, Any]:
    return {"now": now(all_due=all_due), "after_id": 0, "rows": 1000}


def claim_of(sub_ids: range, *, all_due: bool) -> dict[str, Any]:
    shares = {"subscription_id": list(sub_ids), "rows": [16] * len(sub_ids)}
    return {**shares, "now": now(all_due=all_due), "claim_seconds": 0}


def record_of(rows: Sequence[ClaimedDelivery]) -> dict[str, Any]:
    """The parameters that record claimed rows as succeeded."""
    same = {"number": 1, "rung": 1, "state": "succeeded", "due_at": None, "cause": "sweep", "status": 200, "error": ""}
    same |= dict.fromkeys(("connect_milliseconds", "tls_milliseconds", "first_byte_milliseconds", "address"))
    same |= {"state_before": "waiting", "actor": ""}
    same |= dict.fromkeys(("replay_id", "replay_after", "resumes_after", "clock_offset"))
    same |= {"duration_milliseconds": 1, "response_excerpt": b"thanks"}
    same |= dict.fromkeys(("started_at", "ended_at"), now(all_due=False))
    columns = {name: [value] * len(rows) for name, value in same.items()}
    return columns | {name: [getattr(row, name) for row in rows] for name in ("event_id", "subscription_id", "fence")}


def check_look(plan: Plan) -> None:
    assert plan.returned == SUBSCRIPTIONS
    assert plan.rows_met <= 3 * SUBSCRIPTIONS + DAYS * SUBSCRIPTIONS and not plan.whole_tables
    assert plan.buffers <= 4 * DAYS * SUBSCRIPTIONS


def check_claim(plan: Plan, subscriptions: int, rows: int) -> None:
    """Reads each row when it finds, changes and joins it with its event and subscription, and one row of each day
    besides."""
    assert plan.returned == rows * subscriptions
    assert plan.rows_met <= (6 * rows + DAYS + 4) * subscriptions and not plan.whole_tables
    assert plan.buffers <= (40 * rows + 4 * DAYS) * subscriptions


def check_record(plan: Plan, rows: int) -> None:
    assert plan.returned == rows
    assert plan.rows_met <= 4 * rows and not plan.whole_tables
    assert plan.buffers <= 60 * rows


async def test_a_sandboxs_next_delivery_and_what_is_left_are_found_by_its_subscriptions(waiting: Database) -> None:
    async with waiting.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO subscription (id, company_id, destination_url, events, secret_prefix, secret_key_id,"
            " secret_sealed, created_at, source) SELECT 1000, 2, destination_url, events, '', '', '', created_at, 'api'"
            " FROM subscription WHERE id = 1"
        )
        await connection.raw.execute(
            "INSERT INTO delivery (event_id, subscription_id, due_at)"
            " SELECT event_id, 1000, due_at FROM delivery WHERE subscription_id = 1 AND due_at < now()"
        )
    plan = await statement_plan(waiting, queries.NEXT_DUE, BY_INDEX, company_id=2)
    # The subscription, and of each day the delivery that is due first.
    assert plan.rows_met <= 2 + DAYS and not plan.whole_tables
    assert plan.buffers <= 8 * DAYS
    plan = await statement_plan(waiting, queries.NEXT_DUE, BY_INDEX, company_id=1)
    assert plan.rows_met <= (2 + DAYS) * SUBSCRIPTIONS and not plan.whole_tables
    at = {"now": now(all_due=False), "due_at": now(all_due=True)}
    plan = await statement_plan(waiting, queries.PUT_OFF, BY_INDEX, company_id=2, **at)
    assert plan.rows_met <= 6 * DUE + 2 * DAYS + 2 and not plan.whole_tables
    async with waiting.connection() as connection:  # the other tests count subscriptions
        await connection.raw.execute("DELETE FROM delivery WHERE subscription_id = 1000")
        await connection.raw.execute("DELETE FROM subscription WHERE id = 1000")


@pytest.mark.parametrize("all_due", [False, True], ids=["few", "all"])
async def test_finding_who_has_something_due_meets_the_oldest_of_each(waiting: Database, all_due: bool) -> None:
    values = look_for(all_due=all_due)
    check_look(await statement_plan(waiting, queries._SUBSCRIPTIONS_DUE.statement, BY_INDEX, **values))


@pytest.mark.parametrize(("all_due", "rows"), [(False, DUE), (True, 16)], ids=["few", "all"])
async def test_a_claim_meets_what_it_claims(waiting: Database, all_due: bool, rows: int) -> None:
    values = claim_of(range(1, SUBSCRIPTIONS + 1), all_due=all_due)
    plan = await statement_plan(waiting, queries._CLAIM_DELIVERIES.statement, BY_INDEX, **values)
    check_claim(plan, SUBSCRIPTIONS, rows)


async def test_a_record_meets_what_it_records(waiting: Database) -> None:
    rows = (await queries.claimed_deliveries(waiting, dict.fromkeys(range(1, 17), 16), now(all_due=True), 60)).rows
    plan = await statement_plan(waiting, recording._RECORD_ATTEMPTS, BY_INDEX, **record_of(rows))
    check_record(plan, 256)


@pytest.mark.parametrize("events_stored", [0, 3, 40])
async def test_plans_that_were_made_when_little_was_stored_serve_as_well(
    postgres_server: PostgresServer, events_stored: int
) -> None:
    """As on every new day: statistics cover none of its partitions, or only its first events."""
    database = await prepared(postgres_server, f"webhooks_sweep_plans_{events_stored}")
    await fill(database, 0, events_stored)
    await analyze(database)
    patient = f"{BY_INDEX}; SET LOCAL idle_in_transaction_session_timeout = 0"
    none = (None,) * 4
    nobody = [ClaimedDelivery(uuid.UUID(int=0), 0, 0, 0, 0, "waiting", *none, 0, "", "", b"", None, "", None, b"")]
    async with (
        explained(database, queries._SUBSCRIPTIONS_DUE.statement, patient) as look,
        explained(database, queries._CLAIM_DELIVERIES.statement, patient) as claim,
        explained(database, recording._RECORD_ATTEMPTS, patient) as record,
    ):
        await look(**look_for(all_due=True))
        await claim(**claim_of(range(17, SUBSCRIPTIONS + 1), all_due=True))
        await record(**record_of(nobody))
        await fill(database, events_stored, EVENTS)
        check_look(await look(**look_for(all_due=True)))
        check_claim(await claim(**claim_of(range(17, SUBSCRIPTIONS + 1), all_due=True)), SUBSCRIPTIONS - 16, 16)
        rows = (await queries.claimed_deliveries(database, dict.fromkeys(range(1, 17), 16), now(all_due=True), 60)).rows
        check_record(await record(**record_of(rows)), 256)
    await database.close()


async def test_the_backlog_is_measured_by_the_oldest_of_each(waiting: Database) -> None:
    plan = await statement_plan(waiting, queries._BACKLOG, BY_INDEX, now=now(all_due=True))
    assert plan.rows_met <= (DAYS + 2) * SUBSCRIPTIONS and plan.whole_tables in ([], ["subscription"])
    many, since = await queries.backlog(waiting, now(all_due=True))
    assert many == SUBSCRIPTIONS
    assert since is not None and since < now(all_due=False)
    assert await queries.backlog(waiting, now(all_due=False) - DAY) == (0, None)


async def test_one_delivery_is_claimed_by_its_key(waiting: Database) -> None:
    async with waiting.connection() as connection:
        chosen: uuid.UUID = await connection.raw.fetchval("SELECT event_id FROM delivery WHERE subscription_id = 40")
    plan = await statement_plan(
        waiting, queries._CLAIM_DELIVERY.statement, BY_INDEX, event_id=chosen, subscription_id=40, claim_seconds=0
    )
    assert plan.returned == 1
    assert plan.rows_met <= 8 and not plan.whole_tables


async def test_a_claim_that_is_given_up_is_found_by_its_key_and_free_at_once(waiting: Database) -> None:
    limits = dict.fromkeys(range(17, 25), 4)
    rows = (await queries.claimed_deliveries(waiting, limits, now(all_due=True), 60)).rows
    values = {name: [getattr(row, name) for row in rows] for name in ("event_id", "subscription_id", "fence", "state")}
    plan = await statement_plan(waiting, queries._GIVE_UP, BY_INDEX, **values)
    assert plan.rows_met <= 4 * len(rows) and not plan.whole_tables
    again = (await queries.claimed_deliveries(waiting, limits, now(all_due=True), 60)).rows
    assert {(row.event_id, row.subscription_id) for row in rows} == {
        (row.event_id, row.subscription_id) for row in again
    }
    assert await claimed(waiting, rows) == len(rows)
    await queries.claims_given_up(waiting, rows)  # of older fences: these claims stay
    assert await claimed(waiting, rows) == len(rows)
    await queries.claims_given_up(waiting, again)
    assert await claimed(waiting, rows) == 0


async def claimed(database: Database, rows: Sequence[ClaimedDelivery]) -> int:
    """How many of these deliveries are claimed."""
    async with database.connection() as connection:
        count: int = await connection.raw.fetchval(
            "SELECT count(*) FROM delivery JOIN unnest($1::uuid[], $2::bigint[]) AS wanted (event_id, subscription_id)"
            " USING (event_id, subscription_id) WHERE leased_until IS NOT NULL",
            [row.event_id for row in rows],
            [row.subscription_id for row in rows],
        )
    return count


async def test_what_waits_is_counted_through_the_index_of_what_is_due(waiting: Database) -> None:
    ids = range(SUBSCRIPTIONS - 7, SUBSCRIPTIONS + 1)  # of which no other test claims anything
    values: dict[str, Any] = {"ids": list(ids), "now": now(all_due=False)}
    plan = await statement_plan(waiting, queries._WAITING, BY_INDEX, **values)
    assert plan.rows_met <= (DUE + DAYS) * 8 and not plan.whole_tables
    assert await queries.waiting(waiting, ids, values["now"]) == DUE * 8


async def test_a_success_of_a_sweep_is_found_among_attempts_of_a_month(waiting: Database) -> None:
    ids = range(17, SUBSCRIPTIONS + 1)
    async with waiting.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO attempt (event_id, subscription_id, number, started_at, duration_milliseconds, status, error,"
            " response_excerpt, state) SELECT event_id, subscription_id, 9, now() - interval '1 hour', 1, 200, '', '',"
            " 'succeeded' FROM delivery WHERE subscription_id = ANY ($1)",
            list(ids),
        )
    since = now(all_due=False)
    values = {"subscription_id": list(ids), "now": [since] * len(ids), "since": [since] * len(ids)}
    plan = await statement_plan(waiting, recording._DELIVERING_SWEEPS, BY_INDEX, **values)
    assert plan.returned == 0 and plan.rows_met <= 3 * len(ids) and not plan.whole_tables
    values["since"] = [since - DAY] * len(ids)
    plan = await statement_plan(waiting, recording._DELIVERING_SWEEPS, BY_INDEX, **values)
    assert plan.returned == len(ids)
    assert plan.rows_met <= (DAYS + 3) * len(ids) and not plan.whole_tables
