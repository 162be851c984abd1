"""A process, a producer or a server dies at the wrong moment."""

import asyncio
import datetime
import time
from pathlib import Path

import grpc
import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.webhooks.v1 import webhooks_pb2 as pb
from testkit import processes
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer, Server
from testkit.processes import free_port

from ..administrator import Administrator
from ..harness import HOUR, Client, Harness, Producer, until
from ..receivers import Receiver, answering, hanging

pytestmark = pytest.mark.chaos


async def restart(service: Harness, **more: str) -> None:
    await asyncio.to_thread(service.webhooks.stop)
    service.webhooks.start(**more)
    await service.webhooks.serving()


@pytest.mark.parametrize("point", ["write-before-statement", "write-after-commit"])
async def test_a_create_killed_at_any_point_leaves_no_stuck_key_and_one_subscription(
    client: Client, service: Harness, mended: None, point: str
) -> None:
    await restart(service, MAKEREADY_KILL_AT=point)
    with pytest.raises(grpc.aio.AioRpcError):
        await client.create(key="one")
    await service.webhooks.killed()
    service.webhooks.start()
    await service.webhooks.serving()
    status, body, replayed = await client.create(key="one")
    assert status == 201
    assert replayed == (point == "write-after-commit")
    assert ("secret" in body) != replayed
    assert len(await client.subscriptions()) == 1


async def test_a_stop_lets_the_attempts_under_way_be_recorded(
    client: Client, tickets: Producer, service: Harness, receivers: dict[str, Receiver], mended: None
) -> None:
    sub_id = (await client.create())[1]["entity_id"]
    receivers["receiver.test"].answer = hanging
    await tickets.ticket_created(client.company_id)
    sweep = asyncio.create_task(client.sweep())
    await until(lambda: len(receivers["receiver.test"].requests) == 1)
    stopping = asyncio.create_task(asyncio.to_thread(service.webhooks.stop))
    await asyncio.sleep(0.2)
    receivers["receiver.test"].hang_up()
    assert (await sweep)["failed"] == 1
    await stopping
    service.webhooks.start()
    await service.webhooks.serving()
    ((attempt,),) = [delivery.attempts for delivery in await client.deliveries(sub_id)]
    assert attempt.error == "disconnected"


@pytest.mark.slow
async def test_a_receiver_that_hangs_does_not_hold_up_a_stop_and_gets_its_delivery_later(
    client: Client, tickets: Producer, service: Harness, receivers: dict[str, Receiver], mended: None
) -> None:
    await restart(service, WEBHOOKS_SWEEP_SECONDS="1")
    sub_id = (await client.create())[1]["entity_id"]
    receivers["receiver.test"].answer = hanging
    await tickets.ticket_created(client.company_id)
    await until(lambda: len(receivers["receiver.test"].requests) == 1)
    await asyncio.to_thread(service.webhooks.stop)  # at the attempt's deadline there would be an attempt
    receivers["receiver.test"].answer = answering(200)
    service.webhooks.start()
    await service.webhooks.serving()
    await client.sweep()  # returns when the attempt is recorded, by this sweep or a slot's
    (delivery,) = await client.deliveries(sub_id)
    assert [(attempt.number, attempt.error) for attempt in delivery.attempts] == [(1, "")]


async def test_events_arrive_without_nats(
    client: Client, tickets: Producer, nats_server: Server, receivers: dict[str, Receiver], mended: None
) -> None:
    await client.create()
    await asyncio.to_thread(nats_server.stop)
    try:
        await tickets.ticket_created(client.company_id)
        assert (await client.sweep())["succeeded"] == 1
    finally:
        await asyncio.to_thread(nats_server.start)
    assert len(receivers["receiver.test"].requests) == 1


@pytest.mark.slow
async def test_a_producer_that_is_away_fails_the_sweep_clearly_and_within_its_time(
    client: Client, service: Harness, mended: None
) -> None:
    await asyncio.to_thread(service.producers["svc-tickets"].stop)
    started = time.monotonic()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.sweep()
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert time.monotonic() - started < 50  # it takes 10 s; the caller would wait for 60 s
    assert (await client.create())[0] == 201


async def test_postgresql_killed_during_attempts_loses_none(
    client: Client,
    tickets: Producer,
    postgres_server: PostgresServer,
    receivers: dict[str, Receiver],
    mended: None,
) -> None:
    sub_id = (await client.create())[1]["entity_id"]
    for number in range(5):
        await tickets.ticket_created(client.company_id, number)
    await client.sweep(datetime.datetime.now(datetime.UTC) - HOUR)  # stores the events; nothing is due
    holding = asyncio.Event()

    async def answer(_: object, writer: asyncio.StreamWriter) -> None:
        await holding.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    receivers["receiver.test"].answer = answer
    sweep = asyncio.create_task(client.sweep())
    await until(lambda: len(receivers["receiver.test"].requests) == 5)
    await asyncio.to_thread(postgres_server.kill)
    holding.set()
    await asyncio.sleep(0.5)
    await asyncio.to_thread(postgres_server.start)
    assert (await sweep)["succeeded"] == 5
    deliveries = await client.deliveries(sub_id)
    assert [len(delivery.attempts) for delivery in deliveries] == [1] * 5
    assert len(receivers["receiver.test"].requests) == 5


async def test_without_a_vault_nothing_is_created_and_nothing_is_lost(
    client: Client, tickets: Producer, service: Harness, receivers: dict[str, Receiver], mended: None
) -> None:
    sub_id = (await client.create())[1]["entity_id"]
    await tickets.ticket_created(client.company_id)
    await restart(service, WEBHOOKS_VAULT_KEYS="")
    for raw in (None, b"not even json"):
        with pytest.raises(Refusal) as refused:
            await client.create(raw=raw)
        assert (refused.value.status, refused.value.code) == (503, "vault_unavailable")
    assert len(await client.subscriptions()) == 1
    first = datetime.datetime.now(datetime.UTC)
    for sweeps in range(8):  # more sweeps than the ladder has rungs
        assert (await client.sweep(first + datetime.timedelta(seconds=sweeps)))["failed"] == 1
    await restart(service)
    (delivery,) = await client.deliveries(sub_id)
    assert delivery.state == pb.DELIVERY_STATE_WAITING
    assert {attempt.error for attempt in delivery.attempts} == {"vault"}
    assert (await client.subscriptions())[0]["health"] == "healthy"
    assert (await client.sweep(first + datetime.timedelta(seconds=8)))["succeeded"] == 1
    assert receivers["receiver.test"].requests[0].headers["service-attempt"] == "9"


@pytest.mark.slow
async def test_the_clock_alone_sweeps_at_every_slot(
    client: Client, tickets: Producer, service: Harness, receivers: dict[str, Receiver], mended: None
) -> None:
    await restart(service, WEBHOOKS_SWEEP_SECONDS="1", WEBHOOKS_RETRY_LADDER_HOURS="0.0003,0.0006")
    sub_id = (await client.create())[1]["entity_id"]

    async def always_broken(_: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n")

    receivers["receiver.test"].answer = always_broken
    await tickets.ticket_created(client.company_id)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while [delivery.state for delivery in await client.deliveries(sub_id)] != [pb.DELIVERY_STATE_PARKED]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await asyncio.sleep(2.5)
    assert len(receivers["receiver.test"].requests) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEBHOOKS_SWEEP_SECONDS", "0"),
        ("WEBHOOKS_SWEEP_SECONDS", "1h"),
        ("WEBHOOKS_RETRY_LADDER_HOURS", "1,2,2"),
        ("WEBHOOKS_RETRY_LADDER_HOURS", "4,2"),
        ("WEBHOOKS_RETRY_LADDER_HOURS", "-1,2"),
        ("WEBHOOKS_RETRY_LADDER_HOURS", "one"),
        ("WEBHOOKS_RETRY_LADDER_HOURS", "nan"),
        ("WEBHOOKS_RETRY_LADDER_HOURS", "1e400"),
        ("WEBHOOKS_RETRY_LADDER_HOURS", "1,70000000"),
        ("WEBHOOKS_EGRESS_HOSTS", "receiver.test"),
        ("WEBHOOKS_EGRESS_HOSTS", "receiver.test=localhost:1"),
        ("WEBHOOKS_EGRESS_HOSTS", "receiver.test=127.0.0.1:99999"),
        ("WEBHOOKS_EGRESS_CA_FILE", "/no/such/file"),
        ("WEBHOOKS_EGRESS_CA_FILE", __file__),
        ("WEBHOOKS_VAULT_KEYS", "k1:c2VjcmV0"),
    ],
)
async def test_a_bad_setting_stops_the_start_with_one_line(
    service: Harness, tmp_path: Path, name: str, value: str
) -> None:
    ports = {
        "MAKEREADY_GRPC_LISTEN": f"127.0.0.1:{free_port()}",
        "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
    }
    environment = service.webhooks.environment | ports | {name: value}
    process = processes.Process(service.webhooks.command, tmp_path / "log", environment, warm=True)
    process.launch()
    try:
        assert await asyncio.to_thread(process.wait, 60) == 2
    finally:
        process.kill()
    (line,) = process.log.read_text().splitlines()
    assert name in line
    assert "c2VjcmV0" not in line


async def test_a_retry_whose_process_dies_is_made_by_the_next_sweep(
    client: Client,
    tickets: Producer,
    service: Harness,
    receivers: dict[str, Receiver],
    database: Database,
    mended: None,
) -> None:
    administrator = Administrator(client)
    sub_id = await administrator.subscribe()
    event_id = await tickets.ticket_created(client.company_id)
    receivers["receiver.test"].answer = answering(500)
    await administrator.walk_the_ladder(datetime.datetime.now(datetime.UTC))
    await restart(service, MAKEREADY_KILL_AT="delivery-sent")
    with pytest.raises(grpc.aio.AioRpcError):
        await administrator.retry(event_id, sub_id)
    await service.webhooks.killed()
    service.webhooks.start()
    await service.webhooks.serving()
    (delivery,) = await client.deliveries(sub_id)
    assert (delivery.state, len(delivery.attempts)) == (pb.DELIVERY_STATE_WAITING, 6)
    async with database.connection() as connection:  # instead of waiting for the claim to run out
        await connection.raw.execute("UPDATE delivery SET leased_until = now() - interval '1 second'")
    assert await client.sweep() == {"attempted": 1, "succeeded": 0, "failed": 1, "parked": 1}
    (delivery,) = await client.deliveries(sub_id)
    assert (delivery.state, len(delivery.attempts)) == (pb.DELIVERY_STATE_PARKED, 7)
    assert delivery.attempts[-1].cause == pb.ATTEMPT_CAUSE_RETRY
    assert len({request.body for request in receivers["receiver.test"].requests}) == 1
    assert len(receivers["receiver.test"].requests) == 8  # includes the request that was not recorded
