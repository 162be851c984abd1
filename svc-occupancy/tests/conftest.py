"""A real svc-occupancy for the tests, and a real svc-catalog that feeds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from chassis import migrations
from chassis.database import Database
from makeready_local.running import Keys, RunningService
from makeready_local.testing import PostgresServer, Server
from svc_occupancy import tables


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def catalog(
    postgres_server: PostgresServer, nats_server: Server, keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    url = postgres_server.create_database("catalog_of_occupancy")
    log = tmp_path_factory.mktemp("svc-catalog") / "log"
    running = RunningService("svc-catalog", keys, url, nats_server.url, log)
    running.migrate(first_id=7_000_000_000)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def occupancy(
    catalog: RunningService,
    postgres_server: PostgresServer,
    nats_server: Server,
    keys: Keys,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningService]:
    url = postgres_server.create_database("occupancy_test")
    log = tmp_path_factory.mktemp("svc-occupancy") / "log"
    running = RunningService(
        "svc-occupancy", keys, url, nats_server.url, log, addresses={"svc-catalog": catalog.target}
    )
    running.migrate()
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """A migrated database that no process uses."""
    url = postgres_server.create_database("occupancy_alone")
    await asyncio.to_thread(migrations.migrate, url, "svc_occupancy", tables.metadata)
    database = Database(url, application="tests")
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def served(occupancy: RunningService) -> AsyncIterator[Database]:
    """The database of the running svc-occupancy."""
    database = Database(occupancy.database_url, application="tests")
    await database.open()
    yield database
    await database.close()
