"""Every event reaches every matching subscription once it is stored, whatever NATS loses and whichever process dies."""

import asyncio
import datetime
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import nats
import nats.errors
import nats.js.errors
import pytest
from nats.js.client import JetStreamContext

from chassis.messaging.transport import STREAM
from testkit.plugin import Server

from ..harness import AGAIN_SECONDS, HOUR, Client, Harness, Producer
from ..receivers import Receiver

PATHS = ("/a", "/b", "/c", "/d")
NOTHING = {"attempted": 0, "succeeded": 0, "failed": 0, "parked": 0}


class Listeners:
    """Several subscriptions of one company, and the requests that they received."""

    def __init__(self, client: Client, receiver: Receiver) -> None:
        self.client = client
        self.receiver = receiver

    async def subscribe(self, *paths: str) -> None:
        for path in paths:
            body = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.created"]}
            assert (await self.client.create(body))[0] == 201

    def heard(self) -> Counter[tuple[str, str]]:
        """(path, event id) of every request, counted."""
        arrivals: Counter[tuple[str, str]] = Counter()
        for request in self.receiver.requests:
            event_id = request.body.partition(b'"event_id":"')[2][:36].decode()
            arrivals[request.request_line.split(" ")[1], event_id] += 1
        return arrivals

    async def each_hears_once(self, event_ids: Sequence[str], paths: Sequence[str] = PATHS) -> None:
        """Sweeps; then each subscription has received each event once, and a later sweep finds nothing due."""
        await self.client.sweep()
        assert self.heard() == Counter((path, event_id) for path in paths for event_id in event_ids)
        assert await self.client.sweep(datetime.datetime.now(datetime.UTC) + HOUR) == NOTHING


@pytest.fixture
def listeners(client: Client, receivers: dict[str, Receiver]) -> Listeners:
    return Listeners(client, receivers["receiver.test"])


@pytest.fixture
async def jetstream(nats_server: Server) -> AsyncIterator[JetStreamContext]:
    """The access of an operator of NATS."""
    connection = await nats.connect(nats_server.url)
    yield connection.jetstream()
    await connection.close()


async def events(tickets: Producer, company_id: int, count: int) -> list[str]:
    return [await tickets.ticket_created(company_id, number + 1) for number in range(count)]


async def published(tickets: Producer) -> None:
    """Waits until NATS has all of the producer's events."""
    async with asyncio.timeout(AGAIN_SECONDS), tickets.database.connection() as connection:
        sql = "SELECT count(*) FROM outbox WHERE published_at IS NULL"
        while await connection.raw.fetchval(sql):  # noqa: ASYNC110 - polls a database
            await asyncio.sleep(0.1)


async def consumed_again(jetstream: JetStreamContext) -> None:
    """Waits until the stream exists with the service's consumer."""
    async with asyncio.timeout(AGAIN_SECONDS):
        while True:
            try:
                await jetstream.consumer_info(STREAM, "svc-webhooks")
                return
            except (nats.js.errors.Error, nats.errors.Error):
                await asyncio.sleep(0.1)


async def test_events_of_a_whole_outage_of_nats_reach_every_subscription_and_its_return_brings_none_again(
    listeners: Listeners, tickets: Producer, nats_server: Server, mended: None
) -> None:
    await listeners.subscribe(*PATHS)
    await asyncio.to_thread(nats_server.kill)
    try:
        event_ids = await events(tickets, listeners.client.company_id, 60)
        await listeners.each_hears_once(event_ids)
    finally:
        await asyncio.to_thread(nats_server.start)
    await published(tickets)
    await listeners.client.acknowledged()  # NATS has now delivered the events, without effect
    await listeners.each_hears_once(event_ids)


@pytest.mark.parametrize("point", ["consumer-before-commit", "consumer-before-ack"])
async def test_a_consumer_killed_between_store_and_acknowledgement_fans_out_once_to_every_subscription(
    listeners: Listeners, tickets: Producer, service: Harness, jetstream: JetStreamContext, mended: None, point: str
) -> None:
    await listeners.subscribe(*PATHS)
    await published(tickets)
    await jetstream.purge_stream(STREAM)  # an older test's messages would kill the process too soon
    await asyncio.to_thread(service.webhooks.stop)
    service.webhooks.start(MAKEREADY_KILL_AT=point)
    await service.webhooks.serving()
    event_ids = await events(tickets, listeners.client.company_id, 3)
    await service.webhooks.killed()
    service.webhooks.start()
    await service.webhooks.serving()
    await listeners.each_hears_once(event_ids)


async def test_a_dispatcher_that_was_away_for_a_while_delivers_what_happened_meanwhile(
    listeners: Listeners, tickets: Producer, service: Harness, nats_server: Server, mended: None
) -> None:
    await listeners.subscribe(*PATHS)
    service.webhooks.kill()
    event_ids = await events(tickets, listeners.client.company_id, 10)
    await asyncio.to_thread(nats_server.kill)  # NATS may also lose messages that it has not delivered yet
    event_ids += await events(tickets, listeners.client.company_id, 10)
    await asyncio.to_thread(nats_server.start)
    service.webhooks.start()
    await service.webhooks.serving()
    await listeners.each_hears_once(event_ids)


async def test_a_stream_and_its_consumer_deleted_by_mistake_take_no_event_with_them(
    listeners: Listeners, tickets: Producer, service: Harness, jetstream: JetStreamContext, mended: None
) -> None:
    await listeners.subscribe(*PATHS)
    service.webhooks.kill()
    event_ids = await events(tickets, listeners.client.company_id, 5)
    await published(tickets)
    await jetstream.delete_consumer(STREAM, "svc-webhooks")
    await jetstream.delete_stream(STREAM)
    event_ids += await events(tickets, listeners.client.company_id, 5)
    service.webhooks.start()
    await service.webhooks.serving()
    event_ids += await events(tickets, listeners.client.company_id, 5)
    await listeners.each_hears_once(event_ids)
    await consumed_again(jetstream)  # both exist again for later tests


async def test_a_consumer_deleted_under_a_running_service_takes_no_event_with_it(
    listeners: Listeners, tickets: Producer, jetstream: JetStreamContext
) -> None:
    await listeners.subscribe(*PATHS)
    await jetstream.delete_consumer(STREAM, "svc-webhooks")
    event_ids = await events(tickets, listeners.client.company_id, 5)
    await listeners.each_hears_once(event_ids)
    await consumed_again(jetstream)


async def test_a_subscription_hears_what_is_stored_after_it_was_created_and_nothing_from_before(
    listeners: Listeners, tickets: Producer, nats_server: Server, mended: None
) -> None:
    await listeners.subscribe("/early")
    early = await events(tickets, listeners.client.company_id, 3)
    await listeners.client.sweep()  # stores the events, which are matched only once
    await listeners.subscribe("/late")
    await asyncio.to_thread(nats_server.kill)
    try:
        later = await events(tickets, listeners.client.company_id, 3)
        await listeners.client.sweep()
        assert listeners.heard() == Counter(
            [("/early", event_id) for event_id in early + later] + [("/late", event_id) for event_id in later]
        )
        # An event that is not stored yet also reaches a subscription created in the meantime.
        unseen = await events(tickets, listeners.client.company_id, 1)
        await listeners.subscribe("/last")
        await listeners.client.sweep()
    finally:
        await asyncio.to_thread(nats_server.start)
    assert [path for path, event_id in listeners.heard() if event_id == unseen[0]].count("/last") == 1
    assert [event_id for path, event_id in listeners.heard() if path == "/last"] == unseen
