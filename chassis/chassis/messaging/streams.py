"""The stream of events and its durable consumers. The operator's user of NATS makes them; services may not.

`python -m chassis.messaging.streams` makes the stream on the servers at MAKEREADY_NATS_URL, without consumers: for one
service alone.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import nats.js.errors
import structlog
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.client import JetStreamContext

from chassis.messaging.transport import AGAIN_SECONDS, ANSWER_SECONDS, FAULTS, STREAM, NatsConnection, reason_of
from chassis.runtime.settings import Environment, SettingsError, nats_replicas, nats_url

SUBJECTS = "events.>"
ACK_SECONDS = 30
PENDING_MAX = 800  # messages; a service takes 20 at a time
CHECK_SECONDS = 5

# By consuming service and producer, the ends of the subjects: {"svc-orders": {"svc-parcels": ["references"]}}.
Consumers = Mapping[str, Mapping[str, Sequence[str]]]

log = structlog.stdlib.get_logger(__name__)


def filters(subjects: Mapping[str, Sequence[str]]) -> list[str]:
    """The subjects that a consumer's messages have."""
    all_contents = (f"{producer}.{content}" for producer, contents in subjects.items() for content in contents)
    return [f"events.{content}.>" if content.endswith(".public") else f"events.{content}" for content in all_contents]


class TooFewReplicas(nats.js.errors.Error):
    """The stream has fewer replicas, or more, than asked for, because the cluster refuses the number."""

    def __init__(self, replicas: int, present: int | None, reason: str | None) -> None:
        super().__init__(f"{replicas} replicas are wanted, the stream of events has {present}: {reason}")

    def __str__(self) -> str:
        return self.description or ""


async def make(jetstream: JetStreamContext, consumers: Consumers, replicas: int | None = None) -> None:
    """Makes the stream and the consumers that are missing, and updates the subjects of those that exist.

    They are on as many servers as `replicas` says; an existing stream and its consumers move. None means on one, or as
    it is. Raises one of FAULTS; TooFewReplicas if all are made, on fewer servers.
    """
    stream = await _stream(jetstream, replicas or 1)
    for name, subjects in consumers.items():
        config = ConsumerConfig(
            durable_name=name,
            deliver_policy=DeliverPolicy.ALL,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ACK_SECONDS,
            max_ack_pending=PENDING_MAX,
            filter_subjects=filters(subjects),
        )  # without a number of replicas, it has those of the stream
        try:
            current = (await jetstream.consumer_info(STREAM, name)).config
        except nats.js.errors.NotFoundError:
            current = None
        if current is None or current.filter_subjects != config.filter_subjects:
            await jetstream.add_consumer(STREAM, config)
            log.info("consumer_made", consumer=name)
    if replicas not in (None, stream.num_replicas):
        try:
            await jetstream.update_stream(stream.evolve(num_replicas=replicas))
        except nats.js.errors.APIError as error:
            raise TooFewReplicas(replicas, stream.num_replicas, error.description) from None
        log.info("stream_replicated", stream=STREAM, replicas=replicas, before=stream.num_replicas)


async def _stream(jetstream: JetStreamContext, replicas: int) -> StreamConfig:
    """The stream; it is made if it is missing, with one replica where there can't be as many."""
    with suppress(nats.js.errors.NotFoundError):
        return (await jetstream.stream_info(STREAM)).config
    config = StreamConfig(
        name=STREAM,
        subjects=[SUBJECTS],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        max_age=3 * 24 * 3600,
        duplicate_window=120,
        num_replicas=replicas,
    )
    try:
        new_stream = await jetstream.add_stream(config)
    except nats.js.errors.APIError:
        if replicas == 1:
            raise
        new_stream = await jetstream.add_stream(config.evolve(num_replicas=1))
    log.info("stream_made", stream=STREAM, replicas=new_stream.config.num_replicas)
    return new_stream.config


async def keep(url: str, consumers: Consumers, replicas: int | None = None, tls: ssl.SSLContext | None = None) -> None:
    """Makes them, checks every 5 s that they are there, and makes them again, until cancelled. What it waits for, it
    logs once. See `NatsConnection` and `make`."""
    connection = NatsConnection(url, tls)
    reason = ""
    try:
        while True:
            seconds = CHECK_SECONDS
            try:
                if connection.has_ended():
                    await connection.end()
                    connection = NatsConnection(url, tls)
                if not connection.is_connected and not connection.is_returning:
                    await connection.open("streams", error_cb=_quiet)
                await make(connection.jetstream(timeout=ANSWER_SECONDS), consumers, replicas)
                reason = ""
            except FAULTS as error:
                if reason != (reason := reason_of(error)):
                    event = "stream_lacks_replicas" if isinstance(error, TooFewReplicas) else "streams_wait"
                    log.warning(event, reason=reason)
                if not isinstance(error, TooFewReplicas):
                    seconds = AGAIN_SECONDS
            await asyncio.sleep(seconds)
    finally:
        await connection.end()


async def _quiet(_error: Exception) -> None:
    """`keep` reports what fails."""


async def _main(environment: Environment) -> None:
    connection = NatsConnection(nats_url(environment), environment.nats_tls())
    await connection.open("streams")
    while True:
        try:
            await make(connection.jetstream(timeout=ANSWER_SECONDS), {}, nats_replicas(environment))
            break
        except FAULTS as error:  # on a new cluster the first requests may time out
            log.warning("streams_wait", reason=reason_of(error))
            await asyncio.sleep(AGAIN_SECONDS)
    await connection.end()


if __name__ == "__main__":
    try:
        asyncio.run(_main(Environment(os.environ)))
    except SettingsError as error:
        sys.exit(f"streams: {error}")
