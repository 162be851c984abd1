"""Keys stop within a second, whether NATS is up or down and the listener's connection whole or cut."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from chassis.db.database import Database
from gateway.http.bearer import KEPT_SECONDS
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.patience import PATIENCE_SECONDS, eventually, took
from testkit.plugin import PostgresServer, Server
from testkit.raw_http import Api

from .scans import scans_of_keys

# Of thirty requests, on a machine so busy that a key is not cached for a while.
QUERIES_MAX = 10

AWAY_SECONDS = 6


async def until(api: Api, key: str, code: str | None) -> float:
    """Requests until the answer has this error code (None: no error), and returns how long that took."""

    async def answers() -> bool:
        response = await api.get("/whoami", key)
        return bool((response.code if response.status >= 400 else None) == code)

    return await eventually(answers)


async def stops(api: Api, key: str, how: str) -> None:
    """Waits until the key is refused. A second is promised, and printed."""
    took(f"a revoked key is refused, {how}", await until(api, key, "key_revoked"))


async def cut_the_listener(postgres_server: PostgresServer) -> int:
    connection = await asyncpg.connect(postgres_server.url)
    try:
        ended: int = await connection.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name = 'gateway-listener' AND datname = 'gateway_test'"
        )
        return ended
    finally:
        await connection.close()


async def test_a_revoked_key_stops_soon(api: Api, operator: Operator, company_id: int) -> None:
    """Long before the cache forgets it: the best of a few, for the machine may be busy."""
    seconds = []
    for _ in range(3):
        key_id, key = await operator.minted(company_id)
        await until(api, key, None)
        await operator.revoke(key_id)
        seconds.append(await until(api, key, "key_revoked"))
        took("a revoked key is refused", seconds[-1])
    assert min(seconds) < KEPT_SECONDS / 2


async def test_it_stops_without_nats_too(api: Api, operator: Operator, company_id: int, nats_server: Server) -> None:
    key_id, key = await operator.minted(company_id)
    await until(api, key, None)
    nats_server.stop()
    try:
        await operator.revoke(key_id)
        await stops(api, key, "without NATS")
        await operator.set_active(company_id, False)
    finally:
        nats_server.start()


async def test_it_stops_while_the_listener_is_cut_again_and_again(
    api: Api, operator: Operator, company_id: int, postgres_server: PostgresServer
) -> None:
    for wait in (0.0, 0.05, 0.2, 0.5):
        key_id, key = await operator.minted(company_id)
        await until(api, key, None)
        await eventually(lambda: cut_the_listener(postgres_server))  # the one before may still be ending
        await asyncio.sleep(wait)
        await operator.revoke(key_id)
        await stops(api, key, "the listener cut")
        await asyncio.sleep(1)


async def test_it_stops_where_no_notice_was_heard_of_it(
    api: Api, operator: Operator, company_id: int, postgres_server: PostgresServer, database: Database
) -> None:
    """Revoked while no gateway listened: the row is changed without a notice right after the listener is cut."""
    key_id, key = await operator.minted(company_id)
    await until(api, key, None)
    await cut_the_listener(postgres_server)
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE api_key SET revoked_at = now() WHERE id = $1", key_id)
    await stops(api, key, "without a notice")


@pytest.mark.parametrize("active", [False, True])
async def test_a_companys_state_is_seen_soon(api: Api, operator: Operator, company_id: int, active: bool) -> None:
    keys = [await operator.key(company_id, scope) for scope in ("read", "write", "webhook_only")]
    await operator.set_active(company_id, not active)
    for key in keys:
        await until(api, key, "company_inactive" if active else None)
    await operator.set_active(company_id, active)
    seconds = [await until(api, key, None if active else "company_inactive") for key in keys]
    took(f"a company is {'active' if active else 'inactive'}", max(seconds))


async def test_a_revocation_reaches_every_gateway(
    harness: GatewayHarness, api: Api, operator: Operator, company_id: int
) -> None:
    second = harness.gateway()
    second.start()
    await second.ready()
    key_id, key = await operator.minted(company_id)
    other = Api(second.api_port)
    await until(other, key, None)
    await operator.revoke(key_id)
    await stops(other, key, "by another gateway")
    assert await second.stop() == 0


async def queries_a_kept_key_costs(gateway: Gateway, database: Database, ask: Callable[[], Awaitable[None]]) -> float:
    """How many scans of the table of keys there were for each five seconds that thirty requests took.

    Returns the least of a few rounds: on a machine so busy that the listener's probe is late, no key is cached for a
    while.
    """
    return min([await queries_of_a_round(gateway, database, ask) for _ in range(3)])


async def queries_of_a_round(gateway: Gateway, database: Database, ask: Callable[[], Awaitable[None]]) -> float:
    before, started = await scans_of_keys(database), time.monotonic()
    metrics = int(gateway.environment["MAKEREADY_METRICS_LISTEN"].rpartition(":")[2])
    await eventually(lambda: hears_revocations(metrics))
    for _ in range(30):
        await ask()
    elapsed = time.monotonic() - started
    return (await scans_of_keys(database) - before) / (1 + elapsed / KEPT_SECONDS)


async def test_a_request_with_a_known_key_asks_no_database(
    gateway: Gateway, api: Api, key: str, database: Database
) -> None:
    async def ask() -> None:
        assert (await api.get("/whoami", key)).status == 200

    assert await queries_a_kept_key_costs(gateway, database, ask) <= QUERIES_MAX


async def test_an_unknown_key_is_looked_up_once_in_a_while(gateway: Gateway, api: Api, database: Database) -> None:
    async def ask() -> None:
        assert (await api.get("/whoami", "mk_" + "z" * 43)).status == 401

    assert await queries_a_kept_key_costs(gateway, database, ask) <= QUERIES_MAX


async def test_floods_of_random_keys_leave_known_keys_alone(api: Api, key: str) -> None:
    await until(api, key, None)

    async def flood(number: int) -> None:
        connection = await api.connect()
        for attempt in range(50):
            random = f"mk_{number:021}{attempt:022}"
            await connection.send(api.bytes("GET", "/whoami", random))
            assert (await connection.receive()).status == 401

    flooding = asyncio.gather(*(flood(number) for number in range(10)))
    slowest = 0.0
    while not flooding.done():
        started = time.monotonic()
        assert (await api.get("/whoami", key)).status in (200, 429)
        slowest = max(slowest, time.monotonic() - started)
        await asyncio.sleep(0.05)
    await flooding
    took("the slowest answer to a known key in a flood of random ones", slowest)


async def hears_revocations(metrics: int) -> bool:
    """Whether the gateway caches keys, as its connection for revocations is there."""
    return "makeready_key_listener_connected 1.0" in await asyncio.to_thread(metrics_of, metrics)


async def hears_no_revocations(metrics: int) -> bool:
    """Whether the gateway has noticed that its connection to the database is lost."""
    return "makeready_key_listener_connected 0.0" in await asyncio.to_thread(metrics_of, metrics)


async def test_without_its_database_every_answer_is_an_envelope_and_the_gateway_stays_ready(
    gateway: Gateway, api: Api, operator: Operator, company_id: int, postgres_server: PostgresServer
) -> None:
    """All gateways share the database: if each were unready without it, callers would be refused connections.

    It is away for longer than a look-up of a key, the listener and its probe wait. Nothing waits longer for it.
    """
    _, key = await operator.minted(company_id)
    await until(api, key, None)
    metrics = int(gateway.environment["MAKEREADY_METRICS_LISTEN"].rpartition(":")[2])
    kept = await api.connect()
    expected = ("/whoami", key, 500), ("/tickets", key, 500), ("/whoami", None, 401), ("/openapi.json", None, 200)
    answers: Counter[tuple[str, int]] = Counter()
    postgres_server.stop()
    try:
        await eventually(lambda: hears_no_revocations(metrics))
        stopped = time.monotonic()
        while time.monotonic() - stopped < AWAY_SECONDS:
            for path, bearer, status in expected:
                await kept.send(api.bytes("GET", path, bearer))
                for response in (await kept.receive(), await api.get(path, bearer)):  # an old and a new connection
                    assert response.status == status, (path, response.status)
                    assert status == 200 or set(response.json["error"]) == {"code", "message"}
                    answers[path, response.status] += 1
            for probe in ("//readyz", "//healthz"):
                assert (await api.get(probe)).status == 200
            await asyncio.sleep(0.5)
        assert "makeready_key_listener_connected 0.0" in await asyncio.to_thread(metrics_of, metrics)
    finally:
        postgres_server.start()
    kept.close()
    assert min(answers.values()) >= 2, answers
    await until(api, key, None)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "makeready_key_listener_connected 1.0" not in await asyncio.to_thread(metrics_of, metrics):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def metrics_of(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text: bytes = answer.read()
    return text.decode()


async def test_a_database_that_hangs_gives_500_in_time(
    gateway: Gateway, api: Api, operator: Operator, company_id: int, database: Database
) -> None:
    _, key = await operator.minted(company_id)
    async with database.connection() as connection:
        await connection.raw.execute("BEGIN; LOCK TABLE api_key IN ACCESS EXCLUSIVE MODE")
        try:
            response = await api.get("/whoami", key)  # the lock is held for as long as it takes
            assert (response.status, response.code) == (500, "internal_error")
        finally:
            await connection.raw.execute("ROLLBACK")
    await until(api, key, None)
