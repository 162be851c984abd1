"""A real svc-occupancy and a real svc-catalog for the tests; each consumes the other's events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from chassis.db import migrations
from chassis.db.database import Database
from makeready.events.v1.events_pb2 import CompanyReference, Event, References
from makeready_local.nats import Nats
from svc_occupancy import tables
from svc_occupancy.replicas import consumers
from svc_occupancy.turns.queries import TURN_CHANGES
from testkit.event_contract import check_outbox
from testkit.plugin import PostgresServer, embedded_nats
from testkit.services import Keys, RunningService
from testkit.stored_documents import check_documents

from .harness import Company, House, company_ids


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def own_nats() -> Iterator[Nats]:
    """A NATS for these two services only: a durable consumer delivers each event to one service."""
    with embedded_nats() as server:
        yield server


@pytest.fixture
def no_nats(own_nats: Nats) -> Iterator[Nats]:
    """Stops NATS, and starts it again at the end."""
    own_nats.stop()
    yield own_nats
    own_nats.start()


@pytest.fixture(scope="session")
def services(
    postgres_server: PostgresServer, own_nats: Nats, keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, RunningService]]:
    logs = tmp_path_factory.mktemp("logs")
    services = {
        name: RunningService(name, keys, postgres_server.create_database(database), own_nats.url, logs / name)
        for name, database in (("svc-catalog", "catalog_of_occupancy"), ("svc-occupancy", "occupancy_test"))
    }
    addresses = {name: service.target for name, service in services.items()}
    for number, service in enumerate(services.values()):
        service.addresses = addresses
        service.migrate(first_id=7_000_000_000 + number * 500_000_000)
        service.start()
    yield services
    for service in services.values():
        service.stop()


@pytest.fixture(scope="session")
def catalog(services: dict[str, RunningService]) -> RunningService:
    return services["svc-catalog"]


@pytest.fixture(scope="session")
def occupancy(services: dict[str, RunningService]) -> RunningService:
    return services["svc-occupancy"]


@pytest.fixture(scope="session")
async def house(catalog: RunningService, occupancy: RunningService) -> AsyncIterator[House]:
    async with catalog.channel() as in_catalog, occupancy.channel() as in_occupancy:
        yield House(catalog, occupancy, (in_catalog, in_occupancy))
    await check_outbox(occupancy.database_url, Event.FromString)
    await check_documents(occupancy.database_url, TURN_CHANGES)


@pytest.fixture(scope="session")
async def served(occupancy: RunningService) -> AsyncIterator[Database]:
    """The database of the running svc-occupancy."""
    database = Database(occupancy.database_url, application="tests")
    await database.open()
    yield database
    await database.close()


@pytest.fixture(scope="session")
async def new_company(house: House, served: Database) -> Callable[[], Awaitable[Company]]:
    """Creates a company without records: `await new_company()`. No gateway runs here, so the replica gets it directly.

    The company is inactive. svc-occupancy checks that in its sweeps only, so no sweep interferes with a test.
    """

    async def create() -> Company:
        company = Company(house, next(company_ids))
        reference = CompanyReference(id=company.id, version=1, name="C", active=False, timezone="UTC")
        async with served.transaction() as connection:
            await consumers.put_references(connection, [References(companies=[reference])])
        return company

    return create


@pytest.fixture
async def company(new_company: Callable[[], Awaitable[Company]]) -> Company:
    return await new_company()


@pytest.fixture
async def going(company: Company, served: Database) -> Company:
    """An active company: the service's sweeps include it."""
    await company.know(served, timezone="America/Toronto")
    return company


@pytest.fixture(scope="session")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """A migrated database that no process uses."""
    url = postgres_server.create_database("occupancy_alone")
    await asyncio.to_thread(migrations.migrate, url, "svc_occupancy", tables.metadata)
    database = Database(url, application="tests")
    await database.open()
    yield database
    await database.close()
