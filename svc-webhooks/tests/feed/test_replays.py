"""Replays send what happened once more; tests and deliveries show an integration what its receiver answers."""

import asyncio
import contextlib
import datetime
import json
import uuid
from collections import Counter
from typing import Any

import grpc
import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.webhooks.v1 import webhooks_pb2 as pb

from ..harness import AGAIN_SECONDS, HOUR, Client, Harness, Producer, operator
from ..receivers import Receiver, answering

BEFORE = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class Integration:
    """The RPCs of one company's key."""

    def __init__(self, client: Client, channel: grpc.aio.Channel) -> None:
        self.client = client

    async def replay(self, sub_id: int, key: str | None = None, **body: Any) -> tuple[int, dict[str, Any], bool]:
        request = pb.CreateReplayRequest(
            idempotency_key=key or str(uuid.uuid4()),
            sub_id=sub_id,
            body=json.dumps({"since": BEFORE.isoformat(), **body}).encode(),
        )
        reply = (await self.client.call(request)).reply
        return reply.status, json.loads(reply.body), reply.replayed

    async def progress(self, sub_id: int, replay_id: int) -> dict[str, Any]:
        request = pb.GetReplayRequest(sub_id=sub_id, replay_id=replay_id)
        document: dict[str, Any] = json.loads((await self.client.call(request)).document.json)
        return document

    async def finished(self, sub_id: int, replay_id: int, seconds: float = 30) -> dict[str, Any]:
        async with asyncio.timeout(seconds):
            while (progress := await self.progress(sub_id, replay_id))["status"] != "finished":  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        return progress

    async def test(self, sub_id: int, key: str | None = None, body: bytes = b"{}") -> tuple[dict[str, Any], bool]:
        request = pb.TestSubscriptionRequest(idempotency_key=key or str(uuid.uuid4()), sub_id=sub_id, body=body)
        reply = (await self.client.call(request)).reply
        assert reply.status == 200
        return json.loads(reply.body), reply.replayed

    async def deliveries(self, sub_id: int, limit: int = 2, **by: Any) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = []
        position = b""
        while True:
            request = pb.FeedServiceListDeliveriesRequest(sub_id=sub_id, limit=limit, position=position, **by)
            page = (await self.client.call(request)).page
            listed += json.loads(page.data)
            position = page.next_position
            if not position:
                return listed

    async def delivery(self, sub_id: int, event_id: str) -> dict[str, Any]:
        request = pb.FeedServiceGetDeliveryRequest(sub_id=sub_id, event_id=event_id)
        document: dict[str, Any] = json.loads((await self.client.call(request)).document.json)
        return document

    async def stored(self, events: int) -> None:
        """Waits until the feed has so many events."""
        request = pb.FeedServiceListEventsRequest(limit=200)
        async with asyncio.timeout(AGAIN_SECONDS):
            while len((await self.client.call(request)).positions) < events:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@pytest.fixture
def integration(client: Client, channel: grpc.aio.Channel) -> Integration:
    return Integration(client, channel)


async def subscribed(client: Client, *events: str, path: str = "/hook") -> int:
    return (await subscribed_with_secret(client, *events, path=path))[0]


async def subscribed_with_secret(client: Client, *events: str, path: str = "/hook") -> tuple[int, str]:
    body = {"destination_url": f"https://receiver.test{path}", "events": list(events or ("ticket.created",))}
    created = (await client.create(body))[1]
    return created["entity_id"], created["secret"]


def heard(receiver: Receiver) -> Counter[str]:
    return Counter(json.loads(request.body)["event_id"] for request in receiver.requests)


async def test_a_replay_sends_everything_once_more_and_nothing_else(
    integration: Integration, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    client, receiver = integration.client, receivers["receiver.test"]
    company_id = client.company_id
    event_ids = [await tickets.ticket_created(company_id, number + 1) for number in range(3)]
    await integration.stored(3)
    sub_id, secret = await subscribed_with_secret(client)  # later than these
    event_ids += [await tickets.ticket_created(company_id, number + 4) for number in range(3)]
    await tickets.ticket_created(company_id, 1, event="ticket.stale")
    await integration.stored(7)
    await client.sweep()
    assert heard(receiver) == Counter(event_ids[3:])
    event_ids.append(
        await tickets.ticket_created(company_id, 7)
    )  # waits for its slot, which a replay does not wait for
    await integration.stored(8)
    receiver.requests.clear()

    status, replay, _ = await integration.replay(sub_id, key := str(uuid.uuid4()))
    assert status == 202
    assert {name: replay[name] for name in ("entity_type", "subscription_id", "events", "state", "matched")} == {
        "entity_type": "webhook_replay",
        "subscription_id": sub_id,
        "events": ["ticket.created"],
        "state": "all",
        "matched": 7,
    }
    done = await integration.finished(sub_id, replay["entity_id"])
    assert heard(receiver) == Counter(event_ids)
    headers = {request.headers["service-replay"] for request in receiver.requests}
    assert headers == {str(replay["entity_id"])}
    assert all(request.is_standard(secret) for request in receiver.requests)
    assert (done["waiting"], done["succeeded"], done["failed"]) == (0, 7, 0)
    assert done["finished_at"] >= done["created_at"]
    assert (await integration.replay(sub_id, key))[::2] == (202, True)
    await client.sweep(datetime.datetime.now(datetime.UTC) + 48 * HOUR)
    assert heard(receiver) == Counter(event_ids)
    assert {delivery["state"] for delivery in await integration.deliveries(sub_id)} == {"succeeded"}


async def test_each_delivery_has_an_id_of_its_own_that_stays(
    integration: Integration, tickets: Producer, receivers: dict[str, Receiver]
) -> None:
    client = integration.client
    sub_ids = [await subscribed(client, path="/first"), await subscribed(client, path="/second")]
    for number in range(3):
        await tickets.ticket_created(client.company_id, number + 1)
    await integration.stored(3)
    receivers["receiver.test"].answer = answering(503)
    before = [delivery for sub_id in sub_ids for delivery in await integration.deliveries(sub_id)]
    await client.sweep()
    after = [delivery for sub_id in sub_ids for delivery in await integration.deliveries(sub_id)]
    assert all(delivery["attempts"] for delivery in after)
    ids = [delivery["delivery_id"] for delivery in after]
    assert ids == [delivery["delivery_id"] for delivery in before] and len(set(ids)) == 6
    assert all(type(delivery_id) is str and 0 < len(delivery_id) <= 64 for delivery_id in ids)
    # What an administrator's command line calls the delivery.
    assert ids == [f"{delivery['event_id']}:{delivery['entity_id']}" for delivery in after]
    assert [delivery["entity_id"] for delivery in after] == [sub_id for sub_id in sub_ids for _ in range(3)]
    for delivery in after:
        assert (await integration.delivery(delivery["entity_id"], delivery["event_id"]))["delivery_id"] == delivery[
            "delivery_id"
        ]
    first, _ = await integration.test(sub_ids[0])
    assert (await integration.delivery(sub_ids[0], first["event_id"]))["delivery_id"] == first["delivery_id"]
    assert first["delivery_id"] not in ids


async def test_what_fails_again_is_parked_unless_its_ladder_goes_on(
    integration: Integration, tickets: Producer, receivers: dict[str, Receiver], database: Database
) -> None:
    client, receiver = integration.client, receivers["receiver.test"]
    sub_id = await subscribed(client)
    receiver.answer = answering(503, b"later")
    waits = await tickets.ticket_created(client.company_id, 1)
    await integration.stored(1)
    await client.sweep()  # failed once, and waits for its ladder
    before = await integration.delivery(sub_id, waits)
    arrived = await tickets.ticket_created(client.company_id, 2)
    await integration.stored(2)
    receiver.answer = answering(200)
    await client.sweep()
    receiver.answer = answering(503, b"still down")

    replay = (await integration.replay(sub_id, state="failed"))[1]
    assert replay["matched"] == 1
    done = await integration.finished(sub_id, replay["entity_id"])
    assert (done["succeeded"], done["failed"]) == (0, 1)
    after = await integration.delivery(sub_id, waits)
    assert (after["state"], after["next_attempt_at"]) == ("waiting", before["next_attempt_at"])
    assert [(attempt["cause"], attempt["status"], attempt["response_excerpt"]) for attempt in after["attempts"]] == [
        ("sweep", 503, "later"),
        ("replay", 503, "still down"),
    ]
    replay = (await integration.replay(sub_id))[1]
    await integration.finished(sub_id, replay["entity_id"])
    assert (await integration.delivery(sub_id, waits))["state"] == "waiting"
    assert (await integration.delivery(sub_id, arrived))["state"] == "parked"
    receiver.answer = answering(200)
    replay = (await integration.replay(sub_id, state="parked"))[1]
    assert replay["matched"] == 1
    await integration.finished(sub_id, replay["entity_id"])
    assert (await integration.delivery(sub_id, arrived))["state"] == "succeeded"


@pytest.mark.parametrize("state", ["all", "parked"])
async def test_a_replay_obeys_the_filter(
    integration: Integration, tickets: Producer, receivers: dict[str, Receiver], database: Database, state: str
) -> None:
    client, receiver = integration.client, receivers["receiver.test"]
    earlier = {
        number: await tickets.ticket_created(
            client.company_id, number, data=json.dumps({"property": {"id": number}}).encode()
        )
        for number in (1, 2)
    }
    await integration.stored(2)
    sub_id = await subscribed(client)
    later = {
        number: await tickets.ticket_created(
            client.company_id, number, data=json.dumps({"property": {"id": number}}).encode()
        )
        for number in (1, 2)
    }
    await integration.stored(4)
    async with database.connection() as connection:
        await connection.raw.execute(
            "UPDATE delivery SET state = 'parked', due_at = NULL, settled_at = now() WHERE subscription_id = $1", sub_id
        )
    await client.call(
        pb.SetFilterRequest(idempotency_key=str(uuid.uuid4()), sub_id=sub_id, body=b'{"property_ids":[2]}')
    )
    receiver.requests.clear()
    replay = (await integration.replay(sub_id, state=state))[1]
    done = await integration.finished(sub_id, replay["entity_id"])
    passing = [later[2]] if state == "parked" else [earlier[2], later[2]]
    assert heard(receiver) == Counter(passing)
    assert replay["matched"] == 2 * len(passing)
    assert (done["matched"], done["waiting"], done["succeeded"]) == (len(passing), 0, len(passing))
    assert (await integration.delivery(sub_id, later[1]))["state"] == "parked"


async def test_refused_replays(integration: Integration, tickets: Producer, channel: grpc.aio.Channel) -> None:
    client = integration.client
    sub_id = await subscribed(client)
    now = datetime.datetime.now(datetime.UTC).isoformat()
    for body, code in (
        ({"until": BEFORE.isoformat()}, "invalid_request"),
        ({"since": now, "until": now}, "invalid_request"),
        ({"events": []}, "events_empty"),
        ({"events": ["ticket.gone"]}, "events_unknown_key"),
        ({"events": ["vendor.hold"]}, "invalid_request"),
        ({"state": "succeeded"}, "invalid_request"),
    ):
        with pytest.raises(Refusal) as refused:
            await integration.replay(sub_id, **body)
        assert (refused.value.status, refused.value.code) == (422, code)
    with pytest.raises(Refusal) as refused:
        await integration.replay(sub_id, since="2026-01-01T00:00:00")
    assert refused.value.status == 400
    other = Integration(client.of(client.company_id + 300_000), channel)
    event_id = await tickets.ticket_created(client.company_id, 1)
    await integration.stored(1)
    for call in (
        other.replay(sub_id),
        other.progress(sub_id, 1),
        other.test(sub_id),
        other.deliveries(sub_id),
        other.delivery(sub_id, event_id),
        integration.progress(sub_id, 10**9),
        integration.delivery(sub_id, str(uuid.uuid4())),
        integration.delivery(sub_id, "x"),
    ):
        with pytest.raises(Refusal) as refused:
            await call
        assert (refused.value.status, refused.value.code) == (404, "not_found")
    await client.call(
        pb.PauseSubscriptionRequest(sub_id=sub_id, idempotency_key=str(uuid.uuid4())),
        operator(client.company_id),
    )
    with pytest.raises(Refusal, match="paused"):
        await integration.replay(sub_id)


async def test_one_replay_at_a_time_goes_on_after_a_kill(
    integration: Integration, tickets: Producer, receivers: dict[str, Receiver], service: Harness, mended: None
) -> None:
    client, receiver = integration.client, receivers["receiver.test"]
    sub_id = await subscribed(client)
    event_ids = [await tickets.ticket_created(client.company_id, number + 1) for number in range(5)]
    await integration.stored(5)
    await client.sweep()
    receiver.requests.clear()
    await asyncio.to_thread(service.webhooks.stop)
    service.webhooks.start(MAKEREADY_KILL_AT="replay-queued")
    await service.webhooks.serving()
    key = str(uuid.uuid4())
    with contextlib.suppress(grpc.aio.AioRpcError):  # it may die before it answers
        await integration.replay(sub_id, key)
    await service.webhooks.killed()
    service.webhooks.start()
    await service.webhooks.serving()
    replay = (await integration.replay(sub_id, key))[1]
    with pytest.raises(Refusal, match="under way"):
        await integration.replay(sub_id)
    done = await integration.finished(sub_id, replay["entity_id"], seconds=60)
    assert (done["matched"], done["succeeded"], done["failed"]) == (5, 5, 0)
    assert heard(receiver) == Counter(event_ids)


async def test_a_test_is_sent_once_for_each_key_and_shows_the_answer(
    integration: Integration, receivers: dict[str, Receiver]
) -> None:
    receiver = receivers["receiver.test"]
    sub_id = await subscribed(integration.client)
    receiver.answer = answering(418, b"teapot")
    key = str(uuid.uuid4())
    first, replayed = await integration.test(sub_id, key)
    assert not replayed
    assert (first["event"], first["state"]) == ("webhook.test", "failed")
    (attempt,) = first["attempts"]
    assert (attempt["cause"], attempt["status"], attempt["error"], attempt["response_excerpt"]) == (
        "test", 418, "status", "teapot",
    )  # fmt: skip
    assert await integration.test(sub_id, key) == (first, True)
    with pytest.raises(Refusal) as refused:
        await integration.replay(sub_id, key)
    assert refused.value.code == "idempotency_mismatch"
    assert len(receiver.requests) == 1
    assert json.loads(receiver.requests[0].body)["event"] == "webhook.test"
    with pytest.raises(Refusal) as refused:
        await integration.test(sub_id, body=b'{"a":1}')
    assert refused.value.status == 400
    for _ in range(9):
        await integration.test(sub_id)
    with pytest.raises(Refusal) as refused:
        await integration.test(sub_id)
    assert (refused.value.status, refused.value.code) == (429, "rate_limited")
    page = await integration.client.call(pb.FeedServiceListEventsRequest(limit=9))
    assert not page.feed.documents  # a test is none of the company's events
    failed = await integration.deliveries(sub_id, limit=4, state=pb.DELIVERY_STATE_FAILED)
    assert len(failed) == 10
    assert failed == sorted(failed, key=lambda delivery: delivery["event_id"])
    assert "response_excerpt" not in failed[0]["attempts"][0]
    assert await integration.deliveries(sub_id, state=pb.DELIVERY_STATE_WAITING) == []
    since = pb.FeedServiceListDeliveriesRequest().since
    since.FromDatetime(datetime.datetime.now(datetime.UTC) + HOUR)
    assert await integration.deliveries(sub_id, since=since) == []
