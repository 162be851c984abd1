"""Floods of random keys make no query; keys without a check, and keys whose ring was lost, go on working."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chassis.db.database import Database, DatabaseUnavailable
from gateway.http import bearer
from gateway.http.bearer import Caller, Keys
from gateway.identity.keys import queries
from gateway.identity.keys.rules import KeyChecks
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.patience import PATIENCE_SECONDS, eventually
from testkit.plugin import PostgresServer, Server
from testkit.raw_http import Api
from testkit.stub_contexts import Contexts

from .scans import scans_of_keys

CONNECTIONS, REQUESTS = 100, 10
FEW_REQUESTS = 2  # of an unknown ring: each waits for the load that it causes
RING = {"1": b"k" * 32}  # that of the tests' gateways
OTHER_RING = {"2": b"o" * 32}


@pytest.fixture(scope="module")
async def harness(
    identity_keys: Path,
    postgres_server: PostgresServer,
    nats_server: Server,
    contexts: Contexts,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[GatewayHarness]:
    """A separate database: here queries are counted."""
    folder = tmp_path_factory.mktemp("random-keys")
    (folder / "keys").symlink_to(identity_keys)
    url = postgres_server.create_database("gateway_random_keys")
    prepared = GatewayHarness(folder, url, nats_server.url, contexts)
    program = [sys.executable, "-P", "-m", "gateway", "migrate"]
    await asyncio.to_thread(subprocess.run, program, env=prepared.gateway().environment, check=True, timeout=60)
    yield prepared
    for gateway in prepared.gateways:
        if gateway.process is not None:
            assert await gateway.stop() == 0, gateway.log_tail()


@pytest.fixture(scope="module")
async def gateway(harness: GatewayHarness) -> Gateway:
    started = harness.gateway()
    started.start()
    await started.ready()
    return started


@pytest.fixture(scope="module")
def api(gateway: Gateway) -> Api:
    return Api(gateway.api_port)


@pytest.fixture(scope="module")
async def operator(gateway: Gateway, identity_keys: Path) -> Operator:
    return Operator(gateway.grpc_target, identity_keys)


def new_key(checks: KeyChecks) -> str:
    key = checks.key_of(checks.new_recipe())
    assert key is not None
    return key


async def key_of_release_0_2(database: Database, company_id: int) -> str:
    """A key as release 0.2.0 minted them."""
    key = "mk_" + secrets.token_urlsafe(32)
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO api_key (company_id, name, prefix, digest, scope) VALUES ($1, 'old', $2, $3, 'write')",
            company_id,
            key[:11],
            hashlib.sha256(key.encode()).digest(),
        )
    return key


def old_form() -> str:
    return "mk_" + secrets.token_urlsafe(32)


def new_form(key: str) -> Callable[[], str]:
    """Random keys with the mark of a real one."""
    mark = key[: -43 - 16]
    return lambda: f"{mark}{secrets.token_urlsafe(32)}{secrets.token_urlsafe(12)}"


async def flood(
    api: Api, random_key: Callable[[], str], requests: int = REQUESTS, until: asyncio.Event | None = None
) -> Counter[int]:
    """Random keys from many connections at once; the statuses of their answers. until: ends it early."""

    async def stranger() -> Counter[int]:
        connection = await api.connect()
        statuses: Counter[int] = Counter()
        for _ in range(requests):
            if until is not None and until.is_set():
                break
            await connection.send(api.bytes("GET", "/whoami", random_key()))
            statuses[(await connection.receive()).status] += 1
        return statuses

    return sum(await asyncio.gather(*(stranger() for _ in range(CONNECTIONS))), Counter())


async def test_random_keys_of_both_forms_make_no_query(api: Api, key: str, company_id: int, database: Database) -> None:
    await key_of_release_0_2(database, company_id)
    await api.get("/whoami", key)
    before, started = await scans_of_keys(database), time.monotonic()
    for random_key in (old_form, new_form(key)):
        assert await flood(api, random_key) == {401: CONNECTIONS * REQUESTS}
    read = await scans_of_keys(database) - before
    # The reload of the old digests may fall into this time, once in each of its periods.
    assert read <= 1 + (time.monotonic() - started) / bearer.RELOAD_SECONDS


async def test_keys_that_are_not_cached_are_answered_during_a_flood(
    api: Api, operator: Operator, company_id: int, key: str
) -> None:
    fresh = [await operator.key(company_id) for _ in range(20)]
    answered = asyncio.Event()
    forms = (old_form, new_form(key), partial(new_key, KeyChecks(OTHER_RING)))
    floods = [asyncio.create_task(flood(api, form, 1000, until=answered)) for form in forms]
    try:
        for fresh_key in fresh:

            async def is_answered(key: str = fresh_key) -> bool:
                answer = await api.get("/whoami", key)
                assert answer.status in (200, 500)  # 500: the machine was too busy to read the key in time
                return answer.status == 200

            await eventually(is_answered)
    finally:
        answered.set()
    for statuses in await asyncio.gather(*floods):
        # Strangers with a ring that is not known here wait for a load, and get 500 where that comes too late.
        assert set(statuses) <= {401, 500} and statuses.total() >= CONNECTIONS


async def test_random_keys_of_an_unknown_ring_cost_a_query_a_second(api: Api, key: str, database: Database) -> None:
    await api.get("/whoami", key)
    before, started = await scans_of_keys(database), time.monotonic()
    statuses = await flood(api, partial(new_key, KeyChecks(OTHER_RING)), FEW_REQUESTS)
    assert set(statuses) <= {401, 500} and statuses.total() == CONNECTIONS * FEW_REQUESTS
    read = await scans_of_keys(database) - before
    assert read <= 1 + (time.monotonic() - started) / bearer.RELOAD_SECONDS


async def test_keys_of_release_0_2_and_of_a_lost_ring_go_on_working(
    harness: GatewayHarness, operator: Operator, company_id: int, database: Database
) -> None:
    old, lost = await key_of_release_0_2(database, company_id), await operator.key(company_id)
    another = "1:" + base64.b64encode(b"n" * 32).decode()  # a new secret, under the old one's id
    second = harness.gateway(MAKEREADY_KEY_CHECK_SECRETS=another)
    second.start()
    await second.ready()
    api = Api(second.api_port)
    for key in (old, lost, await operator.key(company_id)):  # the last one was minted after the second's start
        assert (await api.get("/whoami", key)).status == 200
    key_id, lost = await operator.minted(company_id)
    await operator.revoke(key_id)
    assert (await api.get("/whoami", lost)).code == "key_revoked"


# The cache itself, without a gateway around it


@pytest.fixture
async def keys(database: Database) -> Keys:
    return Keys(database, KeyChecks(RING))


async def name_of(keys: Keys, key: str) -> str | None:
    caller: Caller | None = await keys.find(key)
    return None if caller is None else caller.scope


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(bearer, "UNCHECKED_SECONDS", 0.05)
    monkeypatch.setattr(bearer, "RELOAD_SECONDS", 0.05)
    yield


@pytest.mark.usefixtures("short_waits")
async def test_a_key_that_release_0_2_mints_during_an_upgrade_is_found(
    keys: Keys, company_id: int, database: Database
) -> None:
    await key_of_release_0_2(database, company_id)
    loading = asyncio.create_task(keys.load_unchecked())
    try:
        minted = await key_of_release_0_2(database, company_id)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await name_of(keys, minted) != "write":  # noqa: ASYNC110 - the cache is polled
                await asyncio.sleep(0.02)
    finally:
        loading.cancel()


async def test_a_key_whose_check_is_bad_is_refused_without_the_database(keys: Keys, database: Database) -> None:
    good = new_key(KeyChecks(RING))
    await database.close()
    assert await keys.find(good[:-1] + ("A" if good[-1] != "A" else "B")) is None
    with pytest.raises(DatabaseUnavailable):
        await keys.find(good)
    with pytest.raises(DatabaseUnavailable):
        await keys.find(new_key(KeyChecks(OTHER_RING)))


async def test_requests_share_a_load_and_a_failed_one_is_tried_again(
    keys: Keys, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, load = 0, queries.unchecked_digests

    async def counted(loaded_from: Database, *arguments: Any) -> bytes:
        nonlocal loads
        loads += loaded_from is database  # a load of the test before may still begin
        return await load(loaded_from, *arguments)

    monkeypatch.setattr(queries, "unchecked_digests", counted)
    monkeypatch.setattr(bearer, "RELOAD_SECONDS", 0.2)
    unknown = partial(new_key, KeyChecks(OTHER_RING))
    for expected in (1, 2):
        assert await asyncio.gather(*(keys.find(unknown()) for _ in range(50))) == [None] * 50
        assert loads == expected


async def test_a_key_that_arrived_while_the_process_stood_still_is_found(
    keys: Keys, database: Database, operator: Operator, company_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine gives the process no processor for seconds: that is no fault of the database's."""
    key = await operator.key(company_id)
    assert await keys.find(new_key(KeyChecks(RING))) is None  # so that the pool has a connection
    monkeypatch.setattr(bearer, "READ_SECONDS_MAX", 0.3)
    finding = asyncio.ensure_future(keys.find(key))
    await in_flight()
    time.sleep(0.5)  # noqa: ASYNC251 - it stands still
    assert await finding is not None

    monkeypatch.setattr(bearer, "PROBE_SECONDS_MAX", 0.3)
    async with database.session("gateway-listener", connect_seconds=2) as connection:
        await connection.execute("SELECT 1")
        probing = asyncio.ensure_future(bearer._probe(connection))
        await in_flight()
        time.sleep(0.5)  # noqa: ASYNC251 - it stands still
        await probing
        connection.terminate()


async def in_flight() -> None:
    """Lets what was begun send its statement."""
    for _ in range(5):
        await asyncio.sleep(0)
