"""A real svc-tickets for the tests: its own process, database and keys, called over gRPC."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, OPERATOR, STAFF, Identity
from chassis.auth.rpcs import rpc_of
from chassis.db import migrations
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.events.v1 import events_pb2
from makeready.tickets.v1 import ticket_commands_pb2
from svc_tickets import tables
from svc_tickets.replicas.consumer import put_references
from svc_tickets.tickets.queries.read import TICKET_CHANGES
from testkit.event_contract import check_outbox
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer, Server, embedded_nats
from testkit.services import Keys, RunningService, gateway_alone
from testkit.stored_documents import check_documents

COMPANY, OTHER_COMPANY = 7, 8
# The owners have no NATS, so svc-tickets gets their records only by fetching them.
NO_NATS = "nats://127.0.0.1:1"


class Client:
    """Calls RPCs as an identity; a refusal is raised as Refusal."""

    def __init__(self, service: RunningService, channel: grpc.aio.Channel) -> None:
        self.service = service
        self.channel = channel

    async def __call__(self, rpc: str, request: Any, who: Identity | None = None) -> Any:
        assert rpc_of(type(request)).name == rpc
        return await self.service.call(self.channel, request, who or caller())


def caller(company_id: int = COMPANY, api_key_id: int = 1, administrator_id: int | None = 3) -> Identity:
    return Identity(INTEGRATION, "gateway", company_id, api_key_id, "write", administrator_id)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def away_catalog(
    postgres_server: PostgresServer, keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """The svc-catalog that svc-tickets queries; it does not run unless a test uses `catalog`."""
    url = postgres_server.create_database("catalog_of_tickets")
    log = tmp_path_factory.mktemp("svc-catalog") / "log"
    prepared = RunningService("svc-catalog", keys, url, NO_NATS, log)
    prepared.migrate(first_id=6_000_000_000)
    yield prepared
    prepared.stop()


@pytest.fixture
def catalog(away_catalog: RunningService) -> Iterator[RunningService]:
    """The same svc-catalog, running."""
    if away_catalog.process is None or away_catalog.process.poll() is not None:
        away_catalog.start()
    yield away_catalog


@pytest.fixture(scope="session")
def away_gateway(
    postgres_server: PostgresServer, keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """The gateway that svc-tickets queries for staff; it does not run unless a test uses `owners`."""
    url = postgres_server.create_database("gateway_of_tickets")
    log = tmp_path_factory.mktemp("gateway") / "log"
    prepared = RunningService("gateway", keys, url, NO_NATS, log)
    prepared.migrate(first_id=6_000_000_000)
    yield prepared
    prepared.stop()


@pytest.fixture
def owners(catalog: RunningService, away_gateway: RunningService) -> Iterator[dict[str, RunningService]]:
    """svc-catalog and the gateway, running."""
    if away_gateway.process is None or away_gateway.process.poll() is not None:
        away_gateway.start(**gateway_alone())
    yield {"svc-catalog": catalog, "gateway": away_gateway}


@pytest.fixture(scope="session")
def own_nats() -> Iterator[Server]:
    """A NATS that no other suite publishes to: other suites use the same ids of staff and vendors."""
    with embedded_nats() as server:
        yield server


@pytest.fixture(scope="session")
def service(
    away_catalog: RunningService,
    away_gateway: RunningService,
    postgres_server: PostgresServer,
    own_nats: Server,
    keys: Keys,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningService]:
    url = postgres_server.create_database("tickets_test")
    log = tmp_path_factory.mktemp("svc-tickets") / "log"
    addresses = {"svc-catalog": away_catalog.target, "gateway": away_gateway.target}
    started = RunningService("svc-tickets", keys, url, own_nats.url, log, addresses=addresses)
    started.migrate()
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="session")
async def crowded(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """A migrated database for thousands of rows of other companies. In the service's own, the service would render and
    index all of them."""
    url = postgres_server.create_database("tickets_crowded")
    await asyncio.to_thread(migrations.migrate, url, "svc_tickets", tables.metadata)
    database = Database(url, application="tests")
    await database.open()
    yield database
    await database.close()


@pytest.fixture(scope="session")
async def client(service: RunningService) -> AsyncIterator[Client]:
    async with service.channel() as channel:
        yield Client(service, channel)
    await check_outbox(service.database_url, events_pb2.Event.FromString)
    await check_documents(service.database_url, TICKET_CHANGES)


@pytest.fixture
async def reached(owners: dict[str, RunningService], client: Client, operator: Identity) -> dict[str, RunningService]:
    """Both owners, once svc-tickets has connected to them."""
    nobodys = ticket_commands_pb2.AssignTicketRequest(
        idempotency_key="reach", ticket_id=1, assignee_id=10**15, vendor_id=10**15
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await client("AssignTicket", nobodys, operator)
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.1)
            except Refusal:
                return owners


@pytest.fixture(scope="session")
async def database(service: RunningService) -> AsyncIterator[Database]:
    # Two of the role's ten are for the checks at the end.
    database = Database(service.database_url, application="tests", connections=8)
    await database.open()
    yield database
    await database.close()


@pytest.fixture(scope="session")
async def places(database: Database) -> None:
    """Two companies. One has property 10 with units 100 and 101 and asset 500, the other property 20 with unit 200 and
    asset 600. Each has a member of staff (30, 31) and a vendor (40, 41)."""
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
        staff=[
            events_pb2.StaffReference(id=30, version=1, company_id=COMPANY, name="Ada Byrne", external_id="S30"),
            events_pb2.StaffReference(id=31, version=1, company_id=OTHER_COMPANY, name="Bo", external_id="S31"),
        ],
        vendors=[
            events_pb2.VendorReference(id=40, version=1, company_id=COMPANY, name="Otis", external_id="V40"),
            events_pb2.VendorReference(id=41, version=1, company_id=OTHER_COMPANY, name="Kone", external_id="V41"),
        ],
    )
    async with database.transaction() as connection:
        await put_references(connection, [references])


@pytest.fixture
def nobody() -> Identity:
    """An API key with no minting administrator on record."""
    return caller(administrator_id=None)


@pytest.fixture
def stranger() -> Identity:
    """An API key of another company."""
    return caller(OTHER_COMPANY, api_key_id=9)


@pytest.fixture
def operator() -> Identity:
    return Identity(OPERATOR, "operator", COMPANY)


@pytest.fixture
def staff() -> Identity:
    """A member of the company's staff."""
    return Identity(STAFF, "gateway", COMPANY, staff_id=30)


@pytest.fixture
def administrator() -> Identity:
    return Identity(ADMINISTRATOR, "gateway", COMPANY, administrator_id=3, stepped_up_at=int(time.time()))
