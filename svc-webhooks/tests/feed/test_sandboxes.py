"""Replays and the feed of a sandbox are by its own clock."""

from __future__ import annotations

import asyncio
import datetime
import json
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.common.v1.company_clock_pb2 import SettleRequest
from makeready.webhooks.v1 import webhooks_pb2 as pb
from testkit.patience import PATIENCE_SECONDS

from ..dispatcher import now
from ..harness import Client, Producer
from ..receivers import Receiver
from ..sandboxes import DAY, SandboxClient, make_sandbox


@pytest.fixture
async def sandbox(client: Client, database: Database) -> SandboxClient:
    await make_sandbox(database, client.company_id)
    return SandboxClient(client)


def parsed(printed: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(printed)


async def test_a_replay_is_about_a_period_of_the_sandboxs_clock(
    sandbox: SandboxClient, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    client, events = sandbox.client, []
    sub_id = (await client.create(who=sandbox.caller))[1]["entity_id"]
    for day in (10, 20, 30):
        await sandbox.set_clock(day * DAY)
        events.append(await tickets.ticket_created(client.company_id, occurred_at=now() + day * DAY))
        await sandbox.ask(SettleRequest())

    async def ask(request: Any) -> dict[str, Any]:
        response = await client.call(request, sandbox.caller)
        document: dict[str, Any] = json.loads(
            response.reply.body if hasattr(response, "reply") else response.document.json
        )
        return document

    period = {"since": (now() + 15 * DAY).isoformat(), "until": (now() + 25 * DAY).isoformat()}
    begun = await ask(pb.CreateReplayRequest(idempotency_key="k", sub_id=sub_id, body=json.dumps(period).encode()))
    assert begun["matched"] == 1 and parsed(begun["created_at"]) > now() + 29 * DAY
    async with asyncio.timeout(PATIENCE_SECONDS):
        while begun["status"] != "finished":
            await asyncio.sleep(0.1)
            begun = await ask(pb.GetReplayRequest(sub_id=sub_id, replay_id=begun["entity_id"]))
    assert (begun["succeeded"], begun["failed"]) == (1, 0) and parsed(begun["finished_at"]) > now() + 29 * DAY
    again = [request for request in receivers["receiver.test"].requests if "service-replay" in request.headers]
    assert [json.loads(request.body)["event_id"] for request in again] == [events[1]]
    body = json.dumps({"since": (now() + 40 * DAY).isoformat()}).encode()
    with pytest.raises(Refusal, match="before now"):
        await client.call(pb.CreateReplayRequest(idempotency_key="l", sub_id=sub_id, body=body), sandbox.caller)


async def test_the_feed_since_an_instant_of_the_sandboxs_clock(sandbox: SandboxClient, tickets: Producer) -> None:
    client, events = sandbox.client, {}
    for day in (100, 110, 120):
        await sandbox.set_clock(day * DAY)
        events[day] = await tickets.ticket_created(client.company_id, occurred_at=now() + day * DAY)
        await sandbox.ask(SettleRequest())
    for since, days in ((0, [100, 110, 120]), (105, [110, 120]), (115, [120]), (125, [])):
        request = pb.FeedServiceListEventsRequest(limit=10)
        request.since.FromDatetime(now() + since * DAY)
        documents = (await client.call(request, sandbox.caller)).feed.documents
        assert [json.loads(document)["event_id"] for document in documents] == [events[day] for day in days]
