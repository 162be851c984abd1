"""Dispatchers that follow the clock: several at once, one stopped in the middle, one away for a day."""

import asyncio
import datetime
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from chassis.db.database import Database
from svc_webhooks.dispatch import sweep
from svc_webhooks.dispatch.queries.hosts import answers_stored
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.dispatch.sender import BEGIN_SECONDS_MAX
from svc_webhooks.dispatch.sweep import Sweep
from testkit.patience import PATIENCE_SECONDS
from testkit.processes import free_port

from ..dispatcher import VAULT, dispatcher, happened, now, subscribed
from ..harness import HOUR, Client, Harness, Process, Producer, until
from ..receivers import Authority, Received, Receiver, answering

URL = "https://receiver.test/hook"


@pytest.fixture
async def beside(
    service: Harness, database: Database, receivers: dict[str, Receiver], authority: Authority
) -> AsyncIterator[Scheduler]:
    """Another dispatcher, in the test's own process. The receivers have answered before, so they get many at once."""
    hosts = {host: ("127.0.0.1", receiver.port) for host, receiver in receivers.items()}
    async with database.connection() as connection:
        await answers_stored(connection, [*hosts, *(f"{address}:{port}" for address, port in hosts.values())])
    async with dispatcher(database, authority.file, hosts) as scheduler:
        yield scheduler


async def restart(service: Harness, **more: str) -> None:
    await asyncio.to_thread(service.webhooks.stop)
    service.webhooks.start(**more)
    await service.webhooks.serving()


async def test_a_dispatcher_that_was_stopped_after_its_claim_does_not_send_what_another_may_have_sent(
    client: Client,
    service: Harness,
    beside: Scheduler,
    database: Database,
    receivers: dict[str, Receiver],
    mended: None,
    tmp_path: Path,
) -> None:
    strike = tmp_path / "strike"
    await restart(service, MAKEREADY_STRIKE_FILE=str(strike))
    (sub_id,) = await subscribed(database, client.company_id, [URL])
    await happened(database, client.company_id, 1)
    strike.write_text("delivery-claimed hold")
    sweeping = asyncio.create_task(client.sweep())
    process = psutil.Process(service.webhooks.pid)
    await until(lambda: process.status() == psutil.STATUS_STOPPED)
    try:
        async with database.connection() as connection:  # the claim runs out
            await connection.raw.execute("UPDATE delivery SET leased_until = now() - interval '1 second'")
        assert (await Sweep(beside.database, beside.attempts, now()).run()).succeeded == 1
        await asyncio.sleep(BEGIN_SECONDS_MAX + 0.1)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert (await sweeping)["attempted"] == 0
    assert len(receivers["receiver.test"].requests) == 1
    (delivery,) = await client.deliveries(sub_id)
    assert [(attempt.number, attempt.error) for attempt in delivery.attempts] == [(1, "")]
    assert "claim_too_old" in service.webhooks.log.read_text()


async def test_a_dispatcher_that_was_stopped_after_its_claim_and_was_alone_delivers_later(
    client: Client,
    beside: Scheduler,
    database: Database,
    receivers: dict[str, Receiver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For example after the machine slept: the same sweep claims unsent deliveries again."""
    monkeypatch.setattr("svc_webhooks.dispatch.sender.BEGIN_SECONDS_MAX", -1.0)
    monkeypatch.setattr("svc_webhooks.dispatch.attempts.CLAIM_SECONDS", 1)
    await subscribed(database, client.company_id, [URL])
    await happened(database, client.company_id, 3)
    sweeping = asyncio.create_task(beside.sweep(now()))
    await asyncio.sleep(0.5)
    assert receivers["receiver.test"].requests == []
    monkeypatch.setattr("svc_webhooks.dispatch.attempts.CLAIM_SECONDS", 60)  # no attempt outlasts it
    monkeypatch.setattr("svc_webhooks.dispatch.sender.BEGIN_SECONDS_MAX", 60.0)
    _, counts = await sweeping
    assert (counts.attempted, counts.succeeded) == (3, 3)


@pytest.mark.slow
async def test_replicas_in_their_slots_make_each_attempt_once(
    client: Client, tickets: Producer, service: Harness, receivers: dict[str, Receiver], mended: None
) -> None:
    """Three dispatchers with a slot every second; each delivery fails once and is due again two slots later."""
    receiver = receivers["receiver.test"]
    seen: set[bytes] = set()

    async def once_broken(request: Received, writer: asyncio.StreamWriter) -> None:
        key = request.request_line.encode() + request.body
        status = 200 if key in seen else 500
        seen.add(key)
        await answering(status)(request, writer)

    receiver.answer = once_broken
    slots = {"WEBHOOKS_SWEEP_SECONDS": "1", "WEBHOOKS_RETRY_LADDER_HOURS": "0.0005,0.001"}
    await restart(service, **slots)
    others = []
    for number in (2, 3):
        target = f"127.0.0.1:{free_port()}"
        settings = {"MAKEREADY_GRPC_LISTEN": target, "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}"}
        log = service.webhooks.log.with_name(f"svc-webhooks-slots-{number}.log")
        others.append(Process(service.webhooks.command, service.webhooks.environment | settings | slots, target, log))
    try:
        for other in others:
            other.start()
        for other in others:
            await other.serving()
        for number in range(3):
            await client.create({"destination_url": f"{URL}/{number}", "events": ["ticket.created"]})
        for number in range(25):
            await tickets.ticket_created(client.company_id, number)
        await until(lambda: len(receiver.requests) >= 2 * 75, 60)
        await asyncio.sleep(2.5)  # slots without due deliveries
    finally:
        for other in others:
            await asyncio.to_thread(other.stop)
    assert len(receiver.requests) == 2 * 75
    attempts = Counter(
        (request.request_line, request.body, request.headers["service-attempt"]) for request in receiver.requests
    )
    assert set(attempts.values()) == {1}


async def test_after_a_day_without_sweeps_there_is_one_attempt_at_once_and_the_next_rung_keeps_its_distance(
    client: Client,
    tickets: Producer,
    service: Harness,
    database: Database,
    receivers: dict[str, Receiver],
    mended: None,
) -> None:
    """As if it had been away for 26 hours, in which all rungs but the last would have passed."""
    receiver = receivers["receiver.test"]
    receiver.answer = answering(500)
    sub_id = (await client.create())[1]["entity_id"]
    await tickets.ticket_created(client.company_id)
    await client.sweep()
    await asyncio.to_thread(service.webhooks.stop)
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE delivery SET due_at = due_at - interval '26 hours'")
    started = now()
    service.webhooks.start(WEBHOOKS_SWEEP_SECONDS="1")
    await service.webhooks.serving()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len((await client.deliveries(sub_id))[0].attempts) < 2:  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.1)
    await asyncio.sleep(2.5)  # some more slots
    assert len(receiver.requests) == 2
    (delivery,) = await client.deliveries(sub_id)
    second = delivery.attempts[1]
    assert (second.number, second.error) == (2, "status")
    due_at = delivery.due_at.ToDatetime(datetime.UTC)
    assert due_at.microsecond == 0  # a slot plus the distance of the rungs
    assert started - datetime.timedelta(seconds=2) <= due_at - HOUR <= second.started_at.ToDatetime(datetime.UTC)


def rotation(sub_id: int) -> tuple[str, list[object]]:
    sealed = VAULT.seal(sub_id, "whsec_rotated")
    return "UPDATE subscription SET secret_key_id = $1, secret_sealed = $2", [sealed.key_id, sealed.sealed]


async def test_what_is_claimed_after_a_rotation_is_signed_with_the_new_secret(
    client: Client, beside: Scheduler, database: Database, receivers: dict[str, Receiver]
) -> None:
    receiver = receivers["receiver.test"]
    go_on = asyncio.Event()

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await answering(200)(request, writer)

    receiver.answer = answer
    (sub_id,) = await subscribed(database, client.company_id, [URL], "whsec_before")
    await happened(database, client.company_id, 3 * sweep.OF_A_SUBSCRIPTION_MAX)
    sweeping = asyncio.create_task(Sweep(beside.database, beside.attempts, now()).run())
    await until(lambda: len(receiver.requests) == sweep.OF_A_SUBSCRIPTION_MAX)
    statement, values = rotation(sub_id)
    async with database.connection() as connection:
        await connection.raw.execute(statement, *values)
    go_on.set()
    assert (await sweeping).succeeded == 3 * sweep.OF_A_SUBSCRIPTION_MAX
    before, after = receiver.requests[: sweep.OF_A_SUBSCRIPTION_MAX], receiver.requests[sweep.OF_A_SUBSCRIPTION_MAX :]
    assert all(request.is_signed_with("whsec_before") for request in before)
    assert all(request.is_signed_with("whsec_rotated") for request in after)
    assert not any(
        request.standard_headers for request in receiver.requests
    )  # no secret of the form that libraries decode


@pytest.mark.parametrize(
    "cut",
    ["UPDATE subscription SET health = 'paused', paused_at = now(), failures_in_a_row = 0", "DELETE FROM subscription"],
    ids=["paused", "deleted"],
)
async def test_after_a_pause_or_a_delete_nothing_more_is_sent(
    client: Client, beside: Scheduler, database: Database, receivers: dict[str, Receiver], cut: str
) -> None:
    receiver = receivers["receiver.test"]
    go_on = asyncio.Event()

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await answering(200)(request, writer)

    receiver.answer = answer
    await subscribed(database, client.company_id, [URL])
    await happened(database, client.company_id, 3 * sweep.OF_A_SUBSCRIPTION_MAX)
    sweeping = asyncio.create_task(Sweep(beside.database, beside.attempts, now()).run())
    await until(lambda: len(receiver.requests) == sweep.OF_A_SUBSCRIPTION_MAX)
    async with database.connection() as connection:
        await connection.raw.execute(cut)
    go_on.set()
    await sweeping
    assert len(receiver.requests) == sweep.OF_A_SUBSCRIPTION_MAX
