"""Replicas: the highest version wins, and a row may arrive before its parent."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.replicas.tables import Replica, replica_table
from makeready.events.v1.events_pb2 import PropertyReference, UnitReference
from testkit.plugin import PostgresServer

from ..databases import database_with

metadata = sa.MetaData()
place = replica_table(metadata, "property")
unit = replica_table(
    metadata, "unit", sa.Column("property_id", sa.BigInteger, sa.ForeignKey("property.id"), nullable=False)
)


@pytest.fixture(scope="module")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_replicas", metadata) as database:
        yield database


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrivals=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=5))
async def test_whatever_order_versions_arrive_in_the_highest_stays(
    database: Database, arrivals: list[list[int]]
) -> None:
    replica, entity_id = Replica(place), time.monotonic_ns()
    for batch in arrivals:
        async with database.transaction() as connection:
            await replica.put(
                connection,
                [
                    PropertyReference(id=entity_id, version=v, company_id=7, name=f"v{v}", external_id="x")
                    for v in batch
                ],
            )
    row = await database.row(Statement(sa.select(place.c.version, place.c.name).where(place.c.id == entity_id)))
    highest = max(max(batch) for batch in arrivals)
    assert row is not None and tuple(row) == (highest, f"v{highest}")


async def test_a_unit_may_arrive_before_its_property(database: Database) -> None:
    properties, units = Replica(place), Replica(unit, {"property_id": place})
    async with database.transaction() as connection:
        await units.put(connection, [UnitReference(id=5, version=1, company_id=7, property_id=77, name="1A")])
    stub = Statement(sa.select(place.c.version, place.c.company_id, place.c.name).where(place.c.id == 77))
    assert tuple(await database.row(stub) or ()) == (0, 7, "")
    async with database.transaction() as connection:
        await properties.put(connection, [PropertyReference(id=77, version=1, company_id=7, name="Elm")])
    assert tuple(await database.row(stub) or ()) == (1, 7, "Elm")


async def test_an_absent_field_is_null_and_an_empty_one_is_not(database: Database) -> None:
    replica = Replica(place)
    rows = [
        PropertyReference(id=901, version=1, company_id=7, name="a"),
        PropertyReference(id=902, version=1, company_id=7, name="b", external_id=""),
    ]
    async with database.transaction() as connection:
        await replica.put(connection, rows)
    got = await database.rows(
        Statement(sa.select(place.c.external_id).where(place.c.id > 900, place.c.id < 903).order_by(place.c.id))
    )
    assert [row[0] for row in got] == [None, ""]


async def test_a_row_is_overwritten_whatever_its_version_where_the_caller_says_so(database: Database) -> None:
    replica = Replica(place)
    query = Statement(sa.select(place.c.version, place.c.name).where(place.c.id == 950))
    for version, overwrite, expected in ((5, False, (5, "v5")), (3, False, (5, "v5")), (3, True, (3, "v3"))):
        async with database.transaction() as connection:
            row = PropertyReference(id=950, version=version, company_id=7, name=f"v{version}")
            await replica.put(connection, [row], overwrite)
        assert tuple(await database.row(query) or ()) == expected


async def test_a_parent_that_is_there_stays_as_it_is(database: Database) -> None:
    async with database.transaction() as connection:
        await Replica(place).put(connection, [PropertyReference(id=960, version=4, company_id=7, name="Elm")])
        units = Replica(unit, {"property_id": place})
        await units.put(connection, [UnitReference(id=6, version=1, company_id=7, property_id=960, name="1A")])
    query = Statement(sa.select(place.c.version, place.c.name).where(place.c.id == 960))
    assert tuple(await database.row(query) or ()) == (4, "Elm")


async def test_no_rows_are_no_statement(database: Database) -> None:
    async with database.connection() as connection:
        await Replica(place).put(connection, [])
