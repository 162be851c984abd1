"""A real svc-tickets for the tests: its own process, database and keys; called over gRPC."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from chassis import identity
from chassis.clients import refusal_of
from chassis.database import Database
from chassis.identity import CALLER, OPERATOR, Identity, Issuer
from makeready.events.v1 import events_pb2
from makeready.tickets.v1.tickets_pb2_grpc import TicketsServiceStub
from makeready_local.testing import PostgresServer, Server
from svc_tickets import consumers

COMPANY, OTHER_COMPANY = 7, 8


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class House:
    """One running svc-tickets and the means to call it."""

    environment: dict[str, str]
    keys: Path
    target: str
    log: Path
    process: subprocess.Popen[bytes] | None = None
    issuers: dict[str, Issuer] = field(default_factory=dict)

    def start(self, **more: str) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "svc_tickets"], env=self.environment | more, stdout=log, stderr=log
            )

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            assert self.process.wait(20) == 0, self.log.read_text()[-2000:]

    def token(self, who: Identity, audience: str = "svc-tickets") -> str:
        issuer = "operator" if who.kind == OPERATOR else "gateway"
        if issuer not in self.issuers:
            self.issuers[issuer] = Issuer(self.keys / f"{issuer}.jwk")
        return self.issuers[issuer].token(audience, who)


class Client:
    """Calls RPCs as somebody; a refusal comes out as Refusal."""

    def __init__(self, house: House, channel: grpc.aio.Channel) -> None:
        self.house = house
        self.stub: Any = TicketsServiceStub(channel)

    async def __call__(self, rpc: str, request: Any, who: Identity | None = None) -> Any:
        metadata = [("authorization", self.house.token(who or caller())), ("x-request-id", "req-test")]
        try:
            return await getattr(self.stub, rpc)(request, metadata=metadata, timeout=15, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            refused = refusal_of(error)
            if refused is None:
                raise
            raise refused from None


def caller(company_id: int = COMPANY, api_key_id: int = 1, administrator_id: int | None = 3) -> Identity:
    return Identity(CALLER, "gateway", company_id, api_key_id, "write", administrator_id)


@pytest.fixture(scope="session")
def house(
    postgres_server: PostgresServer, nats_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("svc-tickets")
    identity.make_keys(folder / "keys", ["gateway", "operator", "svc-tickets", "svc-catalog", "svc-webhooks"])
    target = f"127.0.0.1:{free_port()}"
    environment = os.environ | {
        "MAKEREADY_DATABASE_URL": postgres_server.create_database("tickets_test"),
        "MAKEREADY_NATS_URL": nats_server.url,
        "MAKEREADY_GRPC_LISTEN": target,
        "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
        "MAKEREADY_IDENTITY_KEY_FILE": str(folder / "keys" / "svc-tickets.jwk"),
        "MAKEREADY_IDENTITY_RING_FILE": str(folder / "keys" / "ring.jwks"),
        "MAKEREADY_GATEWAY_ADDRESS": f"127.0.0.1:{free_port()}",
        "MAKEREADY_CATALOG_ADDRESS": f"127.0.0.1:{free_port()}",
        "MAKEREADY_LINKS_URL": "https://app.test",
    }
    started = House(environment, folder / "keys", target, folder / "log")
    subprocess.run([sys.executable, "-m", "svc_tickets", "migrate"], env=environment, check=True, timeout=60)
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="session")
async def client(house: House) -> AsyncIterator[Client]:
    async with grpc.aio.insecure_channel(house.target) as channel:
        yield Client(house, channel)


@pytest.fixture(scope="session")
async def database(house: House) -> AsyncIterator[Database]:
    database = Database(house.environment["MAKEREADY_DATABASE_URL"], application="tests")
    await database.open()
    yield database
    await database.close()


@pytest.fixture(scope="session")
async def places(database: Database) -> None:
    """Two companies: property 10 with units 100 and 101 and asset 500; property 20 with unit 200 and asset 600."""
    references = events_pb2.References(
        properties=[
            events_pb2.PropertyReference(id=10, version=1, company_id=COMPANY, name="Elm Court", external_id="P10"),
            events_pb2.PropertyReference(id=20, version=1, company_id=OTHER_COMPANY, name="Far House"),
        ],
        units=[
            events_pb2.UnitReference(
                id=100,
                version=1,
                company_id=COMPANY,
                property_id=10,
                name="Unit 1A",
                unit_number="1A",
                external_id="U1",
            ),
            events_pb2.UnitReference(id=101, version=1, company_id=COMPANY, property_id=10, name="Unit 1B"),
            events_pb2.UnitReference(id=200, version=1, company_id=OTHER_COMPANY, property_id=20, name="Unit Z"),
        ],
        assets=[
            events_pb2.AssetReference(id=500, version=1, company_id=COMPANY, property_id=10, name="Boiler"),
            events_pb2.AssetReference(id=600, version=1, company_id=OTHER_COMPANY, property_id=20, name="Lift"),
        ],
    )
    async with database.transaction() as connection:
        await consumers.put_references(connection, [references])


@pytest.fixture
def nobody() -> Identity:
    """A key with no minting administrator on record."""
    return caller(administrator_id=None)


@pytest.fixture
def stranger() -> Identity:
    """A key of another company."""
    return caller(OTHER_COMPANY, api_key_id=9)


@pytest.fixture
def operator() -> Identity:
    return Identity(OPERATOR, "operator", COMPANY)
