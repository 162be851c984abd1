"""The feed of a company's events: dense numbers, the deliveries' bytes, filters, and cursors that end in time."""

import asyncio
import datetime
import json
import uuid
from collections.abc import Sequence
from typing import Any

import asyncpg
import grpc
import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.events.v1.events_pb2 import EVENT_KEY_TICKET_CREATED, EVENT_KEY_TICKET_STALE
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.days import first_id_at
from testkit.patience import PATIENCE_SECONDS

from ..harness import Client, Producer
from ..receivers import Receiver

DAY = datetime.timedelta(days=1)


class Reader:
    """Reads a company's feed as an integration does."""

    def __init__(self, client: Client, channel: grpc.aio.Channel) -> None:
        self.client = client

    async def page(self, position: bytes = b"", limit: int = 50, **by: Any) -> pb.FeedServiceListEventsResponse:
        request = pb.FeedServiceListEventsRequest(position=position, limit=limit, **by)
        page: pb.FeedServiceListEventsResponse = await self.client.call(request)
        return page

    async def walk(self, position: bytes = b"", limit: int = 3, **by: Any) -> tuple[list[int], list[bytes], bytes]:
        numbers: list[int] = []
        bodies: list[bytes] = []
        while True:
            page = await self.page(position, limit, **by)
            assert len(page.positions) == len(page.feed.documents) <= limit
            numbers += page.positions
            bodies += page.feed.documents
            position = page.feed.position
            if not page.feed.more:
                return numbers, bodies, position

    async def until(self, number: int) -> None:
        """Waits until the feed has so many events."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await self.walk(limit=200))[0][-1:] != [number]:  # noqa: ASYNC110 - polls a process
                await asyncio.sleep(0.05)


@pytest.fixture
def reader(client: Client, channel: grpc.aio.Channel) -> Reader:
    return Reader(client, channel)


def ids(bodies: Sequence[bytes]) -> list[str]:
    return [json.loads(body)["event_id"] for body in bodies]


async def test_a_reader_gets_each_event_once_as_it_is_delivered_and_nobody_elses(
    reader: Reader, tickets: Producer, receivers: dict[str, Receiver], channel: grpc.aio.Channel
) -> None:
    client, company_id = reader.client, reader.client.company_id
    await client.create()
    begin = (await reader.page()).feed
    assert not begin.documents and not begin.more
    event_ids = [await tickets.ticket_created(company_id, number + 1) for number in range(7)]
    await tickets.ticket_created(company_id, 2, event="ticket.stale")
    await tickets.ticket_created(company_id + 100_000)
    await reader.until(8)

    numbers, bodies, position = await reader.walk(begin.position)
    assert numbers == list(range(1, 9)) == (await reader.walk())[0]
    assert len(bodies) == len(set(ids(bodies))) == 8
    assert set(ids(bodies)) > set(event_ids)
    await client.sweep()
    delivered = {request.body for request in receivers["receiver.test"].requests}
    assert delivered == {body for body in bodies if json.loads(body)["event"] == "ticket.created"}

    # Filters; a page that is not full goes on behind the newest event, not behind the last that passed.
    stale = await reader.walk(event=EVENT_KEY_TICKET_STALE)
    assert [json.loads(body)["event"] for body in stale[1]] == ["ticket.stale"]
    assert stale[2] == position == (await reader.page(from_now=True)).feed.position
    second = await reader.walk(entity_type=pb.EVENT_ENTITY_TYPE_TICKET, entity_id=2)
    assert [json.loads(body)["data"]["entity_id"] for body in second[1]] == [2, 2]
    both = await reader.walk(entity_type=pb.EVENT_ENTITY_TYPE_TICKET, entity_id=2, event=EVENT_KEY_TICKET_CREATED)
    assert [json.loads(body)["event"] for body in both[1]] == ["ticket.created"]
    assert (await reader.walk(entity_type=pb.EVENT_ENTITY_TYPE_TURN, entity_id=2))[0] == []

    # What is stored later follows.
    await tickets.ticket_created(company_id, 9)
    await reader.until(9)
    assert (await reader.walk(position))[0] == [9]


async def stored_at(database: Database, company_id: int) -> list[datetime.datetime]:
    async with database.connection() as connection:
        rows = await connection.raw.fetch(
            "SELECT stored_at FROM feed_entry WHERE company_id = $1 ORDER BY position", company_id
        )
    return [row[0] for row in rows]


async def test_since_and_until_are_about_when_an_event_was_stored(
    reader: Reader, tickets: Producer, database: Database
) -> None:
    company_id = reader.client.company_id
    for number in range(5):
        await tickets.ticket_created(company_id, number + 1)
        await reader.until(number + 1)
    at = await stored_at(database, company_id)
    assert at == sorted(set(at))
    for number, instant in enumerate(at):
        assert (await reader.walk(since=instant))[0] == list(range(number + 1, 6))
        assert (await reader.walk(until=instant))[0] == list(range(1, number + 1))
    assert (await reader.walk(since=at[1], until=at[3]))[0] == [2, 3]
    assert (await reader.walk(since=at[-1] + DAY))[0] == []
    assert (await reader.walk(until=at[0] - DAY))[0] == []


async def test_a_cursor_ends_when_what_follows_it_is_deleted_and_after_a_restore(
    reader: Reader, tickets: Producer, database: Database
) -> None:
    client = reader.client
    now = datetime.datetime.now(datetime.UTC)
    for number in range(4):
        await tickets.ticket_created(client.company_id, number + 1)
    await reader.until(4)
    cursors = [(await reader.page()).feed.position]
    cursors = [(await reader.page(limit=limit)).feed.position for limit in (1, 2, 3, 4)]
    async with database.transaction() as connection:  # two were stored 31 days ago, one of them late
        await connection.raw.execute(
            "UPDATE feed_entry SET stored_at = stored_at - interval '31 days' WHERE company_id = $1 AND position <= 2",
            client.company_id,
        )
    await client.forget(now)
    assert (await reader.walk())[0] == [3, 4]
    with pytest.raises(Refusal) as refused:
        await reader.page(cursors[0])
    assert (refused.value.status, refused.value.code) == (410, "cursor_expired")
    assert (await reader.walk(cursors[1]))[0] == [3, 4]
    assert (await reader.walk(cursors[2]))[0] == [4]
    assert (await reader.walk(cursors[3]))[0] == []
    # A restored database gives the numbers to other events.
    async with database.transaction() as connection:
        await connection.raw.execute(
            "UPDATE feed_entry SET event_id = $2 WHERE company_id = $1 AND position = 4",
            client.company_id,
            uuid.uuid4(),
        )
    for wrong in (cursors[3], cursors[2][:8] + (5).to_bytes(8, "big") + bytes(8), bytes(24), b"1"):
        with pytest.raises(Refusal, match="begin again") as refused:
            await reader.page(wrong)
        assert refused.value.code == "cursor_expired"


async def test_an_event_that_was_stored_late_stays_in_the_feed_when_its_day_is_dropped(
    reader: Reader, tickets: Producer, database: Database
) -> None:
    client = reader.client
    now = datetime.datetime.now(datetime.UTC)
    await tickets.ticket_created(client.company_id, 1, made_at=now - 29 * DAY)
    await reader.until(1)
    await tickets.ticket_created(client.company_id, 2)
    await reader.until(2)
    before = await reader.walk()
    await client.forget(now + 2 * DAY)
    async with database.connection() as connection:
        gone = await connection.raw.fetchval(
            "SELECT count(*) FROM event WHERE company_id = $1 AND event_id < $2",
            client.company_id,
            first_id_at(now - DAY),
        )
    assert gone == 0
    assert await reader.walk() == before


async def test_numbers_are_dense_whatever_stores_at_once_and_dies(
    reader: Reader, database: Database, service: Any
) -> None:
    """Eight sessions store batches of events of three companies in one transaction each; some end without a commit."""
    company_id = reader.client.company_id
    companies = [company_id, company_id + 200_000, company_id + 200_001]
    url = service.webhooks.environment["MAKEREADY_DATABASE_URL"]
    committed: list[int] = [0, 0, 0]
    stopped = asyncio.Event()
    seen: list[int] = []

    async def store(number: int) -> None:
        connection = await asyncpg.connect(url)
        for turn in range(12):
            dies = (turn + number) % 4 == 0
            await connection.execute("BEGIN")
            counts = [(turn + number + each) % 5 for each in range(3)]
            owners = [company_id for company_id, count in zip(companies, counts, strict=True) for _ in range(count)]
            await connection.execute(
                "INSERT INTO event (event_id, company_id, event, entity_id, occurred_at, request_id, body)"
                " SELECT id, company, 'ticket.created', 1, now(), '', '{}'"
                " FROM unnest($1::uuid[], $2::bigint[]) AS rows (id, company)",
                [
                    uuid.UUID(int=first_id_at(datetime.datetime.now(datetime.UTC)).int | uuid.uuid4().int >> 48)
                    for _ in owners
                ],
                owners[:: 1 if turn % 2 else -1],
            )
            if dies:
                connection.terminate()
                connection = await asyncpg.connect(url)
                continue
            await connection.execute("COMMIT")
            for each, count in enumerate(counts):
                committed[each] += count
        await connection.close()

    async def tail() -> None:
        position = b""
        while True:
            done = stopped.is_set()
            numbers, _, position = await reader.walk(position, limit=7)
            seen.extend(numbers)
            if done:
                return

    tailing = asyncio.create_task(tail())
    await asyncio.gather(*(store(number) for number in range(8)))
    stopped.set()
    await tailing
    assert committed[0] > 50
    assert seen == list(range(1, committed[0] + 1))
    async with database.connection() as connection:
        for owner, count in zip(companies, committed, strict=True):
            rows = await connection.raw.fetch("SELECT position FROM feed_entry WHERE company_id = $1", owner)
            assert sorted(row[0] for row in rows) == list(range(1, count + 1))
