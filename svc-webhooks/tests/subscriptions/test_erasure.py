"""Deleting a subscription erases its history, however long it is and whichever process dies meanwhile (spec 4.11)."""

import asyncio
import datetime
import uuid
from collections.abc import AsyncIterator

import grpc
import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from svc_webhooks.dispatch.queries import claims
from svc_webhooks.subscriptions.erasure import DELIVERIES_OF_A_BATCH, Eraser
from svc_webhooks.subscriptions.queries.erasure import subscription_deleted
from testkit.patience import PATIENCE_SECONDS, eventually

from ..administrator import Administrator
from ..harness import Client, Harness, Producer, until
from ..receivers import Receiver, answering, hanging

LONG = 3 * DELIVERIES_OF_A_BATCH + 1


@pytest.fixture
async def mended(service: Harness) -> AsyncIterator[None]:
    """Restores the process after the test, in whatever state the test leaves it."""
    yield
    if not service.webhooks.as_always:
        await asyncio.to_thread(service.webhooks.stop)
        service.webhooks.start()
        await service.webhooks.serving()


async def subscribed(client: Client) -> int:
    sub_id: int = (await client.create())[1]["entity_id"]
    return sub_id


async def with_history(database: Database, client: Client, tickets: Producer, deliveries: int) -> int:
    """A subscription with so many deliveries over several days, each with two attempts; another one has some too."""
    sub_id, other = await subscribed(client), await subscribed(client)
    for_days = [str(uuid.UUID(await tickets.ticket_created(client.company_id))) for _ in range(2)]
    await client.sweep()
    async with database.transaction() as connection:
        for subscription_id, rows in ((sub_id, deliveries), (other, 10)):
            await connection.raw.execute("DELETE FROM attempt WHERE subscription_id = $1", subscription_id)
            await connection.raw.execute("DELETE FROM delivery WHERE subscription_id = $1", subscription_id)
            await connection.raw.execute(
                "INSERT INTO delivery (event_id, subscription_id, state, settled_at, attempts, rung)"
                " SELECT (overlay($1::text placing lpad(to_hex(n), 12, '0') from 25))::uuid, $2, 'succeeded', now(),"
                " 2, 2 FROM generate_series(1, $3::int) n",
                for_days[0], subscription_id, rows,
            )  # fmt: skip
            await connection.raw.execute(
                "INSERT INTO attempt (event_id, subscription_id, number, started_at, duration_milliseconds, status,"
                " error, response_excerpt, state) SELECT event_id, subscription_id, number, now(), 1, 200, '', '',"
                " 'succeeded' FROM delivery, generate_series(1, 2) number WHERE subscription_id = $1",
                subscription_id,
            )
    return sub_id


async def left(database: Database, sub_id: int) -> dict[str, int]:
    tables = ("delivery", "attempt", "erasure")
    async with database.connection() as connection:
        return {
            table: await connection.raw.fetchval(f"SELECT count(*) FROM {table} WHERE subscription_id = $1", sub_id)
            for table in tables
        }


NOTHING = {"delivery": 0, "attempt": 0, "erasure": 0}


async def erased(database: Database, sub_id: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await left(database, sub_id) != NOTHING:  # noqa: ASYNC110 - polls a process
            await asyncio.sleep(0.05)


async def total(database: Database) -> int:
    async with database.connection() as connection:
        count: int = await connection.raw.fetchval("SELECT count(*) FROM delivery")
        return count


async def listed_without(client: Client, sub_id: int) -> bool:
    return sub_id not in [subscription["entity_id"] for subscription in await client.subscriptions()]


async def test_a_short_history_is_gone_when_the_delete_is_answered(
    client: Client, database: Database, tickets: Producer
) -> None:
    sub_id = await with_history(database, client, tickets, DELIVERIES_OF_A_BATCH - 1)
    await client.delete(sub_id)
    assert await left(database, sub_id) == NOTHING
    assert await total(database) == 10


async def test_a_long_history_is_erased_after_the_answer_and_the_rest_is_invisible(
    client: Client, database: Database, tickets: Producer
) -> None:
    sub_id = await with_history(database, client, tickets, LONG)
    async with database.transaction() as connection:  # the batches wait, but the response does not
        await connection.raw.execute("SELECT FROM delivery WHERE subscription_id = $1 FOR KEY SHARE", sub_id)
        deleting = asyncio.create_task(client.delete(sub_id))
        await eventually(lambda: listed_without(client, sub_id))
        with pytest.raises(Refusal):
            await client.deliveries(sub_id)
        with pytest.raises(Refusal):
            await client.delete(sub_id)
        assert (await left(database, sub_id))["delivery"] == LONG
    await deleting
    await erased(database, sub_id)
    assert await total(database) == 10


@pytest.mark.parametrize("point", ["erasure-begun", "erasure-batch"])
async def test_killed_meanwhile_it_is_finished_by_the_next_process(
    client: Client, database: Database, tickets: Producer, service: Harness, mended: None, point: str
) -> None:
    sub_id = await with_history(database, client, tickets, LONG)
    await asyncio.to_thread(service.webhooks.stop)
    service.webhooks.start(MAKEREADY_KILL_AT=point)
    await service.webhooks.serving()
    with pytest.raises(grpc.aio.AioRpcError):
        await client.delete(sub_id)
    await service.webhooks.killed()
    remaining = await left(database, sub_id)
    gone = DELIVERIES_OF_A_BATCH if point == "erasure-batch" else 0
    assert remaining == {"delivery": LONG - gone, "attempt": 2 * (LONG - gone), "erasure": 1}
    service.webhooks.start()
    await service.webhooks.serving()
    await erased(database, sub_id)
    assert await total(database) == 10
    with pytest.raises(Refusal) as refused:  # the cut-off request had already taken effect
        await client.delete(sub_id)
    assert refused.value.status == 404


async def test_several_processes_finish_what_there_is(client: Client, database: Database, tickets: Producer) -> None:
    ids = [await with_history(database, client, tickets, LONG) for _ in range(2)]
    for sub_id in ids:
        assert await subscription_deleted(database, client.company_id, sub_id)
    await asyncio.gather(*(Eraser(database).finish() for _ in range(3)))
    for sub_id in ids:
        await erased(database, sub_id)


async def test_a_delivery_that_is_stored_at_the_same_moment_leaves_no_row(
    client: Client, database: Database, tickets: Producer
) -> None:
    """A delivery matched before the delete is erased with the history; after it, there is no subscription to match."""
    for _ in range(5):
        sub_id = await subscribed(client)
        await asyncio.gather(
            *(tickets.ticket_created(client.company_id, number) for number in range(5)), client.delete(sub_id)
        )
        await client.sweep()
        await erased(database, sub_id)
    assert await total(database) == 0


async def test_a_fan_out_under_way_is_waited_for_and_goes_along(
    client: Client, database: Database, tickets: Producer
) -> None:
    sub_id = await subscribed(client)
    event_id = uuid.UUID(await tickets.ticket_created(client.company_id))
    async with database.transaction() as connection:
        await connection.raw.execute("SELECT FROM subscription WHERE id = $1 FOR KEY SHARE", sub_id)
        deleting = asyncio.create_task(client.delete(sub_id))
        await asyncio.wait({deleting}, timeout=0.5)  # short: it waits for the lock
        assert not deleting.done()
        await connection.raw.execute(
            "INSERT INTO delivery (event_id, subscription_id, due_at) VALUES ($1, $2, now()) ON CONFLICT DO NOTHING",
            event_id, sub_id,
        )  # fmt: skip
    await deleting
    await erased(database, sub_id)


async def test_an_attempt_under_way_records_nothing_for_a_deleted_subscription(
    client: Client, database: Database, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = await subscribed(client)
    receivers["receiver.test"].answer = hanging
    await tickets.ticket_created(client.company_id)
    sweep = asyncio.create_task(client.sweep())
    await until(lambda: len(receivers["receiver.test"].requests) == 1)
    await client.delete(sub_id)
    assert await left(database, sub_id) == NOTHING
    receivers["receiver.test"].answer = answering(200)
    receivers["receiver.test"].hang_up()
    assert (await sweep)["attempted"] == 0
    assert await left(database, sub_id) == NOTHING


async def test_what_is_still_to_be_erased_is_neither_attempted_nor_shown(
    client: Client, database: Database, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    sub_id = await subscribed(client)
    event_id = await tickets.ticket_created(client.company_id)
    await client.sweep(_long_ago())  # stores the event; nothing is due
    administrator = Administrator(client)
    assert len((await administrator.event(event_id)).deliveries) == 1
    assert len((await administrator.undelivered()).deliveries) == 1
    assert await subscription_deleted(database, client.company_id, sub_id)
    assert (await client.sweep())["attempted"] == 0
    due = await claims.subscriptions_due(database, _far_ahead(), 0, 10)
    assert due == []
    assert len((await administrator.event(event_id)).deliveries) == 0
    assert len((await administrator.undelivered()).deliveries) == 0
    with pytest.raises(Refusal):
        await administrator.deliveries(sub_id)
    with pytest.raises(Refusal):
        await administrator.retry(event_id, sub_id)
    assert receivers["receiver.test"].requests == []
    await Eraser(database).finish()
    assert await left(database, sub_id) == NOTHING


def _long_ago() -> datetime.datetime:
    return datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def _far_ahead() -> datetime.datetime:
    return datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
