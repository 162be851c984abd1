"""For what keys are used: counted by the hour, stored every half minute, and bounded in memory and in the database."""

from __future__ import annotations

import datetime
import secrets
import time
from collections.abc import Callable
from typing import Any

import pytest

from chassis.auth.identity import INTEGRATION, Identity
from chassis.db.database import Database, DatabaseUnavailable
from chassis.refusals import Refusal
from gateway.http import usage as usage_module
from gateway.http.bearer import Caller
from gateway.http.usage import Usage
from gateway.identity.usage import queries
from gateway.identity.usage.queries import Part
from makeready.identity.v1 import identity_pb2, key_usage_pb2
from testkit.gateways import GatewayHarness, Operator
from testkit.plans import statement_plan
from testkit.plugin import PostgresServer
from testkit.raw_http import Api

HOUR = datetime.timedelta(hours=1)
DAY = datetime.timedelta(days=1)
NOON = datetime.datetime(2031, 5, 6, 12, 0, tzinfo=datetime.UTC)


class Asked:
    """The parts of a request that are counted."""

    def __init__(self, method: str = "GET", address: str = "10.1.2.3") -> None:
        self.method, self.address, self.id = method, address, "0123456789abcdef01234567"


class Clock:
    """A clock that the test sets."""

    def __init__(self, now: datetime.datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now.timestamp()


def caller(company_id: int, key_id: int) -> Caller:
    who = Identity(INTEGRATION, "gateway", company_id=company_id, api_key_id=key_id, scope="read")
    return Caller(key_id, "read", False, float("inf"), True, who, b"")


_ids = iter(range(10**9, 2 * 10**9, 1000))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def usage(database: Database, clock: Clock) -> Usage:
    return Usage(database, clock=clock)


@pytest.fixture
def used_key() -> Caller:
    """A key of a company, both without rows."""
    return caller(next(_ids), next(_ids))


def count(usage: Usage, who: Caller, status: int, times: int = 1, **parts: Any) -> None:
    for _ in range(times):
        usage.count(who, Asked(**parts), "/tickets/{ticket_id}", status)  # type: ignore[arg-type]


async def stored_hours(database: Database, who: Caller) -> list[tuple[Any, ...]]:
    """Hour and counts by outcome."""
    rows = await queries.usage(
        database, who.identity.company_id, [who.api_key_id], NOON - 1000 * DAY, NOON + 1000 * DAY
    )
    return [(row["hour"], row["succeeded"], row["refused"], row["rate_limited"], row["failed"]) for row in rows]


async def stored_key(database: Database) -> Caller:
    async with database.transaction() as connection:
        company_id = await connection.raw.fetchval(
            "INSERT INTO company (name, timezone) VALUES ('A', 'UTC') RETURNING id"
        )
        key_id = await connection.raw.fetchval(
            "INSERT INTO api_key (company_id, name, prefix, digest, scope) VALUES ($1, '', 'mk_a', $2, 'read')"
            " RETURNING id",
            company_id,
            secrets.token_bytes(32),
        )
    return caller(company_id, key_id)


async def last_use(database: Database, who: Caller) -> tuple[Any, ...] | None:
    async with database.connection() as connection:
        row = await connection.raw.fetchrow("SELECT * FROM key_last_use WHERE api_key_id = $1", who.api_key_id)
    return row and tuple(row)[1:]


# Through a gateway


@pytest.fixture
async def ask(operator: Operator, company_id: int) -> Callable[..., Any]:
    async def list_usage(key_ids: list[int]) -> dict[str, int]:
        request = key_usage_pb2.ListKeyUsageRequest(company_id=company_id, key_ids=key_ids)
        answer = await operator("ListKeyUsage", request)
        names = ("succeeded", "refused", "rate_limited", "failed")
        return {name: sum(getattr(hour, name) for hour in answer.hours) for name in names}

    return list_usage


async def test_a_gateway_that_stops_in_order_has_stored_every_request(
    harness: GatewayHarness, operator: Operator, company_id: int, ask: Callable[..., Any]
) -> None:
    gateway = harness.gateway()
    gateway.start()
    await gateway.ready()
    api = Api(gateway.api_port)
    key_id, key = await operator.minted(company_id, "read")
    revoked_id, revoked = await operator.minted(company_id, "read")
    await operator.revoke(revoked_id)
    for _ in range(5):
        assert (await api.get("/whoami", key)).status == 200
    assert (await api.get("/tickets/secret-value", key)).status == 404
    assert (await api.get("/tickets?cursor=secret-value", key)).status == 400
    assert (await api.get("/whoami", revoked)).status == 401
    assert (await api.get("/whoami", "mk_" + "z" * 43)).status == 401
    assert await gateway.stop() == 0

    assert await ask([key_id]) == {"succeeded": 5, "refused": 2, "rate_limited": 0, "failed": 0}
    assert await ask([revoked_id]) == {"succeeded": 0, "refused": 1, "rate_limited": 0, "failed": 0}
    assert await ask([]) == {"succeeded": 5, "refused": 3, "rate_limited": 0, "failed": 0}
    key = (await operator("GetKey", identity_pb2.GetKeyRequest(key_id=key_id))).key
    assert key.last_used_address == "127.0.0.1" and key.last_used_for.startswith("GET /")
    age = datetime.datetime.now(datetime.UTC) - key.last_used_at.ToDatetime(datetime.UTC)
    assert datetime.timedelta(0) < age < datetime.timedelta(minutes=5)
    ended = (await operator("GetKey", identity_pb2.GetKeyRequest(key_id=revoked_id))).key
    assert not ended.HasField("last_used_at")


async def test_usage_of_another_company_is_not_there(operator: Operator, company_id: int) -> None:
    who = await operator.administrators_identity(await operator.company())
    for absent_id in (company_id, 2**62):
        with pytest.raises(Refusal) as refusal:
            await operator("ListKeyUsage", key_usage_pb2.ListKeyUsageRequest(company_id=absent_id), who=who)
        assert (refusal.value.status, refusal.value.code) == (404, "not_found")


# In memory and in the database


async def test_requests_are_counted_by_hour_and_outcome(
    usage: Usage, database: Database, clock: Clock, used_key: Caller
) -> None:
    for hours, statuses in ((0, (200, 201, 304, 404, 429, 429, 500)), (1, (204, 503))):
        clock.now = NOON + hours * HOUR + 59 * HOUR / 60
        for status in statuses:
            count(usage, used_key, status)
    await usage.store()
    assert await stored_hours(database, used_key) == [(NOON, 3, 1, 2, 1), (NOON + HOUR, 1, 0, 0, 1)]
    count(usage, used_key, 200, 10)
    await usage.store()
    assert await stored_hours(database, used_key) == [(NOON, 3, 1, 2, 1), (NOON + HOUR, 11, 0, 0, 1)]
    assert usage.waiting == 0


async def test_the_last_use_is_that_of_an_active_key(usage: Usage, database: Database, clock: Clock) -> None:
    used_key, deleted_key = await stored_key(database), caller(next(_ids), next(_ids))
    count(usage, deleted_key, 200)
    count(usage, used_key, 200, address="10.0.0.1")
    clock.now += datetime.timedelta(seconds=5)
    count(usage, used_key, 403, address="10.0.0.2", method="POST")
    clock.now += datetime.timedelta(seconds=5)
    count(usage, used_key, 401, address="10.0.0.3")
    await usage.store()
    used_at = NOON + datetime.timedelta(seconds=5)
    assert await last_use(database, used_key) == (used_at, "10.0.0.2", "POST /tickets/{ticket_id}")
    # A gateway whose part arrives late changes nothing.
    clock.now = NOON - HOUR
    count(usage, used_key, 200, address="10.0.0.4")
    await usage.store()
    assert (await last_use(database, used_key) or ())[0] == used_at
    # A key whose sandbox is purged leaves nothing.
    assert await last_use(database, deleted_key) is None


async def test_a_part_whose_answer_was_lost_is_stored_once(
    usage: Usage, database: Database, used_key: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = queries.store

    async def store_and_lose_the_answer(on: Database, part: Part) -> None:
        await store(on, part)
        raise DatabaseUnavailable("the connection was lost")

    count(usage, used_key, 200, 7)
    count(usage, used_key, 404, 2)
    monkeypatch.setattr(queries, "store", store_and_lose_the_answer)
    with pytest.raises(DatabaseUnavailable):
        await usage.store()
    monkeypatch.setattr(queries, "store", store)
    count(usage, used_key, 200, 5)
    await usage.store()
    assert await stored_hours(database, used_key) == [(NOON, 12, 2, 0, 0)]


async def test_while_the_database_is_away_counts_wait_within_bounds_and_nothing_waits_for_it(
    postgres_server: PostgresServer, clock: Clock, used_key: Caller, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    away = Database("postgresql://nobody@127.0.0.1:9/none", application="tests")
    usage = Usage(away, clock=clock)
    monkeypatch.setattr(usage_module, "HOURS_WAITING_MAX", 50)
    lost = usage_module.LOST._value.get()
    for number in range(80):
        count(usage, caller(used_key.identity.company_id, used_key.api_key_id + number), 200, 2)
    assert usage.waiting == 50 and usage_module.LOST._value.get() - lost == 60
    # Keys that are counted already are counted on.
    count(usage, used_key, 200)
    away._pool = database._pool
    await usage.store()
    assert await stored_hours(database, used_key) == [(NOON, 3, 0, 0, 0)]


async def test_more_keys_than_a_part_holds_are_stored_in_parts(
    usage: Usage, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_module, "PART_ROWS_MAX", 10)
    callers = [caller(next(_ids), next(_ids)) for _ in range(35)]
    for who in callers:
        count(usage, who, 404)
    await usage.store()
    for who in callers:
        assert await stored_hours(database, who) == [(NOON, 0, 1, 0, 0)]


async def test_what_is_older_is_deleted(usage: Usage, database: Database, clock: Clock, used_key: Caller) -> None:
    for age in (91, 89, 8, 6, 0):
        clock.now = NOON - age * DAY
        count(usage, used_key, 404)
    await usage.store()
    await queries.delete_old(database, NOON + HOUR)
    assert [hour for hour, *_ in await stored_hours(database, used_key)] == [NOON - age * DAY for age in (89, 8, 6, 0)]


# The list


@pytest.mark.parametrize(
    ("hours", "keys", "is_refused"),
    [(24, 200, False), (90 * 24, 9, False), (90 * 24, 10, True), (0, 1, True), (24, 201, True), (20_001, 0, True)],
)
async def test_usage_is_asked_for_within_bounds(
    operator: Operator, company_id: int, hours: int, keys: int, is_refused: bool
) -> None:
    request = key_usage_pb2.ListKeyUsageRequest(company_id=company_id, key_ids=range(1, keys + 1))
    request.counted_from.FromDatetime(NOON - hours * HOUR)
    request.counted_to.FromDatetime(NOON)
    if is_refused:
        with pytest.raises(Refusal) as refusal:
            await operator("ListKeyUsage", request)
        assert refusal.value.status == 400
    else:
        answer = await operator("ListKeyUsage", request)
        assert answer.counted_from == request.counted_from and answer.counted_to == request.counted_to


@pytest.mark.plans
async def test_a_page_costs_itself_however_much_other_keys_are_used(database: Database) -> None:
    company_id, key_id = next(_ids), next(_ids)
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO key_usage (api_key_id, hour, company_id) SELECT $2::bigint + k, $3::timestamptz + h *"
            " interval '1 hour', $1 + k % 2 FROM generate_series(0, 39) k, generate_series(0, 499) h",
            company_id,
            key_id,
            NOON,
        )
    hours = {"company_id": company_id, "first": NOON, "last": NOON + 24 * HOUR}
    for statement, values, rows_max in (
        (queries._USAGE_OF_KEYS, hours | {"key_ids": [key_id, key_id + 2]}, 2 * 24),
        (queries._USAGE_OF_COMPANY, hours, 20 * 24),
    ):
        plan = await statement_plan(database, statement, **values)
        assert plan.returned and plan.rows_met <= rows_max and not plan.whole_tables, plan.indexes


# What it costs


def test_a_request_costs_a_microsecond(usage: Usage, used_key: Caller) -> None:
    """The bound is some ten times what was measured, in CPU time compared with that of a plain loop of this machine;
    docs/decisions/api-keys.md has the figures."""
    request: Any = Asked()
    keys = [caller(1, number) for number in range(100)]
    for who in keys:
        usage.count(who, request, "/tickets", 200)
    least = plain = float("inf")
    for _ in range(5):
        began = time.process_time()
        for number in range(100_000):
            keys[number % 100]
        plain = min(plain, (time.process_time() - began) / 100_000)
        began = time.process_time()
        for _ in range(100):
            for who in keys:
                usage.count(who, request, "/tickets", 200)
        least = min(least, (time.process_time() - began) / 10_000)
    assert least < 100 * plain
