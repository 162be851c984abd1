"""A gateway whose database fails over to a standby goes on by itself: writes, keys, revocations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import grpc
import pytest

from makeready.identity.v1 import identity_pb2 as pb
from testkit.folders import server_folder
from testkit.gateways import GatewayHarness, Operator
from testkit.patience import eventually, took
from testkit.plugin import Server
from testkit.raw_http import Api
from testkit.standbys import Pair, primary_and_standby
from testkit.stub_contexts import Contexts


async def until(api: Api, key: str, status: int) -> float:
    """Requests until the answer has this status, and returns how many seconds that took."""

    async def answers() -> bool:
        return bool((await api.get("/whoami", key)).status == status)

    return await eventually(answers)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with server_folder() as folder, primary_and_standby(folder) as running:
        yield running


async def test_a_failover_needs_no_restart_and_loses_no_acknowledged_write(
    pair: Pair, identity_keys: Path, nats_server: Server, contexts: Contexts
) -> None:
    url = pair.create_database("gateway_failing_over")
    harness = GatewayHarness(identity_keys.parent, pair.both(url), nats_server.url, contexts)
    gateway = harness.gateway()
    gateway.log = identity_keys.parent / "failing-over.log"
    await asyncio.to_thread(gateway.run_to_end, "migrate")
    await pair.attach()
    gateway.start()
    await gateway.ready()
    operator, api = Operator(gateway.grpc_target, identity_keys), Api(gateway.api_port)
    company_id = await operator.company()
    key_id, key = await operator.minted(company_id)
    acknowledged: set[str] = set()
    failures = 0

    async def write(until: int) -> None:
        nonlocal failures
        async with asyncio.timeout(60):
            while len(acknowledged) < until:
                name = f"Company {len(acknowledged)} {failures}"
                try:
                    await operator("CreateCompany", pb.CreateCompanyRequest(name=name))
                    acknowledged.add(name)
                except grpc.aio.AioRpcError as error:
                    assert error.code() == grpc.StatusCode.UNAVAILABLE, error
                    failures += 1
                    await asyncio.sleep(0.02)

    await write(30)
    writing = asyncio.create_task(write(90))
    await asyncio.sleep(0.05)
    pair.first.kill()
    await pair.promote()
    await writing
    stored = await asyncpg.connect(urlsplit(pair.second.url)._replace(path="/gateway_failing_over").geturl())
    names = {row["name"] for row in await stored.fetch("SELECT name FROM company WHERE name LIKE 'Company %'")}
    assert acknowledged <= names and len(names - acknowledged) <= failures  # a failed one may have been stored
    await stored.close()
    await until(api, key, 200)
    await asyncio.sleep(1)  # for its listener to be back
    await operator.revoke(key_id)
    took("a revoked key is refused after a failover", await until(api, key, 401))
    assert await gateway.stop() == 0
