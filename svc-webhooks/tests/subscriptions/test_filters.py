"""A subscription hears of the properties, categories and priorities of its filter only."""

import asyncio
import json
import uuid
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.events.consumer import SUBJECTS
from svc_webhooks.rules.filters import PROPERTIES_MAX
from svc_webhooks.rules.subscriptions import EVENTS

from ..harness import AGAIN_SECONDS, Client, Producer

NO_FILTER = {"property_ids": None, "categories": None, "priorities": None}


@pytest.fixture
def producers(opened: dict[str, Database]) -> dict[str, Producer]:
    """The producer of each event, by its key."""
    return {
        subject.removeprefix("public."): Producer(name, opened[name])
        for name, subjects in SUBJECTS.items()
        for subject in subjects
        if subject != "references"
    }


async def set_filter(
    client: Client, sub_id: int, key: str | None = None, /, **body: Any
) -> tuple[int, dict[str, Any], bool]:
    request = pb.SetFilterRequest(
        idempotency_key=key or str(uuid.uuid4()), sub_id=sub_id, body=json.dumps(body).encode()
    )
    reply = (await client.call(request)).reply
    return reply.status, json.loads(reply.body), reply.replayed


async def filter_of(client: Client, sub_id: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((await client.call(pb.GetFilterRequest(sub_id=sub_id))).document.json)
    return {name: document[name] for name in NO_FILTER}


async def subscribed(client: Client, *events: str) -> int:
    body = {"destination_url": "https://receiver.test/hook", "events": list(events or EVENTS)}
    sub_id: int = (await client.create(body))[1]["entity_id"]
    return sub_id


def ticket(property_id: int | None, category: str = "Plumbing", priority: str = "High") -> bytes:
    place = None if property_id is None else {"id": property_id, "name": "Elm Court", "external_id": None}
    return json.dumps({"entity_id": 1, "property": place, "category": category, "priority": priority}).encode()


async def stored(client: Client, count: int) -> None:
    """Waits until the feed has so many events."""
    request = pb.FeedServiceListEventsRequest(limit=200)
    async with asyncio.timeout(AGAIN_SECONDS):
        while len((await client.call(request)).positions) < count:  # noqa: ASYNC110 - polls a process
            await asyncio.sleep(0.05)


async def delivered(database: Database, sub_id: int) -> set[str]:
    async with database.connection() as connection:
        rows = await connection.raw.fetch("SELECT event_id FROM delivery WHERE subscription_id = $1", sub_id)
    return {str(row["event_id"]) for row in rows}


async def test_a_filter_is_set_fetched_replaced_and_taken_away(client: Client) -> None:
    sub_id = await subscribed(client)
    assert await filter_of(client, sub_id) == NO_FILTER
    status, body, _ = await set_filter(
        client, sub_id, property_ids=[9, 3, 9], categories=["Leak", "HVAC"], priorities=["Emergency", "Low", "Low"]
    )
    assert status == 200
    assert body == {
        "schema_version": 1,
        "entity_type": "webhook_filter",
        "entity_id": sub_id,
        "property_ids": [3, 9],
        "categories": ["HVAC", "Leak"],
        "priorities": ["Low", "Emergency"],
    }
    assert await filter_of(client, sub_id) == {name: body[name] for name in NO_FILTER}
    await set_filter(client, sub_id, priorities=["High"], categories=None)
    assert await filter_of(client, sub_id) == NO_FILTER | {"priorities": ["High"]}
    await set_filter(client, sub_id)
    assert await filter_of(client, sub_id) == NO_FILTER


async def test_a_filter_with_a_key_is_set_once(client: Client) -> None:
    sub_id, key = await subscribed(client), str(uuid.uuid4())
    first = await set_filter(client, sub_id, key, property_ids=[1])
    await set_filter(client, sub_id, property_ids=[2])
    assert await set_filter(client, sub_id, key, property_ids=[1]) == (*first[:2], True)
    assert (await filter_of(client, sub_id))["property_ids"] == [2]
    with pytest.raises(Refusal) as refused:
        await set_filter(client, sub_id, key, property_ids=[3])
    assert (refused.value.status, refused.value.code) == (409, "idempotency_mismatch")
    await client.delete(sub_id)
    assert await set_filter(client, sub_id, key, property_ids=[1]) == (*first[:2], True)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"property_ids": []}, 422),
        ({"categories": []}, 422),
        ({"priorities": []}, 422),
        ({"categories": ["plumbing"]}, 422),
        ({"priorities": ["High", "Urgent"]}, 422),
        ({"property_ids": [0]}, 422),
        ({"property_ids": [10**30]}, 422),
        ({"property_ids": list(range(1, PROPERTIES_MAX + 2))}, 422),
        ({"property_ids": 1}, 400),
        ({"property_ids": ["1"]}, 400),
        ({"events": ["ticket.created"]}, 400),
    ],
)
async def test_refused_filters_change_nothing(client: Client, body: dict[str, Any], status: int) -> None:
    sub_id = await subscribed(client)
    await set_filter(client, sub_id, property_ids=[1])
    with pytest.raises(Refusal) as refused:
        await set_filter(client, sub_id, **body)
    assert (refused.value.status, refused.value.code) == (status, "invalid_request")
    assert await filter_of(client, sub_id) == NO_FILTER | {"property_ids": [1]}


async def test_anothers_and_a_deleted_subscription_have_no_filter(client: Client) -> None:
    sub_id, deleted = await subscribed(client), await subscribed(client)
    await client.delete(deleted)
    stranger = client.of(client.company_id + 400_000)
    for party, number in ((stranger, sub_id), (client, deleted), (client, 10**12)):
        with pytest.raises(Refusal) as refused:
            await set_filter(party, number, property_ids=[1])
        assert (refused.value.status, refused.value.code) == (404, "not_found")
        with pytest.raises(Refusal) as refused:
            await filter_of(party, number)
        assert (refused.value.status, refused.value.code) == (404, "not_found")
    assert await filter_of(client, sub_id) == NO_FILTER


async def test_each_kind_of_event_passes_by_its_property(
    client: Client, producers: dict[str, Producer], database: Database
) -> None:
    here, everywhere = await subscribed(client), await subscribed(client)
    await set_filter(client, here, property_ids=[7, 8])
    passing, others = set(), set()
    for event in EVENTS:
        passing.add(await producers[event].ticket_created(client.company_id, event=event, data=ticket(7)))
        passing.add(await producers[event].ticket_created(client.company_id, event=event, data=ticket(None)))
        # The data of notices and tasks name their property in words.
        named = json.dumps({"property": "Elm Court", "task": "x\u0000"}).encode()
        passing.add(await producers[event].ticket_created(client.company_id, event=event, data=named))
        others.add(await producers[event].ticket_created(client.company_id, event=event, data=ticket(9)))
    await stored(client, 4 * len(EVENTS))
    assert await delivered(database, here) == passing
    assert await delivered(database, everywhere) == passing | others


async def test_category_and_priority_bind_tickets_alone(
    client: Client, producers: dict[str, Producer], database: Database
) -> None:
    sub_id, both = await subscribed(client), await subscribed(client)
    await set_filter(client, sub_id, categories=["Leak"], priorities=["High", "Emergency"])
    await set_filter(client, both, property_ids=[7], categories=["Leak"])
    passing, of_both, count = set(), set(), 0
    for event in EVENTS:
        for property_id, category, priority in (
            (7, "Leak", "High"), (8, "Leak", "Emergency"), (7, "Leak", "Low"), (7, "HVAC", "High")
        ):  # fmt: skip
            data = ticket(property_id, category, priority)
            event_id = await producers[event].ticket_created(client.company_id, event=event, data=data)
            count += 1
            is_ticket = event.startswith("ticket.")
            if not is_ticket or (category == "Leak" and priority != "Low"):
                passing.add(event_id)
            if property_id == 7 and (not is_ticket or category == "Leak"):
                of_both.add(event_id)
    await stored(client, count)
    assert await delivered(database, sub_id) == passing
    assert await delivered(database, both) == of_both


async def test_a_filter_that_is_set_while_an_event_is_stored(
    client: Client, tickets: Producer, database: Database
) -> None:
    """A fan-out holds the subscription's row FOR KEY SHARE; a change of the filter waits for none, and the events that
    are stored after its reply pass the new filter. What waits stays."""
    sub_id = await subscribed(client)
    before = await tickets.ticket_created(client.company_id, data=ticket(1))
    await stored(client, 1)
    async with database.connection() as connection, connection.raw.transaction():
        await connection.raw.execute("SELECT id FROM subscription WHERE id = $1 FOR KEY SHARE", sub_id)
        await set_filter(client, sub_id, property_ids=[2])
        after = await tickets.ticket_created(client.company_id, data=ticket(2))
        await tickets.ticket_created(client.company_id, data=ticket(1))
        await stored(client, 3)
    assert await delivered(database, sub_id) == {before, after}


async def test_a_subscription_that_is_deleted_while_it_has_a_filter_hears_nothing(
    client: Client, tickets: Producer, database: Database
) -> None:
    sub_id = await subscribed(client)
    await set_filter(client, sub_id, property_ids=[1])
    await client.delete(sub_id)
    await tickets.ticket_created(client.company_id, data=ticket(1))
    await stored(client, 1)
    assert await delivered(database, sub_id) == set()
