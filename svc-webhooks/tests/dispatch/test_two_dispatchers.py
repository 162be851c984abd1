"""Two dispatchers on one database: one finishes the work of the other that died; while both live, nothing is sent
twice."""

import asyncio
import datetime
import json
from collections import Counter
from collections.abc import AsyncIterator

import grpc
import pytest

from chassis.db.database import Database
from makeready.common.v1 import company_clock_pb2 as clock_pb
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.dispatch.queries import claims as queries
from testkit.patience import PATIENCE_SECONDS
from testkit.processes import free_port

from ..dispatcher import now
from ..harness import HOUR, Client, Harness, Process, Producer, until
from ..receivers import Receiver, answering
from ..sandboxes import SandboxClient, make_sandbox

MANY = 20  # more than one turn claims


@pytest.fixture
async def others(service: Harness) -> AsyncIterator[list[Process]]:
    """Two more processes, not started; each test sets the failpoint at which they die."""
    processes = []
    for number in (2, 3):
        target = f"127.0.0.1:{free_port()}"
        settings = {"MAKEREADY_GRPC_LISTEN": target, "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}"}
        log = service.webhooks.log.with_name(f"svc-webhooks-{number}.log")
        processes.append(Process(service.webhooks.command, service.webhooks.environment | settings, target, log))
    yield processes
    for process in processes:
        await asyncio.to_thread(process.stop)


async def sweep(client: Client, process: Process, now: datetime.datetime | None = None) -> dict[str, int]:
    """Sweeps on another dispatcher."""
    async with grpc.aio.insecure_channel(process.target) as channel:
        return await Client(client.service, channel, client.company_id).sweep(now)


async def listen(client: Client, path: str, event: str) -> int:
    _, subscription, _ = await client.create({"destination_url": f"https://receiver.test{path}", "events": [event]})
    sub_id: int = subscription["entity_id"]
    return sub_id


def paths(receiver: Receiver) -> Counter[str]:
    return Counter(request.request_line.split(" ")[1] for request in receiver.requests)


@pytest.mark.slow
async def test_deliveries_of_a_dead_dispatcher_are_attempted_after_the_claim_and_delay_no_others(
    client: Client, tickets: Producer, others: list[Process], receivers: dict[str, Receiver]
) -> None:
    """One dies with a delivery claimed, the other with many sent and none recorded."""
    receiver = receivers["receiver.test"]
    claimed = await listen(client, "/claimed", "ticket.created")
    sent = await listen(client, "/sent", "ticket.status_changed")
    alive = await listen(client, "/alive", "ticket.stale")
    await tickets.ticket_created(client.company_id)
    events = ["ticket.status_changed"] * MANY
    for point, process in zip(("delivery-claimed", "delivery-sent"), others, strict=True):
        process.start(MAKEREADY_KILL_AT=point)
    for process in others:
        await process.serving()
    for process in others:
        with pytest.raises(grpc.aio.AioRpcError):
            await sweep(client, process)
        await process.killed()
        while events:
            await tickets.ticket_created(client.company_id, event=events.pop())
    before = paths(receiver)
    assert before["/claimed"] == 0 and 0 < before["/sent"] < MANY
    await tickets.ticket_created(client.company_id, event="ticket.stale")
    sweeping = asyncio.create_task(client.sweep())
    await until(lambda: paths(receiver)["/alive"] == 1)
    again = Counter(request.body for request in receiver.requests)
    assert set(again.values()) == {1}  # the claims of the dead dispatchers are still valid
    others[0].start()  # restarted, next to the dispatcher that survived
    await others[0].serving()
    counts = await asyncio.gather(sweeping, sweep(client, others[0]))
    assert [sum(count[name] for count in counts) for name in ("attempted", "failed")] == [MANY + 2, 0]
    after = paths(receiver)
    assert (after["/claimed"], after["/alive"], after["/sent"]) == (1, 1, MANY + before["/sent"])
    bodies = Counter(request.body for request in receiver.requests)
    assert len(bodies) == MANY + 2 and sorted(bodies.values())[-1] == 2  # a repeated send has identical bytes
    for sub_id, count in ((claimed, 1), (sent, MANY), (alive, 1)):
        deliveries = await client.deliveries(sub_id)
        assert len(deliveries) == count and {delivery.state for delivery in deliveries} == {pb.DELIVERY_STATE_SUCCEEDED}
        assert {tuple(attempt.number for attempt in delivery.attempts) for delivery in deliveries} == {(1,)}


async def test_dispatchers_that_sweep_at_once_send_each_attempt_once(
    client: Client, tickets: Producer, others: list[Process], receivers: dict[str, Receiver]
) -> None:
    receiver = receivers["receiver.test"]
    receiver.answer = answering(500)
    for number in range(4):
        await listen(client, f"/{number}", "ticket.created")
    for number in range(50):
        await tickets.ticket_created(client.company_id, number + 1)
    other = others[0]
    other.start()
    await other.serving()
    first = datetime.datetime.now(datetime.UTC)
    for slot in range(3):
        receiver.requests.clear()
        now = first + slot * HOUR
        counts = await asyncio.gather(client.sweep(now), sweep(client, other, now))
        assert sum(count["attempted"] for count in counts) == len(receiver.requests) == 200
        seen = Counter((request.request_line, request.body) for request in receiver.requests)
        assert set(seen.values()) == {1}
        assert {request.headers["service-attempt"] for request in receiver.requests} == {str(slot + 1)}


async def test_dispatchers_claim_one_after_another(client: Client, tickets: Producer, database: Database) -> None:
    """A statement rechecks rows that another one changes meanwhile; some releases of PostgreSQL 18 crash then."""
    sub_id = await listen(client, "/", "ticket.created")
    await tickets.ticket_created(client.company_id)
    early = datetime.datetime.now(datetime.UTC) - HOUR
    assert (await client.sweep(early))["attempted"] == 0  # stores the event
    waits = (
        f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = {queries.CLAIM_LOCK}"
    )
    async with database.transaction(queries.CLAIMING) as connection:
        claims = asyncio.create_task(queries.claimed_deliveries(database, {sub_id: 16}, early + 2 * HOUR, 60))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await connection.raw.fetchval(waits):  # noqa: ASYNC110 - polls a database
                await asyncio.sleep(0.01)
        assert not claims.done()
    assert len((await claims).rows) == 1


@pytest.mark.parametrize("point", ["delivery-claimed", "delivery-sent"])
async def test_an_advance_goes_on_after_a_kill_and_attempts_the_rest_once(
    client: Client,
    tickets: Producer,
    database: Database,
    others: list[Process],
    receivers: dict[str, Receiver],
    point: str,
) -> None:
    """What had been sent and not recorded goes once more, with the same id and number."""
    sandbox = SandboxClient(client)
    await make_sandbox(database, client.company_id)
    await client.create(who=sandbox.caller)
    ids = [await tickets.ticket_created(client.company_id, occurred_at=now()) for _ in range(MANY)]
    assert (await sandbox.ask(clock_pb.SettleRequest())).is_settled
    due_at = (await sandbox.ask(clock_pb.NextDueRequest())).due_at.ToDatetime(datetime.UTC)
    (process, _) = others
    process.start(MAKEREADY_KILL_AT=point)
    await process.serving()
    await sandbox.set_clock(due_at - now())
    async with grpc.aio.insecure_channel(process.target) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await SandboxClient(Client(client.service, channel, client.company_id)).do_due()
    await process.killed()
    async with database.connection() as connection:  # as they do by themselves, 15 s later
        await connection.raw.execute("UPDATE delivery SET leased_until = now() WHERE leased_until > now()")
    await sandbox.do_due()
    assert not (await sandbox.ask(clock_pb.NextDueRequest())).HasField("due_at")
    sent = Counter(json.loads(request.body)["event_id"] for request in receivers["receiver.test"].requests)
    assert set(sent) == set(ids) and max(sent.values()) <= (2 if point == "delivery-sent" else 1)
    assert {request.headers["service-attempt"] for request in receivers["receiver.test"].requests} == {"1"}
    async with database.connection() as connection:
        rows = await connection.raw.fetch("SELECT state, attempts, rung FROM delivery")
    assert [tuple(row) for row in rows] == [("succeeded", 1, 1)] * MANY
