"""All rows of a company that has ended are deleted, those of others stay, and nothing brings them back."""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import SERVICE, Call, Identity
from chassis.changes.tables import add_change_tables
from chassis.db import belonging
from chassis.db.database import Connection, Database
from chassis.messaging.consumer import Consumer, inbox_table
from chassis.messaging.outbox import Outbox, outbox_table, uuid7
from chassis.messaging.transport import Transport
from chassis.replicas.tables import Replica, company_replica, replica_table
from chassis.writes import purging
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger
from chassis.writes.purging import CompanyPurge, CompanyRows, ended_companies
from makeready.common.v1 import company_purge_pb2 as pb
from makeready.events.v1 import events_pb2
from makeready.events.v1.events_pb2 import CompanyReference, PropertyReference, References, UnitReference
from testkit.plugin import PostgresServer

from ..databases import database_with

SANDBOX, LIVE = 7, 8
NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
GATEWAY = Call(Identity(SERVICE, "gateway"), "")

metadata = sa.MetaData()
claims, audit, outbox, inbox = (make(metadata) for make in (ledger, audit_table, outbox_table, inbox_table))
add_change_tables(metadata)
company = company_replica(metadata)
place = replica_table(metadata, "property")
flat = replica_table(
    metadata, "unit", sa.Column("property_id", sa.BigInteger, sa.ForeignKey("property.id"), nullable=False)
)
# Whose its rows are says the place.
number = sa.Table(
    "number",
    metadata,
    sa.Column("property_id", sa.BigInteger, sa.ForeignKey("property.id"), primary_key=True, autoincrement=False),
)
# A row refers to an older one.
boat = sa.Table(
    "boat",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("previous_id", sa.BigInteger),
    sa.ForeignKeyConstraint(["company_id", "previous_id"], ["boat.company_id", "boat.id"]),
)
# Without a foreign key.
trip = sa.Table(
    "trip",
    metadata,
    sa.Column("boat_id", sa.BigInteger, primary_key=True, autoincrement=False),
    info=belonging.through("boat_id", "boat.id"),
)


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "purging_test", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    """Both companies with the same rows, and neither has ended."""
    tables = ", ".join(metadata.tables.keys() - {"changes_epoch"})
    async with opened.connection() as connection:
        await connection.raw.execute(f"TRUNCATE {tables}")
        for company_id in (SANDBOX, LIVE):
            base = company_id * 1_000_000
            await connection.raw.execute(
                f"""
INSERT INTO company (id, version, is_sandbox) VALUES ({company_id}, 1, {company_id == SANDBOX});
INSERT INTO property (id, version, company_id) SELECT {base} + n, 1, {company_id} FROM generate_series(1, 1100) n;
INSERT INTO unit (id, version, company_id, property_id) SELECT id, 1, company_id, id FROM property
    WHERE company_id = {company_id};
INSERT INTO number SELECT id FROM property WHERE company_id = {company_id};
INSERT INTO boat SELECT {company_id}, {base} + n, CASE WHEN n > 1 THEN {base} + n - 1 END
    FROM generate_series(1, 2500) n;
INSERT INTO trip SELECT id FROM boat WHERE company_id = {company_id};
INSERT INTO audit (company_id, actor, action, subject, subject_id, before, after, request_id)
    SELECT {company_id}, 'staff:1', 'boat.sunk', 'boat', n, '{{}}', '{{}}', '' FROM generate_series(1, 1200) n;
INSERT INTO idempotency VALUES ({company_id}, 1, 'k', '', 201, '', now())
"""
            )
        events = Outbox("svc-boats", outbox)
        for company_id in (SANDBOX, LIVE):
            for references in (
                References(properties=[PropertyReference(id=1, company_id=company_id)]),
                References(companies=[CompanyReference(id=company_id)]),
            ):
                event = events.references(references, company_id=company_id, occurred_at=NOW)
                async with connection.raw.transaction():
                    await events.add(connection, event)
    return opened


async def end(database: Database, company_id: int = SANDBOX) -> None:
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE company SET ended = true WHERE id = $1", company_id)


def purge_of(database: Database) -> CompanyPurge:
    return CompanyPurge(CompanyRows(database, metadata), ended_companies(database, company))


async def rows_in(database: Database) -> dict[str, int]:
    """How many rows each table has, whosever they are."""
    async with database.connection() as connection:
        return {name: await connection.raw.fetchval(f"SELECT count(*) FROM {name}") for name in metadata.tables}


async def test_all_rows_of_an_ended_company_go_and_those_of_others_stay(database: Database) -> None:
    purge, before = purge_of(database), await rows_in(database)
    assert await purge.purge() == 0, "none has ended"
    assert (await purge.CountCompanyRows(pb.CountCompanyRowsRequest(company_id=SANDBOX), GATEWAY)).is_ended is False
    await end(database)
    counted = await purge.CountCompanyRows(pb.CountCompanyRowsRequest(company_id=SANDBOX), GATEWAY)
    assert counted.is_ended
    assert counted.rows == {
        "property": 1100, "unit": 1100, "number": 1100, "boat": 2500, "trip": 2500, "audit": 1200,
        "idempotency": 1, "outbox": 1,
    }  # fmt: skip
    assert await purge.purge() == sum(counted.rows.values())
    after = await rows_in(database)
    kept = ("company", "outbox", "changes_epoch", "changes_to_touch", "inbox", "reconciled", "outbox_confirmation")
    assert {name: rows for name, rows in after.items() if name not in kept} == {
        name: rows // 2 for name, rows in before.items() if name not in kept
    }
    assert (after["company"], after["outbox"]) == (2, 3), "what says that the company has ended stays"
    assert await purge.left(SANDBOX) == {} and len(await purge.left(LIVE)) == 8


async def test_a_live_companys_entries_cannot_be_deleted(database: Database) -> None:
    async with database.connection() as connection:
        delete = "SELECT delete_audit_of_ended_company($1, 1000)"
        assert await connection.raw.fetchval(delete, LIVE) == 0
        assert await connection.raw.fetchval(delete, SANDBOX) == 0, "a sandbox that goes on"
        await end(database, LIVE)
        assert await connection.raw.fetchval(delete, LIVE) == 0, "a row that is none of a sandbox"


async def test_a_purge_that_is_cut_off_anywhere_is_finished_by_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(Exception):
        pass

    batches = 0

    def dies(point: str) -> None:
        nonlocal batches
        assert point == "purge-batch"
        batches += 1
        if batches == killed + 1:
            raise KilledError

    await end(database)
    monkeypatch.setattr(purging, "failpoint", dies)
    for killed in range(12):  # noqa: B007 - dies reads it
        batches = 0
        with pytest.raises(KilledError):
            await purge_of(database).purge()
    monkeypatch.undo()
    await purge_of(database).purge()
    assert await CompanyRows(database, metadata).count(SANDBOX) == {}
    assert (await rows_in(database))["boat"] == 2500


async def test_what_comes_late_is_deleted_by_a_later_round(database: Database) -> None:
    purge = purge_of(database)
    await end(database)
    await purge.purge()
    async with database.connection() as connection:
        await connection.raw.execute(f"INSERT INTO boat VALUES ({SANDBOX}, 1)")  # a request that was under way
    assert await purge.purge() == 0, "it is not looked for all the time"
    assert await purge.left(SANDBOX) == {"boat": 1}
    assert await purge.purge() == 1


async def test_a_company_of_which_nothing_is_left_is_looked_at_ever_more_rarely(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await end(database)
    purge, now = purge_of(database), 0.0
    looks: list[float] = []

    async def look(_company_id: int) -> int:
        looks.append(now / purging.AGAIN_SECONDS)
        return 0

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(purge._rows, "delete", look)
    for _ in range(20):
        await purge.purge()
        now += purging.AGAIN_SECONDS
    assert looks == [0, 1, 3, 7, 15]


async def test_replicas_store_no_row_of_an_ended_company(database: Database) -> None:
    await end(database)
    await purge_of(database).purge()
    places, flats = Replica(place), Replica(flat, {"property_id": place})
    for overwrite in (False, True):
        async with database.transaction() as connection:
            for company_id in (SANDBOX, LIVE):
                base = company_id * 1_000_000
                await flats.put(
                    connection,
                    [UnitReference(id=base + 9000, version=1, company_id=company_id, property_id=base + 9000)],
                    overwrite,
                )
                await places.put(
                    connection, [PropertyReference(id=base + 9001, version=1, company_id=company_id)], overwrite
                )
    assert await CompanyRows(database, metadata).count(SANDBOX) == {}
    assert (await rows_in(database))["property"] == 1102


async def test_a_consumer_applies_no_event_of_an_ended_company(database: Database) -> None:
    applied: list[int] = []

    async def apply(_connection: Connection, events: list[events_pb2.Event]) -> None:
        applied.extend(event.company_id for event in events)

    clients: dict[str, ServiceClient] = {}
    consumer = Consumer("svc-boats", database, inbox, Transport("nats://127.0.0.1:1", "t"), apply, {}, clients)  # type: ignore[arg-type]
    await end(database)
    events = [events_pb2.Event(event_id=str(uuid.uuid4()), company_id=company_id) for company_id in (SANDBOX, LIVE, 9)]
    assert await consumer.store(events, by="nats") == 2
    assert await consumer.store(events, by="outbox") == 0, "all are noted, so none is asked for again"
    assert sorted(applied) == [LIVE, 9]
    assert (await rows_in(database))["inbox"] == 3


async def test_a_consumer_applies_events_in_the_order_of_their_ids(database: Database) -> None:
    applied: list[str] = []

    async def apply(_connection: Connection, events: list[events_pb2.Event]) -> None:
        applied.extend(event.event_id for event in events)

    clients: dict[str, ServiceClient] = {}
    consumer = Consumer("svc-boats", database, inbox, Transport("nats://127.0.0.1:1", "t"), apply, {}, clients)  # type: ignore[arg-type]
    ids = sorted(str(uuid7()) for _ in range(500))
    await consumer.store(
        [events_pb2.Event(event_id=event_id, company_id=LIVE) for event_id in reversed(ids)], by="nats"
    )
    assert applied == ids


def test_a_table_says_whose_its_rows_are() -> None:
    tables = sa.MetaData()
    sa.Table("stray", tables, sa.Column("id", sa.BigInteger, primary_key=True))
    with pytest.raises(TypeError, match="stray: whose its rows are"):
        CompanyRows(Database("postgresql://nobody@127.0.0.1:1/none", application="t"), tables)
    tables.tables["stray"].info.update(belonging.to_no_company("a reason"))
    assert list(CompanyRows(Database("postgresql://nobody@127.0.0.1:1/none", application="t"), tables).tables) == []
