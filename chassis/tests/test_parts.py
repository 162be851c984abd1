"""Small parts: instants, event ids, settings, replicas, reserved ids, the errors of the database."""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import AsyncIterator

import asyncpg
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.db.database import Database
from chassis.db.ids import Ids
from chassis.db.statements import Statement
from chassis.messaging.outbox import uuid7
from chassis.replicas.tables import Replica
from chassis.runtime.settings import Environment, SettingsError
from chassis.schedule.instants import printed
from makeready.events.v1.events_pb2 import PropertyReference, UnitReference
from testkit.plugin import PostgresServer

metadata = sa.MetaData()


def _replica(name: str, *columns: sa.Column[object]) -> sa.Table:
    version = sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("0"))
    shown = sa.Column("name", sa.Text, nullable=False, server_default=sa.text("''"))
    company = sa.Column("company_id", sa.BigInteger, nullable=False)
    identity = sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False)
    return sa.Table(name, metadata, identity, version, company, shown, sa.Column("external_id", sa.Text), *columns)


place = _replica("property")
unit = _replica("unit", sa.Column("property_id", sa.BigInteger, sa.ForeignKey("property.id"), nullable=False))


@pytest.fixture(scope="module")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    database = Database(postgres_server.create_database("parts_test"), application="test")
    await database.open()
    async with database.connection() as connection:
        for table in (place, unit):
            await connection.raw.execute(str(sa.schema.CreateTable(table)))
        await connection.raw.execute("CREATE SEQUENCE thing_id")
    yield database
    await database.close()


@given(st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(9999, 1, 1), timezones=st.just(datetime.UTC)))
def test_instants_are_printed_alike_and_sort_as_text(moment: datetime.datetime) -> None:
    text = printed(moment)
    assert len(text) == 27 and text.endswith("Z")
    assert datetime.datetime.fromisoformat(text) == moment
    assert printed(moment + datetime.timedelta(microseconds=1)) > text


def test_an_instant_without_a_fraction_is_printed_with_one() -> None:
    assert printed(datetime.datetime(2026, 1, 31, 5, 6, 7, tzinfo=datetime.UTC)) == "2026-01-31T05:06:07.000000Z"


def test_event_ids_are_version_7_and_sort_by_time() -> None:
    first = uuid7()
    time.sleep(0.002)
    second = uuid7()
    assert (first.version, first.variant) == (7, uuid.RFC_4122) and first < second
    assert abs((first.int >> 80) / 1000 - time.time()) < 5


@pytest.mark.parametrize("port", ["0", "65536", "-1", "x", "٣", "", " 80"])
def test_a_bad_port_is_named(port: str) -> None:
    with pytest.raises(SettingsError, match=r"^LISTEN "):
        Environment({"LISTEN": f"127.0.0.1:{port}"}).listen("LISTEN", "127.0.0.1:1")


@pytest.mark.parametrize("text", ["9" * 5000, "-1", "1e3", " 7", "٣"])
def test_a_number_out_of_place_is_told_with_the_settings_name(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^COUNT must be"):
        Environment({"COUNT": text}).integer("COUNT", 1, 1, 86400)


@pytest.mark.parametrize("text", ["nats://[", "nats://host:x", "nats://host:99999", "http://host", "nats:"])
def test_what_is_no_url_is_told_with_the_settings_name(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^PLACE must be"):
        Environment({"PLACE": text}).url("PLACE", ("nats",))


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


async def test_reserved_ids_are_ascending_and_never_given_twice(database: Database) -> None:
    ids = [Ids(database, sa.Sequence("thing_id"), block=3) for _ in range(2)]
    taken = [await ids[number % 2].take(size) for number, size in enumerate([1, 2, 5, 1, 7, 3])]
    assert all(block == sorted(block) for block in taken)
    flat = [one for block in taken for one in block]
    assert len(flat) == len(set(flat)) == 19


async def test_an_error_of_the_database_does_not_tell_the_values_of_the_row(database: Database) -> None:
    """They may be a resident's, and an error may be logged."""
    with pytest.raises(asyncpg.CheckViolationError) as fault:
        async with database.transaction() as connection:
            await connection.raw.execute(
                "CREATE TEMP TABLE party (phone text CHECK (length(phone) < 5)) ON COMMIT DROP"
            )
            await connection.raw.execute("INSERT INTO party VALUES ($1)", "zq-marker")
    assert "party_phone_check" in str(fault.value) and "zq-marker" not in str(fault.value)
