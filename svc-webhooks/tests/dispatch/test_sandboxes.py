"""Deliveries of a sandbox are attempted by its own clock, each once; those of live companies are not touched."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections import Counter
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from chassis.schedule.instants import slot_of
from makeready.common.v1 import company_clock_pb2 as pb
from makeready.webhooks.v1 import webhooks_pb2
from svc_webhooks.http_client.client import HttpClient

from ..dispatcher import happened, now, subscribed
from ..harness import HOUR, Client, Producer, operator
from ..receivers import Authority, Receiver, answering, hanging
from ..sandboxes import DAY, SandboxClient, advancing, make_sandbox

LADDER_HOURS = (0, 1, 2, 4, 8, 24)


async def attempts_of(database: Database, sub_id: int) -> list[Any]:
    async with database.connection() as connection:
        rows = "SELECT * FROM attempt WHERE subscription_id = $1 ORDER BY event_id, number"
        return list(await connection.raw.fetch(rows, sub_id))


async def deliveries_of(database: Database, sub_id: int) -> list[Any]:
    async with database.connection() as connection:
        return list(await connection.raw.fetch("SELECT * FROM delivery WHERE subscription_id = $1", sub_id))


async def test_an_advance_goes_through_the_ladder_by_the_sandboxs_clock(
    sandbox_id: int, sandboxes_database: Database, receivers: dict[str, Receiver], authority: Authority
) -> None:
    receivers["receiver.test"].answer = answering(500)
    live = sandbox_id + 500_000
    async with advancing(sandboxes_database, sandbox_id, authority, receivers) as advance:
        began = await advance.began(400)
        ids = [
            await subscribed(sandboxes_database, number, ["https://receiver.test/"]) for number in (live, sandbox_id)
        ]
        await happened(sandboxes_database, live)
        await happened(sandboxes_database, sandbox_id, occurred_at=began)
        first = slot_of(began, 3600) + HOUR
        instants, done = await advance.until(began + 3 * DAY)
        assert instants == [first + hours * HOUR for hours in LADDER_HOURS]
        assert done == {"delivery.failed": 5, "delivery.parked": 1}
        assert await advance.sandboxes.next_due(sandbox_id) is None
    attempts = await attempts_of(sandboxes_database, *ids[1])
    assert [slot_of(attempt["started_at"], 3600) for attempt in attempts] == instants
    assert [attempt["due_at"] for attempt in attempts] == [*instants[1:], None]
    (delivery,) = await deliveries_of(sandboxes_database, *ids[1])
    assert delivery["state"] == "parked" and delivery["settled_at"] >= attempts[-1]["started_at"]
    signed = [
        int(request.headers["service-signature"][2:].split(",")[0]) for request in receivers["receiver.test"].requests
    ]
    assert [int((row["started_at"] - row["clock_offset"]).timestamp()) for row in attempts] == signed
    assert abs(signed[0] - now().timestamp()) < 3600
    async with sandboxes_database.connection() as connection:
        failing = await connection.raw.fetchval("SELECT failing_since FROM subscription WHERE id = $1", *ids[1])
    assert first <= failing < first + HOUR
    (untouched,) = await deliveries_of(sandboxes_database, *ids[0])
    assert untouched["attempts"] == 0 and not await attempts_of(sandboxes_database, *ids[0])


async def test_neither_sweep_takes_the_others_deliveries(
    client: Client, database: Database, receivers: dict[str, Receiver]
) -> None:
    live = client.of(client.company_id + 500_000)
    await make_sandbox(database, client.company_id)
    await client.create(who=SandboxClient(client).caller)
    await live.create()
    for company_id in (client.company_id, live.company_id):
        await happened(database, company_id)
    # By the live companies' clock the sandbox's are not due; by its own, those of the slot are.
    async with database.connection() as connection:
        later = "UPDATE delivery SET due_at = now() + interval '2 days' WHERE subscription_id IN"
        await connection.raw.execute(f"{later} (SELECT id FROM subscription WHERE company_id = $1)", client.company_id)
    assert (await client.sweep(now() + 10 * DAY))["attempted"] == 1
    sandbox = SandboxClient(client)
    assert await sandbox.do_due() == {}
    await sandbox.set_clock(4 * DAY)
    await sandbox.do_due()  # unless the service's own sweep of the sandbox was first
    assert await sandbox.do_due() == {}
    assert len(receivers["receiver.test"].requests) == 2


async def test_the_gateway_moves_a_clock_and_does_what_is_due(
    client: Client, database: Database, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    await make_sandbox(database, client.company_id)
    sandbox = SandboxClient(client)
    await sandbox.set_clock(100 * DAY)
    began = now() + 100 * DAY
    (_, created, _) = await client.create(who=sandbox.caller)
    assert created["created_at"] >= began.isoformat()[:26]
    assert not (await sandbox.ask(pb.NextDueRequest())).HasField("due_at")
    occurred_at = now() + 100 * DAY
    event_id = await tickets.ticket_created(client.company_id, occurred_at=occurred_at)
    assert (await sandbox.ask(pb.SettleRequest())).is_settled
    due = await sandbox.ask(pb.NextDueRequest())
    due_at = due.due_at.ToDatetime(datetime.UTC)
    assert due.what == "delivery.due" and due_at > occurred_at
    assert await sandbox.do_due() == {}
    await sandbox.set_clock(due_at - now())
    await sandbox.do_due()
    (delivery,) = await client.deliveries(created["entity_id"])
    stored_at = delivery.occurred_at.ToDatetime(datetime.UTC)
    assert delivery.event_id == event_id and stored_at == occurred_at
    midnight = occurred_at.replace(hour=0, minute=0, second=0, microsecond=0)
    assert delivery.expires_at.ToDatetime(datetime.UTC) - midnight in (31 * DAY, 32 * DAY)
    (attempt,) = delivery.attempts
    assert attempt.started_at.ToDatetime(datetime.UTC) >= due_at
    assert attempt.signed_at.ToDatetime(datetime.UTC) <= now()
    assert json.loads(receivers["receiver.test"].requests[0].body)["event_id"] == event_id
    for request in (pb.SetClockRequest(), pb.DoDueRequest(), pb.NextDueRequest()):
        live = client.of(client.company_id + 500_000)
        async with database.connection() as connection:
            await connection.raw.execute(
                "INSERT INTO company (id, version) VALUES ($1, 1) ON CONFLICT DO NOTHING", live.company_id
            )
        with pytest.raises(Refusal) as refusal:
            await SandboxClient(live).ask(request)
        assert refusal.value.status == 404


async def test_paused_and_inactive_ones_have_nothing_due(
    sandbox_id: int, sandboxes_database: Database, authority: Authority, receivers: dict[str, Receiver]
) -> None:
    async with advancing(sandboxes_database, sandbox_id, authority, receivers) as advance:
        await subscribed(sandboxes_database, sandbox_id, ["https://receiver.test/", "https://second.test/"])
        await happened(sandboxes_database, sandbox_id)
        assert await advance.sandboxes.next_due(sandbox_id) is not None
        async with sandboxes_database.connection() as connection:
            paused = "health = 'paused', paused_at = now()"
            await connection.raw.execute(f"UPDATE subscription SET {paused} WHERE company_id = $1", sandbox_id)
            assert await advance.sandboxes.next_due(sandbox_id) is None
            resumed = "health = 'healthy', paused_at = NULL"
            await connection.raw.execute(f"UPDATE subscription SET {resumed} WHERE company_id = $1", sandbox_id)
            await connection.raw.execute("UPDATE company SET active = false WHERE id = $1", sandbox_id)
        assert await advance.sandboxes.next_due(sandbox_id) is None
        with pytest.raises(Refusal):
            await advance.sandboxes.do_due(sandbox_id)
    assert not receivers["receiver.test"].requests


async def test_a_receiver_that_hung_once_gets_a_second_for_the_rest_of_the_advance(
    sandbox_id: int,
    sandboxes_database: Database,
    authority: Authority,
    receivers: dict[str, Receiver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receivers["receiver.test"].answer = hanging
    limits = []
    post = HttpClient.post

    async def recorded(self: HttpClient, url: str, *arguments: Any, seconds_max: float, **more: Any) -> Any:
        limits.append((url, seconds_max))
        return await post(self, url, *arguments, seconds_max=seconds_max, **more)

    monkeypatch.setattr(HttpClient, "post", recorded)
    monkeypatch.setattr("svc_webhooks.dispatch.sweep.HUNG_SECONDS", 0.5)
    async with advancing(sandboxes_database, sandbox_id, authority, receivers, deadline_seconds=1.0) as advance:
        urls = ["https://receiver.test/", "https://second.test/"]
        await subscribed(sandboxes_database, sandbox_id, urls)
        began = await advance.began()
        await happened(sandboxes_database, sandbox_id, occurred_at=began)
        _, done = await advance.until(began + 8 * HOUR)
        assert done == {"delivery.succeeded": 1, "delivery.failed": 4}
        usual = float("inf")
        assert sorted(limits[:2]) == [(urls[0], usual), (urls[1], usual)]
        assert limits[2:] == [(urls[0], 0.5)] * 3
        monkeypatch.setattr("svc_webhooks.dispatch.sandboxes.HUNG_FOR_SECONDS", 0.0)
        await advance.until(began + 12 * HOUR)
        assert limits[5:] == [(urls[0], usual)]


async def test_two_processes_do_what_is_due_at_once_and_attempt_each_delivery_once(
    sandbox_id: int, sandboxes_database: Database, authority: Authority, receivers: dict[str, Receiver]
) -> None:
    urls = ["https://receiver.test/", "https://second.test/"]
    async with (
        advancing(sandboxes_database, sandbox_id, authority, receivers) as first,
        advancing(sandboxes_database, sandbox_id, authority, receivers) as second,
    ):
        await subscribed(sandboxes_database, sandbox_id, urls)
        event_ids = await happened(sandboxes_database, sandbox_id, 100, occurred_at=await first.began())
        due = await first.sandboxes.next_due(sandbox_id)
        assert due is not None
        await first.to(due.at)
        counts = await asyncio.gather(*(each.sandboxes.do_due(sandbox_id) for each in (first, second)))
        assert sum(count["delivery.succeeded"] for count in counts) == 2 * len(event_ids)
        assert await first.sandboxes.next_due(sandbox_id) is None
    for host in ("receiver.test", "second.test"):
        bodies = Counter(request.body for request in receivers[host].requests)
        assert set(bodies.values()) == {1} and len(bodies) == len(event_ids)


async def test_what_a_full_receiver_did_not_get_waits_for_the_next_slot_without_a_rung(
    sandbox_id: int,
    sandboxes_database: Database,
    authority: Authority,
    receivers: dict[str, Receiver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("svc_webhooks.dispatch.hosts.NEW_IN_A_MINUTE", 10)
    receivers["unwilling.test"].answer = answering(500)
    async with advancing(sandboxes_database, sandbox_id, authority, receivers) as advance:
        (sub_id,) = await subscribed(sandboxes_database, sandbox_id, ["https://unwilling.test/"])
        await happened(sandboxes_database, sandbox_id, 30, occurred_at=await advance.began())
        due = await advance.sandboxes.next_due(sandbox_id)
        assert due is not None
        await advance.to(due.at)
        done = await advance.sandboxes.do_due(sandbox_id)
        assert done["delivery.failed"] == len(receivers["unwilling.test"].requests) < 30
        following = await advance.sandboxes.next_due(sandbox_id)
        assert following is not None and following.at == due.at + HOUR
    rungs = Counter(row["rung"] for row in await deliveries_of(sandboxes_database, sub_id))
    assert rungs == {0: 30 - done["delivery.failed"], 1: done["delivery.failed"]}


async def test_sandboxes_are_swept_at_the_slots_of_their_own_clocks(
    sandbox_id: int, sandboxes_database: Database, authority: Authority, receivers: dict[str, Receiver]
) -> None:
    async with advancing(sandboxes_database, sandbox_id, authority, receivers) as advance:
        (sub_id,) = await subscribed(sandboxes_database, sandbox_id, ["https://receiver.test/"])
        began = await advance.began(30)
        await happened(sandboxes_database, sandbox_id, occurred_at=began)
        sandbox = await advance.clocks.sandbox(sandbox_id)
        await advance.sandboxes.sweep([sandbox])
        assert not await attempts_of(sandboxes_database, sub_id)
        await advance.to(slot_of(began, 3600) + HOUR)
        await advance.sandboxes.sweep([await advance.clocks.sandbox(sandbox_id)])
        (attempt,) = await attempts_of(sandboxes_database, sub_id)
        assert (attempt["state"], attempt["cause"]) == ("succeeded", "sweep")


async def test_retries_tests_and_pauses_have_the_sandboxs_instants(
    client: Client, database: Database, receivers: dict[str, Receiver]
) -> None:
    await make_sandbox(database, client.company_id)
    sandbox = SandboxClient(client)
    await sandbox.set_clock(50 * DAY)
    began = now() + 50 * DAY
    sub_id = (await client.create(who=sandbox.caller))[1]["entity_id"]
    test = webhooks_pb2.SendTestRequest(sub_id=sub_id, idempotency_key="test")
    (attempt,) = (await client.call(test, operator())).delivery.attempts
    assert began <= attempt.started_at.ToDatetime(datetime.UTC) <= now() + 50 * DAY
    pause = webhooks_pb2.PauseSubscriptionRequest(sub_id=sub_id, idempotency_key="pause", reason="a sandbox's clock")
    await client.call(pause, operator())
    details = await client.call(webhooks_pb2.GetSubscriptionRequest(sub_id=sub_id), operator())
    for name in ("created_at", "paused_at", "secret_since"):
        assert began <= getattr(details.subscription, name).ToDatetime(datetime.UTC) <= now() + 50 * DAY, name
    assert details.next_sweep_at.ToDatetime(datetime.UTC) > began


async def test_a_sandbox_whose_clock_is_moving_is_left_to_its_advance(
    sandbox_id: int, sandboxes_database: Database, authority: Authority, receivers: dict[str, Receiver]
) -> None:
    async with advancing(sandboxes_database, sandbox_id, authority, receivers) as advance:

        async def is_due() -> bool:
            return sandbox_id in [sandbox.sandbox_id for sandbox in await advance.sandboxes.due()]

        began = await advance.began()
        assert await is_due()  # at a process's start
        await advance.sandboxes.sweep([await advance.clocks.sandbox(sandbox_id)])
        assert not await is_due()
        for hours in (1, 2):
            await advance.to(began + hours * HOUR)
            assert not await is_due()
        assert await is_due()
