"""The stream of events and its durable consumers. The operator's user of NATS makes them; services may not.

`python -m chassis.messaging.streams` makes the stream on the server at MAKEREADY_NATS_URL, without consumers: for one
service alone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

import nats
import nats.js.errors
import structlog
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.client import JetStreamContext

from chassis.messaging.transport import FAULTS, STREAM

SUBJECTS = "events.>"
ACK_SECONDS = 30
PENDING_MAX = 800  # messages; a service takes 20 at a time
CHECK_SECONDS = 5

# By consuming service and producer, the ends of the subjects: {"svc-orders": {"svc-parcels": ["references"]}}.
Consumers = Mapping[str, Mapping[str, Sequence[str]]]

log = structlog.stdlib.get_logger(__name__)


def filters(subjects: Mapping[str, Sequence[str]]) -> list[str]:
    """The subjects that a consumer's messages have."""
    ends = (f"{producer}.{end}" for producer, some in subjects.items() for end in some)
    return [f"events.{end}.>" if end.endswith(".public") else f"events.{end}" for end in ends]


async def make(jetstream: JetStreamContext, consumers: Consumers) -> None:
    """Makes the stream and the consumers that are missing, and updates the subjects of those that exist."""
    try:
        await jetstream.stream_info(STREAM)
    except nats.js.errors.NotFoundError:
        await jetstream.add_stream(
            StreamConfig(
                name=STREAM,
                subjects=[SUBJECTS],
                retention=RetentionPolicy.LIMITS,
                storage=StorageType.FILE,
                max_age=3 * 24 * 3600,
                duplicate_window=120,
            )
        )
        log.info("stream_made", stream=STREAM)
    for name, subjects in consumers.items():
        wanted = ConsumerConfig(
            durable_name=name,
            deliver_policy=DeliverPolicy.ALL,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ACK_SECONDS,
            max_ack_pending=PENDING_MAX,
            filter_subjects=filters(subjects),
        )
        try:
            found = (await jetstream.consumer_info(STREAM, name)).config
        except nats.js.errors.NotFoundError:
            found = None
        if found is None or found.filter_subjects != wanted.filter_subjects:
            await jetstream.add_consumer(STREAM, wanted)
            log.info("consumer_made", consumer=name)


async def keep(url: str, consumers: Consumers) -> None:
    """Makes them, checks every 5 s that they are there, and makes them again, until cancelled."""
    while True:
        try:
            client = await nats.connect(
                url,
                name="streams",
                connect_timeout=2,
                max_reconnect_attempts=-1,
                reconnect_time_wait=1,
                error_cb=_quiet,
            )
        except FAULTS:
            await asyncio.sleep(1)
            continue
        try:
            jetstream = client.jetstream(timeout=5)
            while not client.is_closed:
                try:
                    await make(jetstream, consumers)
                except FAULTS as error:
                    log.warning("streams_wait", reason=str(error) or type(error).__name__)
                    await asyncio.sleep(1)
                else:
                    await asyncio.sleep(CHECK_SECONDS)
        finally:
            with suppress(*FAULTS):  # the server may have gone a moment before
                await client.close()


async def _quiet(_error: Exception) -> None:
    """`keep` reports what fails."""


async def _main() -> None:
    client = await nats.connect(os.environ["MAKEREADY_NATS_URL"])
    await make(client.jetstream(), {})
    await client.close()


if __name__ == "__main__":
    asyncio.run(_main())
