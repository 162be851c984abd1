"""The outbox: events are claimed, published, listed for consumers, and deleted."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import time
import uuid
from collections.abc import AsyncIterator
from operator import itemgetter
from typing import Any

import nats
import pytest
import sqlalchemy as sa
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from nats.js.api import ConsumerConfig, DiscardPolicy, StreamConfig
from nats.js.errors import APIError, NotFoundError

from chassis.auth.identity import SERVICE, Call, Identity, IdentityError
from chassis.db.database import Database
from chassis.db.rows import InsertMany
from chassis.db.statements import Statement
from chassis.messaging.consumer import read
from chassis.messaging.outbox import EVENT_KEYS, Outbox, OutboxEvent, outbox_table, uuid7
from chassis.messaging.relay import PACK_BYTES, Relay, packed
from chassis.messaging.transport import STREAM, Transport
from makeready.events.v1 import events_pb2 as pb
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer, Server, embedded_nats

from ..databases import database_with

metadata = sa.MetaData()
table = outbox_table(metadata)
INSERT = InsertMany(table, ("event_id", "subject", "message"))
COUNT = Statement(sa.select(sa.func.count()).select_from(table))


@pytest.fixture(scope="module")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "outbox_test", metadata) as database:
        yield database


@pytest.fixture
async def outbox(database: Database) -> Outbox:
    """Three events: two public ones and one of references."""
    outbox, now = Outbox("svc-tickets", table), datetime.datetime.now(datetime.UTC)
    async with database.transaction() as connection:
        await connection.raw.execute("TRUNCATE outbox, outbox_confirmation")
        for second, event in enumerate(("ticket.created", "ticket.status_changed")):
            at = now + datetime.timedelta(seconds=second)
            row = outbox.public(event, company_id=7, entity_id=1, occurred_at=at, data=b"{}")
            await outbox.add(connection, row)
        await outbox.add(connection, outbox.references(pb.References(), company_id=7, occurred_at=now))
    return outbox


@pytest.fixture
async def relay(database: Database, outbox: Outbox) -> Relay:
    # No server listens there: these tests need no NATS.
    return Relay(database, outbox, Transport("nats://127.0.0.1:1", "test"), CONSUMERS)


CONSUMERS = {"svc-webhooks": ["public", "references"], "svc-occupancy": ["references"]}


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
    both = ["events.svc-tickets.public", "events.svc-tickets.references"]
    whole = await relay.ListEventIds(pb.ListEventIdsRequest(subjects=both), call("svc-webhooks"))
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


async def test_a_producer_tells_a_consumer_only_what_it_consumes(database: Database, relay: Relay) -> None:
    async with database.connection() as connection:
        rows = await connection.raw.fetch("SELECT event_id, subject FROM outbox")
    assert {row["subject"].split(".")[2] for row in rows} == {"public", "references"}
    everything = pb.BatchGetEventsRequest(event_ids=[str(row["event_id"]) for row in rows])
    events = (await relay.BatchGetEvents(everything, call("svc-occupancy"))).events
    assert [event.WhichOneof("content") for event in events] == ["references"]
    mine = pb.ListEventIdsRequest(subjects=["events.svc-tickets.references"])
    assert list((await relay.ListEventIds(mine, call("svc-occupancy"))).event_ids) == [events[0].event_id]
    for subject in ("events.svc-tickets.public", "events.svc-tickets", "events", ""):
        id_request = pb.ListEventIdsRequest(subjects=["events.svc-tickets.references", subject])
        with pytest.raises(IdentityError):
            await relay.ListEventIds(id_request, call("svc-occupancy"))


async def test_a_service_that_consumes_nothing_is_told_nothing_and_confirms_nothing(relay: Relay) -> None:
    stranger = call("svc-catalog")
    with pytest.raises(IdentityError):
        await relay.ListEventIds(pb.ListEventIdsRequest(subjects=["events.svc-tickets.public"]), stranger)
    with pytest.raises(IdentityError):
        await relay.BatchGetEvents(pb.BatchGetEventsRequest(), stranger)
    with pytest.raises(IdentityError):
        await relay.ConfirmEvents(pb.ConfirmEventsRequest(), stranger)


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


async def test_two_events_of_one_object_never_share_an_instant(database: Database, outbox: Outbox) -> None:
    now, tick = datetime.datetime.now(datetime.UTC), datetime.timedelta(microseconds=1)

    def public(key: str, at: datetime.datetime, company_id: int = 7, entity_id: int = 1) -> OutboxEvent:
        return outbox.public(key, company_id=company_id, entity_id=entity_id, occurred_at=at, data=b"{}")

    status, schedule = "turn.status_changed", "turn.schedule_changed"
    for events in ([public(status, now), public(schedule, now)], [public(status, now), public(schedule, now - tick)]):
        before = await database.value(COUNT)
        with pytest.raises(ValueError, match="an earlier event of the same object"):
            async with database.transaction() as connection:
                await outbox.add_many(connection, events)
        with pytest.raises(ValueError, match="an earlier event of the same object"):
            async with database.transaction() as connection:
                for event in events:
                    await outbox.add(connection, event)
        assert await database.value(COUNT) == before
    async with database.transaction() as connection:
        await outbox.add(connection, public(status, now))
        others = [public("turn.task.stale", now), public(status, now, entity_id=2), public(status, now, company_id=8)]
        await outbox.add_many(connection, [*others, public(schedule, now + tick)])
    async with database.transaction() as connection:  # a transaction of its own
        await outbox.add(connection, public(status, now))


async def test_what_waits_is_counted(relay: Relay) -> None:
    assert (await relay.GetOutbox(pb.GetOutboxRequest(), call("svc-webhooks"))).unpublished == 3


def test_event_ids_are_version_7_and_sort_by_time() -> None:
    first = uuid7()
    time.sleep(0.002)
    second = uuid7()
    assert (first.version, first.variant) == (7, uuid.RFC_4122) and first < second
    assert abs((first.int >> 80) / 1000 - time.time()) < 5


# Packs

Row = dict[str, Any]
SUBJECTS = ("events.a.public.one", "events.a.public.two", "events.a.references")


def waiting(subjects: list[str], sizes: list[int]) -> list[Row]:
    rows = []
    for subject, size in zip(subjects, sizes, strict=True):
        event_id = uuid7()
        event = pb.Event(event_id=str(event_id), public=pb.PublicEvent(data=b"x" * size))
        rows.append({"event_id": event_id, "subject": subject, "message": event.SerializeToString()})
    return rows


@given(st.lists(st.tuples(st.sampled_from(SUBJECTS), st.integers(0, 300_000)), max_size=40))
def test_packs_hold_every_event_once_in_order_and_one_subject_each(written: list[tuple[str, int]]) -> None:
    rows = waiting([subject for subject, _ in written], [size for _, size in written])
    packs: list[list[Any]] = packed(rows)  # type: ignore[arg-type]  # rows as asyncpg's are
    for subject in SUBJECTS:
        of_subject = [row for pack in packs for row in pack if row["subject"] == subject]
        assert of_subject == sorted((row for row in rows if row["subject"] == subject), key=itemgetter("event_id"))
    assert sum(map(len, packs)) == len(rows)
    for pack in packs:
        assert len({row["subject"] for row in pack}) == 1
        assert sum(len(row["message"]) for row in pack[:-1]) < PACK_BYTES


async def test_events_that_wait_travel_together(database: Database, outbox: Outbox, nats_server: Server) -> None:
    transport = Transport(nats_server.url, "test")
    connecting = asyncio.create_task(transport.run())
    await asyncio.wait_for(transport.connected(), PATIENCE_SECONDS)
    relay = Relay(database, outbox, transport, {"svc-webhooks": ["public"]})
    subject = "events.packs-of-a-test"
    async with asyncio.timeout(PATIENCE_SECONDS):  # the stream is made beside the tests, and this one may be the first
        while True:
            with contextlib.suppress(NotFoundError):
                kept = ConsumerConfig(inactive_threshold=600)  # seconds; by default 5
                subscription = await transport.jetstream.pull_subscribe(subject, stream=STREAM, config=kept)
                break
            await asyncio.sleep(0.05)
    rows = waiting([subject] * 30, [1000] * 30)
    async with database.transaction() as connection:
        await INSERT.run(connection, rows)
    assert await relay.publish_some() == 33 and await relay.publish_some() == 0
    (message,) = await subscription.fetch(1, timeout=PATIENCE_SECONDS)
    assert (await subscription.consumer_info()).num_pending == 0
    await message.ack()
    assert sorted(event.event_id for event in read(message)) == sorted(str(row["event_id"]) for row in rows)
    connecting.cancel()
    await transport.close()


async def test_a_companys_events_are_published_before_it_counts_as_settled(
    database: Database, outbox: Outbox, relay: Relay, nats_server: Server
) -> None:
    async def record(company_id: int) -> None:
        references = pb.References(companies=[pb.CompanyReference(id=company_id, version=1)])
        event = outbox.references(references, company_id=company_id, occurred_at=datetime.datetime.now(datetime.UTC))
        async with database.transaction() as connection:
            await outbox.add(connection, event)

    transport = Transport(nats_server.url, "test")
    connecting = asyncio.create_task(transport.run())
    await asyncio.wait_for(transport.connected(), PATIENCE_SECONDS)
    connected = Relay(database, outbox, transport, CONSUMERS)
    await record(7)
    assert not await relay.publish_of(7), "NATS is away"
    assert await relay.publish_of(8), "nothing of it waits"
    async with asyncio.timeout(PATIENCE_SECONDS):  # the stream is made beside the tests, and this one may be the first
        while not await connected.publish_of(7):  # noqa: ASYNC110 - a stream that is made sets no event
            await asyncio.sleep(0.05)
    unpublished = Statement(sa.text("SELECT count(*) FROM outbox WHERE published_at IS NULL"))
    assert await database.value(unpublished) == 0
    connecting.cancel()
    await transport.close()


async def test_a_nats_without_space_is_known_as_such_until_it_has_room(database: Database, outbox: Outbox) -> None:
    with embedded_nats(streams=False) as server:
        client = await nats.connect(server.url)
        stream = StreamConfig(name=STREAM, subjects=["events.>"], max_bytes=20_000, discard=DiscardPolicy.NEW)
        await client.jetstream().add_stream(stream)
        transport = Transport(server.url, "test")
        assert (transport.fault, transport.is_full) == ("not connected", False)
        connecting = asyncio.create_task(transport.run())
        await asyncio.wait_for(transport.connected(), PATIENCE_SECONDS)
        assert (transport.fault, transport.is_full) == ("", False)
        relay = Relay(database, outbox, transport, {"svc-webhooks": ["public"]})
        async with database.transaction() as connection:
            await INSERT.run(connection, waiting(["events.space-of-a-test"] * 40, [1000] * 40))
        with pytest.raises(APIError):
            await relay.publish_some()
        assert transport.is_full and "maximum bytes exceeded" in transport.fault
        await client.jetstream().update_stream(name=STREAM, subjects=["events.>"], max_bytes=2_000_000)
        assert await relay.publish_some() == 40, "nothing is lost"
        assert (transport.fault, transport.is_full) == ("", False)
        connecting.cancel()
        await transport.close()
        await client.close()


@pytest.mark.parametrize("event", ["ticket.reopened", "", "TICKET_CREATED", "EVENT_KEY_TICKET_CREATED"])
async def test_an_event_that_the_contract_does_not_name_is_refused_at_once(event: str) -> None:
    outbox = Outbox("svc-tickets", table)
    now = datetime.datetime.now(datetime.UTC)
    with pytest.raises(ValueError, match="EventKey"):
        outbox.public(event, company_id=7, entity_id=1, occurred_at=now, data=b"{}")


def test_every_event_key_has_a_label_of_its_own() -> None:
    assert len(EVENT_KEYS) == len(pb.EventKey.DESCRIPTOR.values) - 1
    assert "" not in EVENT_KEYS
