"""One delivery attempted at once, on request."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from chassis.db.database import Database
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.dispatch.scheduler import Scheduler

from ..dispatcher import dispatcher, happened, now, subscribed
from ..harness import HOUR, Client, Harness, until
from ..receivers import Authority, Received, Receiver, answering

URL = "https://receiver.test/hook"
EXHAUSTED = "UPDATE delivery SET rung = 6, attempts = 6, due_at = $1"


@pytest.fixture
async def scheduler(
    service: Harness, database: Database, receivers: dict[str, Receiver], authority: Authority
) -> AsyncIterator[Scheduler]:
    hosts = {host: ("127.0.0.1", receiver.port) for host, receiver in receivers.items()}
    async with dispatcher(database, authority.file, hosts) as running:
        yield running


async def test_a_delivery_that_is_not_due_is_attempted_at_once_and_on_record_as_a_retry(
    scheduler: Scheduler, client: Client, database: Database, receivers: dict[str, Receiver]
) -> None:
    (sub_id,) = await subscribed(database, client.company_id, [URL])
    first, second = await happened(database, client.company_id, 2, due_at=now() + HOUR)
    assert await scheduler.attempt_now(first, sub_id)
    (request,) = receivers["receiver.test"].requests
    assert request.headers["service-attempt"] == "1"
    deliveries = {delivery.event_id: delivery for delivery in await client.deliveries(sub_id)}
    assert deliveries[str(first)].state == pb.DELIVERY_STATE_SUCCEEDED
    assert deliveries[str(second)].attempts[:] == []
    async with database.connection() as connection:
        assert await connection.raw.fetchval("SELECT cause FROM attempt") == "retry"
    assert not await scheduler.attempt_now(first, sub_id)
    assert len(receivers["receiver.test"].requests) == 1


async def test_a_failure_with_the_ladder_used_up_parks(
    scheduler: Scheduler, client: Client, database: Database, receivers: dict[str, Receiver]
) -> None:
    (sub_id,) = await subscribed(database, client.company_id, [URL])
    (event_id,) = await happened(database, client.company_id)
    async with database.connection() as connection:
        await connection.raw.execute(EXHAUSTED, now())
    receivers["receiver.test"].answer = answering(500)
    assert await scheduler.attempt_now(event_id, sub_id)
    (delivery,) = await client.deliveries(sub_id)
    assert (delivery.state, [attempt.number for attempt in delivery.attempts]) == (pb.DELIVERY_STATE_PARKED, [7])
    assert not await scheduler.attempt_now(event_id, sub_id)


@pytest.mark.parametrize(
    "obstacle",
    [
        "UPDATE subscription SET health = 'paused', paused_at = now()",
        "UPDATE delivery SET leased_until = now() + interval '1 minute'",
        "UPDATE delivery SET state = 'parked', due_at = NULL, settled_at = now()",
        "DELETE FROM subscription",
    ],
    ids=["paused", "claimed", "parked", "deleted"],
)
async def test_what_may_not_be_sent_now_is_not(
    scheduler: Scheduler, client: Client, database: Database, receivers: dict[str, Receiver], obstacle: str
) -> None:
    (sub_id,) = await subscribed(database, client.company_id, [URL])
    (event_id,) = await happened(database, client.company_id)
    async with database.connection() as connection:
        await connection.raw.execute(obstacle)
    assert not await scheduler.attempt_now(event_id, sub_id)
    assert receivers["receiver.test"].requests == []


async def test_a_caller_that_goes_away_leaves_the_attempt_to_its_end(
    scheduler: Scheduler, client: Client, database: Database, receivers: dict[str, Receiver]
) -> None:
    (sub_id,) = await subscribed(database, client.company_id, [URL])
    (event_id,) = await happened(database, client.company_id)
    go_on = asyncio.Event()

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await answering(200)(request, writer)

    receivers["receiver.test"].answer = answer
    attempt = asyncio.create_task(scheduler.attempt_now(event_id, sub_id))
    await until(lambda: len(receivers["receiver.test"].requests) == 1)
    attempt.cancel()
    go_on.set()
    await scheduler.stop()
    (delivery,) = await client.deliveries(sub_id)
    assert delivery.state == pb.DELIVERY_STATE_SUCCEEDED
