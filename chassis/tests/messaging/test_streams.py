"""The stream and its consumers are made again when they are gone, and every event arrives all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import nats
import nats.js.errors
import pytest
from nats.js.client import JetStreamContext

from chassis.messaging import streams
from chassis.messaging.transport import FAULTS, STREAM
from testkit.plugin import Server

CONSUMERS = {"svc-keeping": {"svc-kept": ["references", "public.ticket.created"], "svc-all": ["public"]}}


@pytest.fixture
async def jetstream(nats_server: Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[JetStreamContext]:
    """While it is open, the consumer is kept."""
    monkeypatch.setattr(streams, "CHECK_SECONDS", 0.05)
    keeping = asyncio.create_task(streams.keep(nats_server.url, CONSUMERS))
    client = await nats.connect(nats_server.url)
    await there(client.jetstream())
    yield client.jetstream()
    keeping.cancel()
    await client.jetstream().delete_consumer(STREAM, "svc-keeping")
    await client.close()


async def there(jetstream: JetStreamContext) -> list[str]:
    """The subjects of the consumer, once it exists."""
    async with asyncio.timeout(30):
        while True:
            try:
                return (await jetstream.consumer_info(STREAM, "svc-keeping")).config.filter_subjects or []
            except FAULTS:
                await asyncio.sleep(0.02)


async def test_a_consumer_and_a_stream_that_are_deleted_are_made_again(jetstream: JetStreamContext) -> None:
    expected = ["events.svc-kept.references", "events.svc-kept.public.ticket.created", "events.svc-all.public.>"]
    assert await there(jetstream) == expected
    await jetstream.publish("events.svc-kept.references", b"1")
    await jetstream.delete_consumer(STREAM, "svc-keeping")
    assert await there(jetstream) == expected
    messages = await jetstream.pull_subscribe_bind(durable="svc-keeping", stream=STREAM)
    assert [message.data for message in await messages.fetch(1, timeout=20)] == [b"1"], "from the start of the stream"
    await jetstream.delete_stream(STREAM)
    assert await there(jetstream) == expected


async def test_a_consumer_gets_the_subjects_of_the_next_release_and_keeps_its_place(
    jetstream: JetStreamContext,
) -> None:
    await jetstream.publish("events.svc-kept.references", b"2")
    messages = await jetstream.pull_subscribe_bind(durable="svc-keeping", stream=STREAM)
    (message,) = await messages.fetch(1, timeout=20)
    await message.ack_sync()
    await streams.make(jetstream, {"svc-keeping": {"svc-kept": ["references", "causes"]}})
    info = await jetstream.consumer_info(STREAM, "svc-keeping")
    assert info.num_pending == 0 and info.ack_floor is not None and info.ack_floor.consumer_seq == 1
