"""A consumer applies each event once, whether it arrives from NATS, from the producer's outbox, or from both."""

from __future__ import annotations

import asyncio
import datetime
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa
import structlog
from nats.aio.msg import Msg

from chassis.auth.clients import ServiceClient, ServiceUnavailable
from chassis.auth.identity import TokenSigner, make_keys
from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from chassis.messaging.consumer import Consumer, inbox_table, read
from chassis.messaging.outbox import Outbox, outbox_table, uuid7
from chassis.messaging.relay import Relay
from chassis.messaging.streams import make
from chassis.messaging.transport import Transport
from makeready.events.v1 import events_pb2 as pb
from testkit.grpc_servers import serve
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer, Server
from testkit.processes import free_port

from ..databases import database_with
from ..parcels import service

produced, consumed = sa.MetaData(), sa.MetaData()
outbox_rows, inbox = outbox_table(produced), inbox_table(consumed)
applied = sa.Table("applied", consumed, sa.Column("event_id", sa.Text, nullable=False))


class Producer:
    """A context with an outbox, a relay and a real gRPC server for its consumers."""

    def __init__(self, database: Database, transport: Transport) -> None:
        self.name = f"svc-parcels-{secrets.token_hex(4)}"  # all tests share one NATS
        self.database = database
        self.outbox = Outbox(self.name, outbox_rows)
        self.relay = Relay(database, self.outbox, transport, {"svc-orders": ["public"]})
        self.server = grpc.aio.server()
        serve(self.server, pb.DESCRIPTOR.services_by_name["OutboxService"], self)
        self.target = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"

    def __getattr__(self, rpc: str) -> Any:
        async def answer(request: Any, _context: Any) -> Any:
            return await getattr(self.relay, rpc)(request, service("svc-orders"))

        return answer

    async def records(self, *events: str) -> list[str]:
        """Records public events; returns their ids."""
        now = datetime.datetime.now(datetime.UTC)
        recorded = [
            self.outbox.public(event, company_id=7, entity_id=number, occurred_at=now, data=b"{}")
            for number, event in enumerate(events, start=1)
        ]
        async with self.database.transaction() as connection:
            await self.outbox.add_many(connection, recorded)
        return [str(event.event_id) for event in recorded]


class Applied:
    """Applies events by storing their ids; those in `bad` fail."""

    def __init__(self) -> None:
        self.bad: set[str] = set()
        self.batches: list[int] = []

    async def __call__(self, connection: Connection, events: Sequence[pb.Event]) -> None:
        self.batches.append(len(events))
        for event in events:
            await connection.raw.execute("INSERT INTO applied VALUES ($1)", event.event_id)
        if any(event.public.event in self.bad for event in events):
            raise ValueError("a bad event")


@pytest.fixture(scope="module")
async def transport(nats_server: Server) -> AsyncIterator[Transport]:
    transport = Transport(nats_server.url, "tests")
    running = asyncio.create_task(transport.run())
    await asyncio.wait_for(transport.connected(), PATIENCE_SECONDS)
    yield transport
    running.cancel()
    await transport.close()


@pytest.fixture(scope="module")
async def databases(postgres_server: PostgresServer) -> AsyncIterator[tuple[Database, Database]]:
    async with (
        database_with(postgres_server, "chassis_producer", produced) as producing,
        database_with(postgres_server, "chassis_consumer", consumed) as consuming,
    ):
        yield producing, consuming


@pytest.fixture
async def producer(databases: tuple[Database, Database], transport: Transport) -> AsyncIterator[Producer]:
    for database in databases:
        async with database.connection() as connection:
            tables = produced.tables if database is databases[0] else consumed.tables
            await connection.raw.execute(f"TRUNCATE {', '.join(tables)}")
    producer = Producer(databases[0], transport)
    await producer.server.start()
    yield producer
    await producer.server.stop(None)


@pytest.fixture
def applying() -> Applied:
    return Applied()


@pytest.fixture
async def consumer(
    producer: Producer, databases: tuple[Database, Database], transport: Transport, applying: Applied, tmp_path: Path
) -> AsyncIterator[Consumer]:
    make_keys(tmp_path, ["svc-orders"])
    client = ServiceClient(producer.name, producer.target, TokenSigner(tmp_path / "svc-orders.jwk"))
    name = f"svc-orders-{secrets.token_hex(4)}"
    subjects = {producer.name: ["public"]}
    await make(transport.jetstream, {name: subjects})
    yield Consumer(name, databases[1], inbox, transport, applying, subjects, {producer.name: client})
    await client.close()


async def ids(databases: tuple[Database, Database]) -> list[str]:
    """The ids of the events that were applied and committed, ascending."""
    rows = await databases[1].rows(Statement(sa.select(applied.c.event_id).order_by(applied.c.event_id)))
    return [row[0] for row in rows]


async def arrive(databases: tuple[Database, Database], expected: list[str]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await ids(databases) != sorted(expected):  # noqa: ASYNC110 - a table sets no event
            await asyncio.sleep(0.02)


async def test_what_nats_brings_is_applied_once_and_the_outbox_brings_none_of_it_again(
    producer: Producer, consumer: Consumer, databases: tuple[Database, Database]
) -> None:
    running = asyncio.create_task(consumer.run())
    event_ids = await producer.records("ticket.created", "ticket.status_changed")
    assert await producer.relay.publish_some() == 2
    await arrive(databases, event_ids)
    assert await consumer.catch_up() == 0 and await ids(databases) == sorted(event_ids)
    running.cancel()


async def test_what_nats_lost_comes_from_the_outbox_and_is_not_applied_again_when_it_comes_late(
    producer: Producer, consumer: Consumer, databases: tuple[Database, Database], applying: Applied
) -> None:
    event_ids = await producer.records("ticket.created", "ticket.created")
    assert await consumer.catch_up() == 2
    assert await ids(databases) == sorted(event_ids)
    await producer.relay.publish_some()
    running = asyncio.create_task(consumer.run())
    late = await producer.records("ticket.status_changed")
    await producer.relay.publish_some()
    await arrive(databases, event_ids + late)
    assert sum(applying.batches) == 3
    running.cancel()


async def test_what_the_producer_brings_itself_is_applied_once_too(
    producer: Producer, consumer: Consumer, databases: tuple[Database, Database]
) -> None:
    event_ids = await producer.records("ticket.created")
    stored = await producer.database.rows(Statement(sa.select(outbox_rows.c.message)))
    request = pb.TakeEventsRequest(messages=[row["message"] for row in stored])
    for _ in range(2):
        await consumer.TakeEvents(request, service(producer.name))
    assert await ids(databases) == event_ids
    assert await consumer.catch_up() == 0
    # Of another service it consumes nothing, whatever the event says.
    (other,) = await producer.records("ticket.created")
    stored = await producer.database.rows(Statement(sa.select(outbox_rows.c.event_id, outbox_rows.c.message)))
    request = pb.TakeEventsRequest(messages=[row["message"] for row in stored if str(row["event_id"]) == other])
    await consumer.TakeEvents(request, service("svc-orders"))
    assert await ids(databases) == event_ids


async def test_events_of_other_subjects_are_not_taken(
    producer: Producer, consumer: Consumer, databases: tuple[Database, Database]
) -> None:
    references = producer.outbox.references(
        pb.References(), company_id=7, occurred_at=datetime.datetime.now(datetime.UTC)
    )
    async with producer.database.transaction() as connection:
        await producer.outbox.add(connection, references)
    (event_id,) = await producer.records("ticket.created")
    assert await consumer.catch_up() == 1 and await ids(databases) == [event_id]


async def test_a_bad_event_holds_up_no_other_and_leaves_nothing(
    producer: Producer, consumer: Consumer, databases: tuple[Database, Database], applying: Applied
) -> None:
    applying.bad = {"vendor.hold"}
    first, bad, last = await producer.records("ticket.created", "vendor.hold", "ticket.status_changed")
    assert await consumer.catch_up() == 2
    assert await ids(databases) == sorted([first, last])
    applying.bad = set()
    assert await consumer.catch_up() == 1, "it is tried again"
    assert await ids(databases) == sorted([first, bad, last])


async def test_a_producer_knows_how_far_its_consumers_have_come(producer: Producer, consumer: Consumer) -> None:
    await producer.records("ticket.created")
    before = datetime.datetime.now(datetime.UTC)
    await consumer.catch_up()
    rows = await producer.database.rows(Statement(sa.text("SELECT consumer, recorded_until FROM outbox_confirmation")))
    ((name, until),) = map(tuple, rows)
    assert name == "svc-orders"
    # The last minute is left out: a transaction that is still open may have an earlier time.
    assert before - datetime.timedelta(seconds=61) < until < before


async def test_a_producer_that_is_away_is_unavailable(
    databases: tuple[Database, Database], transport: Transport, applying: Applied, tmp_path: Path
) -> None:
    make_keys(tmp_path, ["svc-orders"])
    away = ServiceClient("svc-away", f"127.0.0.1:{free_port()}", TokenSigner(tmp_path / "svc-orders.jwk"))
    consumer = Consumer("x", databases[1], inbox, transport, applying, {"svc-away": ["public"]}, {"svc-away": away})
    with pytest.raises(ServiceUnavailable):
        await consumer.catch_up()
    await away.close()


def test_a_message_carries_its_own_event_and_those_that_travel_with_it() -> None:
    first, second = (pb.Event(event_id=str(uuid7())) for _ in range(2))
    whole = first.SerializeToString() + pb.Event(more=[second.SerializeToString()]).SerializeToString()
    assert [event.event_id for event in read(Msg(None, data=whole))] == [first.event_id, second.event_id]  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [b"\xff\xff", pb.Event(event_id="x").SerializeToString(), b""])
def test_a_message_that_cannot_be_read_is_logged_and_done_with(data: bytes) -> None:
    with structlog.testing.capture_logs() as logs:
        assert read(Msg(None, subject="events.x", data=data)) == []  # type: ignore[arg-type]
    assert [line["event"] for line in logs] == ["message_unreadable"]
