"""The rows that svc-occupancy keeps of others, in a real database."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from chassis import migrations
from chassis.database import Database
from makeready.events.v1 import events_pb2 as pb
from makeready_local.testing import PostgresServer
from svc_occupancy import consumers, tables


@pytest.fixture(scope="module")
def database_url(postgres_server: PostgresServer) -> str:
    return postgres_server.create_database("occupancy_tests")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    await asyncio.to_thread(migrations.migrate, database_url, "svc_occupancy", tables.metadata)
    opened = Database(database_url, application="tests")
    await opened.open()
    yield opened
    await opened.close()


def references(unit_version: int, name: str) -> pb.Event:
    unit = pb.UnitReference(
        id=2, version=unit_version, company_id=7, property_id=1, name=name, unit_number="12", external_id="U-2"
    )
    property_ = pb.PropertyReference(id=1, version=1, company_id=7, name="Alder Court")
    company = pb.CompanyReference(id=7, version=1, name="Alder", active=True, timezone="America/Toronto")
    return pb.Event(references=pb.References(units=[unit], properties=[property_], companies=[company]))


@pytest.mark.usefixtures("database")
async def test_the_migrations_make_the_declared_tables(database_url: str) -> None:
    assert await migrations.differences(database_url, tables.metadata) == []


async def test_the_higher_version_of_a_unit_wins(database: Database, database_url: str) -> None:
    async with database.transaction() as connection:
        await consumers.apply(connection, [references(5, "Unit 12"), references(4, "older")])
        await consumers.apply(connection, [references(3, "oldest")])
    reader = await asyncpg.connect(database_url)
    found = await reader.fetchrow("SELECT name, unit_number, property_id FROM unit WHERE id = 2")
    assert found is not None
    assert tuple(found) == ("Unit 12", "12", 1)
    assert await reader.fetchval("SELECT timezone FROM company WHERE id = 7") == "America/Toronto"
    await reader.close()
