"""Limits that hold for all gateways together, on a real Valkey: waits, snapshots, a gateway that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from gateway.http import shared_limits
from gateway.http.replies import ApiError
from gateway.http.shared_limits import SharedLimits
from gateway.http.snapshots import Snapshots
from gateway.http.store import RETRY_STORE_SECONDS, Store
from gateway.http.waiting import WAITS_MAX
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.patience import PATIENCE_SECONDS, eventually
from testkit.raw_http import Api
from testkit.stub_contexts import Contexts, hang
from testkit.valkey import ValkeyServer


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer for a round trip than a request waits for the store."""
    monkeypatch.setattr("gateway.http.store.STORE_SECONDS_MAX", PATIENCE_SECONDS)


async def on(store: ValkeyServer) -> SharedLimits:
    """The limits of a gateway that has reached the store."""
    shared = Store(store.url)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await shared.run("return 1", "") != 1:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.1)
    return SharedLimits(shared)


async def test_the_newest_requests_of_all_gateways_may_wait(store: ValkeyServer) -> None:
    first, second = await on(store), await on(store)
    queue = "waits:1:/changes/x"

    async def waiting(tokens: list[str]) -> list[bool]:
        return [await first.is_in(queue, token) for token in tokens]

    of_another_key = await first.join("waits:2:/changes/x", 2)
    tokens = [await first.join(queue, 2), await second.join(queue, 2)]
    assert await waiting(tokens) == [True, True]
    tokens.append(await second.join(queue, 2))
    assert await waiting(tokens) == [False, True, True]
    await second.quit(queue, tokens[2])
    tokens.append(await first.join(queue, 2))  # where another has left
    assert await waiting(tokens) == [False, True, False, True]
    assert await first.is_in("waits:2:/changes/x", of_another_key)
    store.kill()  # whoever waits goes on, by what its process knows
    assert await waiting(tokens) == [True] * 4
    assert await first.is_in(queue, await first.join(queue, 2))


async def test_a_company_has_one_snapshot_of_a_kind_under_way_in_all_gateways(store: ValkeyServer) -> None:
    first, other = Snapshots(await on(store)), Snapshots(await on(store))
    async with first.begin(1, "/snapshots/x"):
        for taken in (first, other):
            with pytest.raises(ApiError) as refused:
                async with taken.begin(1, "/snapshots/x"):
                    pass
            assert (refused.value.status, refused.value.headers) == (429, b"Retry-After: 10\r\n")
        async with other.begin(2, "/snapshots/x"), other.begin(1, "/snapshots/y"):
            pass
    async with other.begin(1, "/snapshots/x"):
        pass


async def test_a_lease_is_renewed_while_its_gateway_lives_and_ends_soon_after_it(
    store: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "HOLD_SECONDS", 2.0)
    first, other = await on(store), await on(store)
    async with AsyncExitStack() as held:
        assert await held.enter_async_context(first.held("snapshot:1:/x"))
        await asyncio.sleep(2.5)
        async with other.held("snapshot:1:/x") as is_free:
            assert not is_free
        # The gateway dies: it neither renews nor ends what it holds.
        monkeypatch.setattr(first, "_store", Store("memory://"))
        first._store.is_shared = True
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                async with other.held("snapshot:1:/x") as is_free:
                    if is_free:
                        break
                await asyncio.sleep(0.05)


async def test_while_the_store_fails_each_gateway_knows_its_own_snapshots(store: ValkeyServer) -> None:
    first, other = Snapshots(await on(store)), Snapshots(await on(store))
    store.kill()
    async with first.begin(1, "/snapshots/x"), other.begin(1, "/snapshots/x"):
        with pytest.raises(ApiError):
            async with first.begin(1, "/snapshots/x"):
                pass
        store.launch()
        await asyncio.sleep(RETRY_STORE_SECONDS + 0.2)
    async with (await on(store)).held("snapshot:1:/snapshots/x") as is_free:
        assert is_free


@pytest.fixture
async def two(harness: GatewayHarness, store: ValkeyServer) -> AsyncIterator[list[Gateway]]:
    gateways = [harness.gateway(MAKEREADY_RATE_LIMIT_URL=store.url) for _ in range(2)]
    for gateway in gateways:
        gateway.start()
    for gateway in gateways:
        await gateway.ready()
    yield gateways
    for gateway in gateways:
        assert await gateway.stop() == 0


async def asked(contexts: Contexts, times: int) -> None:
    """Waits until the gateways have asked services so often."""

    async def seen() -> bool:
        return len(contexts.seen) >= times

    await eventually(seen)


async def test_two_gateways_count_waits_and_snapshots_together(
    two: list[Gateway], operator: Operator, company_id: int, contexts: Contexts
) -> None:
    key = await operator.key(company_id)
    first, second = (Api(gateway.api_port) for gateway in two)
    end = (await first.get("/changes/tickets?limit=200", key)).json["resume_cursor"]
    contexts.seen.clear()
    oldest = asyncio.ensure_future(first.get(f"/changes/tickets?wait=25&cursor={end}", key))
    await asked(contexts, 1)
    newer = [
        asyncio.ensure_future(second.get(f"/changes/tickets?wait=8&cursor={end}&limit={limit}", key))
        for limit in range(1, WAITS_MAX + 1)
    ]
    superseded = await oldest
    assert (superseded.json["data"], superseded.header("Service-Wait")) == ([], "superseded")
    assert not any(response.done() for response in newer), "the oldest one has waited for its own time"
    for response in newer:
        assert ((await response).json["data"], (await response).header("Service-Wait")) == ([], None)

    contexts.behaviours["tickets.TicketsService/ListTickets"] = hang
    contexts.seen.clear()
    under_way = asyncio.ensure_future(first.get("/snapshots/tickets", key))
    await asked(contexts, 2)  # for the position in the order of changes, and for the records
    refused = await second.get("/snapshots/tickets", key)
    assert (refused.status, refused.code, refused.header("Retry-After")) == (429, "rate_limited", "10")
    contexts.behaviours.clear()
    assert (await under_way).status == 500  # the service did not answer in time
    assert (await second.get("/snapshots/tickets", key)).status == 200
