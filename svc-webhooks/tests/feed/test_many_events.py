"""Many events: positions 1 to n whatever is killed, and a replay of all of them to a receiver that was down.

The suite has small numbers; `make soak-events` says how many: 200,000 events under eight writers, 10,000 replayed.
"""

from __future__ import annotations

import asyncio
import datetime
import itertools
import json
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator

import grpc
import pytest

from chassis.auth.rpcs import method_on
from chassis.db.database import Database
from chassis.db.rows import InsertMany
from makeready.webhooks.v1 import webhooks_pb2 as pb
from testkit.processes import free_port

from ..harness import HOUR, Client, Harness, Process, Producer, caller
from ..producer import outbox as producer_outbox
from ..receivers import Receiver, answering
from .test_replays import Integration, heard, subscribed

pytestmark = pytest.mark.chaos

EVENTS = int(os.environ.get("MAKEREADY_FEED_EVENTS", "3000"))
REPLAYED = int(os.environ.get("MAKEREADY_REPLAYED_EVENTS", "300"))
WRITERS = 8 if "MAKEREADY_FEED_EVENTS" in os.environ else 3
KILLS_MIN = WRITERS
APART_SECONDS = (0.3, 1.0)
ROWS = 500
PATIENCE_SECONDS = 60 + EVENTS / 100

_INSERT = InsertMany(producer_outbox, ["event_id", "subject", "message"])


async def commit(tickets: Producer, company_id: int, numbers: range) -> list[str]:
    """Commits events in one transaction; returns their ids."""
    now = datetime.datetime.now(datetime.UTC)
    events = [
        tickets.outbox.public(
            "ticket.created",
            company_id=company_id,
            entity_id=number,
            occurred_at=now,
            data=b'{"entity_id":%d}' % number,
            request_id="many",
        )
        for number in numbers
    ]
    async with tickets.database.transaction() as connection:
        await _INSERT.run(connection, [event.row for event in events])
    return [str(event.event_id) for event in events]


def parts(many: int) -> list[range]:
    return [range(first, min(first + ROWS, many + 1)) for first in range(1, many + 1, ROWS)]


@pytest.fixture
async def writers(service: Harness, mended: None) -> AsyncIterator[list[Process]]:
    """Processes that store events, the usual one among them."""
    processes = [service.webhooks]
    for number in range(2, WRITERS + 1):
        target = f"127.0.0.1:{free_port()}"
        settings = {"MAKEREADY_GRPC_LISTEN": target, "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}"}
        log = service.webhooks.log.with_name(f"svc-webhooks-writer-{number}.log")
        processes.append(Process(service.webhooks.command, service.webhooks.environment | settings, target, log))
        processes[-1].start()
    for process in processes:
        await process.serving()
    yield processes
    for process in processes[1:]:
        await asyncio.to_thread(process.stop)


class Tail:
    """Follows a company's events with whichever process answers."""

    def __init__(self, client: Client, processes: list[Process]) -> None:
        self.client = client
        self.numbers: list[int] = []
        self.ids: list[str] = []
        self.faults = 0
        self._channels = itertools.cycle([grpc.aio.insecure_channel(process.target) for process in processes])

    async def run(self, many: int) -> None:
        """Until it has so many events."""
        position = b""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.numbers) < many:
            assert time.monotonic() < deadline, (len(self.numbers), self.numbers[-1:])
            request = pb.FeedServiceListEventsRequest(position=position, limit=200)
            list_events = method_on(next(self._channels), type(request))
            token = [("authorization", self.client.service.token(caller(self.client.company_id)))]
            try:
                page = await list_events(request, metadata=token, timeout=5)  # short: asked again
            except grpc.aio.AioRpcError as error:
                assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED), error
                self.faults += 1
                await asyncio.sleep(0.02)
                continue
            self.numbers += page.positions
            self.ids += [json.loads(body)["event_id"] for body in page.feed.documents]
            position = page.feed.position
            if not page.positions:
                await asyncio.sleep(0.05)


async def killing(processes: list[Process], chance: random.Random, kills: Counter[int], ends: asyncio.Event) -> None:
    """Kills one after another and starts it again, until the event is set. A cancellation would leave a kill behind
    that is under way in a thread."""
    while True:
        for number in chance.sample(range(len(processes)), len(processes)):
            await asyncio.sleep(chance.uniform(*APART_SECONDS))
            if ends.is_set():
                return
            process = processes[number]
            await asyncio.to_thread(process.kill)
            kills[number] += 1
            process.start()
            await process.serving()


@pytest.mark.slow
async def test_positions_are_one_to_n_whoever_is_killed_while_they_are_stored(
    client: Client, tickets: Producer, writers: list[Process]
) -> None:
    kills: Counter[int] = Counter()
    tail = Tail(client, writers)
    reading = asyncio.create_task(tail.run(EVENTS))
    ends = asyncio.Event()
    dying = asyncio.create_task(killing(writers, random.Random(66), kills, ends))
    event_ids: list[str] = []
    began = time.monotonic()
    try:
        for numbers in parts(EVENTS):
            event_ids += await commit(tickets, client.company_id, numbers)
            while len(event_ids) - len(tail.numbers) > 20 * ROWS and not reading.done():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        while kills.total() < KILLS_MIN and not dying.done():  # noqa: ASYNC110 - processes set no event
            await asyncio.sleep(0.05)
        await reading
    finally:
        ends.set()
        reading.cancel()
        await asyncio.wait({dying, reading})
    assert tail.numbers == list(range(1, EVENTS + 1))
    assert len(set(tail.ids)) == EVENTS and set(tail.ids) == set(event_ids)
    assert kills.total() >= KILLS_MIN
    print(f"{EVENTS} events, {WRITERS} writers, {kills.total()} kills, {time.monotonic() - began:.0f} s")  # noqa: T201


@pytest.mark.slow
async def test_a_replay_of_many_events_reaches_a_receiver_that_was_down(
    client: Client,
    channel: grpc.aio.Channel,
    tickets: Producer,
    receivers: dict[str, Receiver],
    database: Database,
) -> None:
    integration, receiver = Integration(client, channel), receivers["receiver.test"]
    sub_id = await subscribed(client)
    event_ids = await commit(tickets, client.company_id, range(1))
    await Tail(client, [client.service.webhooks]).run(1)
    await client.sweep()  # it answers once: a receiver that never did is sent 600 a minute
    event_ids += [
        event_id for numbers in parts(REPLAYED - 1) for event_id in await commit(tickets, client.company_id, numbers)
    ]
    await Tail(client, [client.service.webhooks]).run(REPLAYED)
    receiver.answer = answering(503, b"down")
    now = datetime.datetime.now(datetime.UTC)
    for hours in (0, 1, 2, 4, 8, 24):  # the whole ladder
        await client.sweep(now + (hours + 0.5) * HOUR)
    parked = "SELECT count(*) FILTER (WHERE state = 'parked') FROM delivery WHERE subscription_id = $1"
    async with database.connection() as connection:
        assert await connection.raw.fetchval(parked, sub_id) == REPLAYED - 1
    receiver.requests.clear()
    receiver.answer = answering(200)
    began = time.monotonic()
    status, replay, _ = await integration.replay(sub_id)
    assert (status, replay["matched"]) == (202, REPLAYED)
    done = await integration.finished(sub_id, replay["entity_id"], seconds=PATIENCE_SECONDS)
    assert heard(receiver) == Counter(event_ids), "each once more, and nothing else"
    assert (done["waiting"], done["succeeded"], done["failed"]) == (0, REPLAYED, 0)
    print(f"{REPLAYED} events replayed in {time.monotonic() - began:.1f} s")  # noqa: T201
