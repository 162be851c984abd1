"""The outbox: what is claimed, published, listed for consumers, and removed."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.database import Database
from chassis.identity import SERVICE, Call, Identity
from chassis.outbox import Outbox, outbox_table
from chassis.relay import Relay
from chassis.statements import Statement
from chassis.transport import Transport
from makeready.events.v1 import events_pb2 as pb
from makeready_local.testing import PostgresServer

metadata = sa.MetaData()
table = outbox_table(metadata)
POSTGRESQL = sa.create_mock_engine("postgresql://", lambda *_: None).dialect
COUNT = Statement(sa.select(sa.func.count()).select_from(table))


@pytest.fixture(scope="module")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    database = Database(postgres_server.create_database("outbox_test"), application="test")
    await database.open()
    async with database.connection() as connection:
        for made in metadata.sorted_tables:
            await connection.raw.execute(str(sa.schema.CreateTable(made).compile(dialect=POSTGRESQL)))
    yield database
    await database.close()


@pytest.fixture
async def outbox(database: Database) -> Outbox:
    """Three events: two public ones and one of references."""
    outbox, now = Outbox("svc-tickets", table), datetime.datetime.now(datetime.UTC)
    async with database.transaction() as connection:
        await connection.raw.execute("TRUNCATE outbox, outbox_confirmation")
        for event in ("ticket.created", "ticket.status_changed"):
            row = outbox.public(event, company_id=7, entity_id=1, occurred_at=now, data=b"{}")
            await outbox.add(connection, row)
        await outbox.add(connection, outbox.references(pb.References(), company_id=7, occurred_at=now))
    return outbox


@pytest.fixture
async def relay(database: Database, outbox: Outbox) -> Relay:
    # Nobody listens there: what these tests ask needs no NATS.
    return Relay(database, outbox, Transport("nats://127.0.0.1:1", "test"), ["svc-webhooks", "svc-occupancy"])


def call(consumer: str) -> Call:
    return Call(Identity(SERVICE, consumer), "")


async def confirm(relay: Relay, consumer: str, moment: datetime.datetime) -> None:
    until = Timestamp()
    until.FromDatetime(moment)
    await relay.ConfirmEvents(pb.ConfirmEventsRequest(recorded_until=until), call(consumer))


async def age(database: Database, days: int, published: bool) -> None:
    async with database.connection() as connection:
        await connection.raw.execute(
            f"UPDATE outbox SET recorded_at = now() - interval '{days} days', "
            f"published_at = {'now()' if published else 'NULL'}"
        )


async def test_a_consumer_lists_what_its_subjects_say_and_fetches_it(relay: Relay) -> None:
    whole = await relay.ListEventIds(pb.ListEventIdsRequest(subjects=["events.svc-tickets"]), call("svc-webhooks"))
    public = pb.ListEventIdsRequest(subjects=["events.svc-tickets.public"], limit=1)
    first = await relay.ListEventIds(public, call("svc-webhooks"))
    public.after_event_id = first.event_ids[0]
    second = await relay.ListEventIds(public, call("svc-webhooks"))
    public.after_event_id = second.event_ids[0]
    assert (await relay.ListEventIds(public, call("svc-webhooks"))).event_ids == []
    assert len(whole.event_ids) == 3
    ids = [*first.event_ids, *second.event_ids]
    events = (await relay.BatchGetEvents(pb.BatchGetEventsRequest(event_ids=ids), call("svc-webhooks"))).events
    assert {event.public.event for event in events} == {"ticket.created", "ticket.status_changed"}
    assert {event.event_id for event in events} == set(ids)


async def test_a_row_goes_when_it_is_old_published_and_confirmed_by_all(database: Database, relay: Relay) -> None:
    now = datetime.datetime.now(datetime.UTC)
    await age(database, 4, published=True)
    assert await relay.purge(now) == 0, "nobody has confirmed"
    await confirm(relay, "svc-webhooks", now)
    assert await relay.purge(now) == 0, "one consumer has not"
    await confirm(relay, "svc-occupancy", now - datetime.timedelta(days=5))
    assert await relay.purge(now) == 0, "one consumer has not come so far"
    await confirm(relay, "svc-occupancy", now)
    await age(database, 2, published=True)
    assert await relay.purge(now) == 0, "younger than three days"
    await age(database, 4, published=False)
    assert await relay.purge(now) == 0, "not published"
    await age(database, 4, published=True)
    assert await relay.purge(now) == 3 and await database.value(COUNT) == 0


async def test_a_confirmation_never_goes_back(database: Database, relay: Relay) -> None:
    now = datetime.datetime.now(datetime.UTC)
    for consumer in ("svc-webhooks", "svc-occupancy"):
        await confirm(relay, consumer, now)
        await confirm(relay, consumer, now - datetime.timedelta(days=30))
    await age(database, 4, published=True)
    assert await relay.purge(now) == 3


async def test_what_waits_is_counted(relay: Relay) -> None:
    assert (await relay.GetOutbox(pb.GetOutboxRequest(), call("svc-webhooks"))).unpublished == 3
