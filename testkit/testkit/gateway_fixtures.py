"""Fixtures: a real gateway in its own process, a real database and NATS, and `testkit.stub_contexts` behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from chassis.auth import identity
from chassis.db.database import Database
from gateway.config import CONTEXTS
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.plugin import PostgresServer, Server
from testkit.raw_http import Api
from testkit.stub_contexts import Contexts


@pytest.fixture(scope="session")
def identity_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gateway")
    identity.make_keys(folder / "keys", ["gateway", "operator", "console", *CONTEXTS])
    return folder / "keys"


@pytest.fixture(scope="session")
async def contexts(identity_keys: Path) -> AsyncIterator[Contexts]:
    contexts = Contexts(identity_keys / "ring.jwks")
    await contexts.start_all()
    yield contexts
    await contexts.stop_all()


@pytest.fixture(scope="session")
async def harness(
    identity_keys: Path, postgres_server: PostgresServer, nats_server: Server, contexts: Contexts
) -> AsyncIterator[GatewayHarness]:
    harness = GatewayHarness(
        identity_keys.parent, postgres_server.create_database("gateway_test"), nats_server.url, contexts
    )
    await asyncio.to_thread(harness.gateway().run_to_end, "migrate")
    yield harness
    for gateway in harness.gateways:
        if gateway.process is not None:
            assert await gateway.stop() == 0, gateway.log.read_text()[-3000:]


@pytest.fixture(scope="session")
async def gateway(harness: GatewayHarness) -> Gateway:
    """The gateway that most tests share. It has the memory of a gateway that was started as in production."""
    gateway = harness.gateway(warm=False)
    gateway.start()
    await gateway.ready()
    return gateway


@pytest.fixture(scope="session")
def api(gateway: Gateway) -> Api:
    return Api(gateway.api_port)


@pytest.fixture(scope="session")
async def operator(gateway: Gateway, identity_keys: Path) -> Operator:
    return Operator(gateway.grpc_target, identity_keys)


@pytest.fixture
async def company_id(operator: Operator) -> int:
    return await operator.company()


@pytest.fixture
async def key(operator: Operator, company_id: int) -> str:
    """A fresh write key of a fresh company: its rate limit is untouched."""
    return await operator.key(company_id)


@pytest.fixture
async def database(harness: GatewayHarness) -> AsyncIterator[Database]:
    database = Database(harness.database_url, application="tests")
    await database.open()
    yield database
    await database.close()


@pytest.fixture(autouse=True)
def _nothing_lingers(contexts: Contexts) -> Iterator[None]:
    yield
    contexts.behaviours.clear()
    contexts.seen.clear()
    contexts.looked_up.clear()
