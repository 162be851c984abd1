"""120 requests a minute a key, in this process's memory or in a shared store, and the headers and metrics about it."""

from __future__ import annotations

import asyncio
import time

import pytest
from prometheus_client import REGISTRY
from valkey.asyncio import Valkey

from gateway.http.limits import Limits, ProcessMemory
from gateway.http.store import Store as SharedStore
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.patience import PATIENCE_SECONDS
from testkit.processes import free_port
from testkit.raw_http import Api
from testkit.valkey import ValkeyServer


async def test_the_121st_request_of_a_minute_is_refused_until_the_first_is_a_minute_old(api: Api, key: str) -> None:
    started = time.time()
    for number in range(120):
        response = await api.get("/whoami", key)
        assert response.status == 200
        remaining = (response.header("RateLimit") or "").split(";")[1]
        assert remaining == f"r={119 - number}"
    for _ in range(30):
        response = await api.get("/whoami", key)
        assert (response.status, response.code) == (429, "rate_limited")
        wait = int(response.header("Retry-After") or 0)
        assert 60 - (time.time() - started) <= wait + 1 <= 62
        assert response.header("RateLimit") == f'"key";r=0;t={wait}'
        assert response.header("RateLimit-Policy") == '"key";q=120;w=60'


async def test_a_key_is_limited_by_itself_and_whatever_it_asks_counts(
    api: Api, operator: Operator, company_id: int
) -> None:
    key, other = await operator.key(company_id, "read"), await operator.key(company_id, "read")
    for number in range(120):
        path = ("/whoami", "/tickets?nonsense=1", "/tickets/0", "/webhooks")[number % 4]
        assert (await api.get(path, key)).status != 429
    for method, path in (("GET", "/tickets"), ("POST", "/tickets"), ("DELETE", "/webhooks/1")):
        assert (await api.request(method, path, key)).status == 429  # before scope, query and body
    assert (await api.get("/nothing", key)).status == 404
    assert (await api.request("PUT", "/tickets", key)).status == 405
    assert (await api.get("/whoami", other)).status == 200


def test_a_window_moves_and_refused_requests_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, now = ProcessMemory(), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for _ in range(3):
        assert memory.acquire_entry("k", 3, 60)
        now[0] += 10
    for _ in range(29):
        now[0] += 1
        assert not memory.acquire_entry("k", 3, 60)
    assert memory.get_moving_window("k", 3, 60) == (1000.0, 3)
    now[0] = 1060.5
    assert memory.get_moving_window("k", 3, 60) == (1010.0, 2)
    assert memory.acquire_entry("k", 3, 60)
    assert not memory.acquire_entry("k", 3, 60)
    now[0] = 1200.0
    memory.forget_idle()
    assert memory.get_moving_window("k", 3, 60) == (1200.0, 0)


async def test_a_jump_of_the_machines_time_neither_empties_nor_freezes_a_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = Limits(SharedStore("memory://"))
    wall = time.time()
    for number in range(120):
        monkeypatch.setattr(time, "time", lambda number=number: wall + 90 * number)
        allowance = await counted.take(1)
        assert (allowance.admitted, allowance.remaining) == (True, 119 - number)
    for jump in (86_400, -86_400):
        monkeypatch.setattr(time, "time", lambda jump=jump: wall + jump)
        allowance = await counted.take(1)
        assert not allowance.admitted
        assert 50 <= allowance.reset_seconds <= 60


async def test_counting_costs_little() -> None:
    counted = Limits(SharedStore("memory://"))
    for key in range(300):
        await counted.take(key)
    started = time.process_time()
    for number in range(3000):
        await counted.take(number % 300)
    assert (time.process_time() - started) / 3000 < 100e-6  # about 5 µs; far more if every key were swept


# A shared store.


async def answers(counted: Limits, key: int) -> None:
    """Waits until the shared store counts."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            await counted.take(key)
            if REGISTRY.get_sample_value("makeready_rate_limit_store_connected") == 1:
                return
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("scheme", ["redis", "valkey"])
async def test_gateways_with_a_shared_store_count_together(
    store: ValkeyServer, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    # A busy machine may take longer for a round trip.
    monkeypatch.setattr("gateway.http.store.STORE_SECONDS_MAX", PATIENCE_SECONDS)
    gateways = [Limits(SharedStore(f"{scheme}://127.0.0.1:{store.port}")) for _ in range(3)]
    for counted in gateways:
        await answers(counted, 1)
    taken = [await gateways[number % 3].take(2) for number in range(125)]
    assert [allowance.admitted for allowance in taken] == [True] * 120 + [False] * 5
    assert [allowance.remaining for allowance in taken] == [*range(119, -1, -1)] + [0] * 5
    assert all(55 <= allowance.reset_seconds <= 60 for allowance in taken)


async def test_clocks_that_jump_neither_empty_nor_freeze_a_shared_window(
    store: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.http.store.STORE_SECONDS_MAX", PATIENCE_SECONDS)
    gateways = [Limits(SharedStore(store.url)) for _ in range(2)]
    for counted in gateways:
        await answers(counted, 1)
    wall = time.time()
    for number in range(120):
        ahead = 3600 if number % 2 else -86_400  # of the one gateway, while the other's clock is right
        monkeypatch.setattr(time, "time", lambda ahead=ahead: wall + ahead)
        allowance = await gateways[number % 2].take(2)
        assert (allowance.admitted, allowance.remaining) == (True, 119 - number)
    for jump in (0, 86_400, -86_400):
        monkeypatch.setattr(time, "time", lambda jump=jump: wall + jump)
        allowance = await gateways[0].take(2)
        assert not allowance.admitted and 50 <= allowance.reset_seconds <= 60


async def test_a_store_whose_clock_was_set_back_begins_windows_anew(store: ValkeyServer) -> None:
    counted = Limits(SharedStore(store.url))
    await answers(counted, 1)
    async with Valkey.from_url(store.url) as client:
        await client.lpush("LIMITS:LIMITER/2/120/1/minute", *[time.time() + 3600] * 120)
        allowance = await counted.take(2)
        assert (allowance.admitted, allowance.remaining) == (True, 119)
        # One that is little ahead, as of a gateway of the release before, counts.
        await client.lpush("LIMITS:LIMITER/3/120/1/minute", *[time.time() + 5] * 120)
        allowance = await counted.take(3)
        assert not allowance.admitted and allowance.reset_seconds <= 65


async def test_while_the_store_fails_each_process_counts_alone_and_says_so(store: ValkeyServer) -> None:
    counted = Limits(SharedStore(f"redis://127.0.0.1:{store.port}"))
    await answers(counted, 1)
    store.kill()
    alone = REGISTRY.get_sample_value("makeready_rate_limit_alone_total") or 0
    started = time.monotonic()
    taken = [await counted.take(3) for _ in range(125)]
    assert time.monotonic() - started < 20  # if each of the 125 waited for the store: 31 s
    assert [allowance.admitted for allowance in taken] == [True] * 120 + [False] * 5
    assert REGISTRY.get_sample_value("makeready_rate_limit_store_connected") == 0
    assert (REGISTRY.get_sample_value("makeready_rate_limit_alone_total") or 0) >= alone + 125
    store.launch()
    await asyncio.sleep(1.2)
    await answers(counted, 4)
    assert (await counted.take(3)).admitted


async def test_a_store_that_hangs_delays_no_request_for_long() -> None:
    async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    counted = Limits(SharedStore(f"valkey://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    started = time.monotonic()
    taken = [await counted.take(5) for _ in range(50)]
    assert time.monotonic() - started < 10  # if each of the 50 waited for the store: 12 s
    assert all(allowance.admitted for allowance in taken)
    server.close()


async def test_a_gateway_runs_with_a_store_that_is_down(
    harness: GatewayHarness, operator: Operator, company_id: int
) -> None:
    gateway: Gateway = harness.gateway(MAKEREADY_RATE_LIMIT_URL=f"redis://127.0.0.1:{free_port()}")
    gateway.start()
    await gateway.ready()
    key = await operator.key(company_id)
    statuses = [(await Api(gateway.api_port).get("/whoami", key)).status for _ in range(125)]
    assert statuses == [200] * 120 + [429] * 5
    assert await gateway.stop() == 0
