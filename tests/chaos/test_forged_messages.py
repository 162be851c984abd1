"""The holder of one service's NATS password forges no other service's event, moves no record, freezes no replica."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import nats
import nats.errors
import nats.js.errors
import pytest
from nats.aio.client import Client

from chassis.messaging.outbox import content_of, uuid7
from chassis.messaging.transport import FAULTS, STREAM
from makeready.events.v1.events_pb2 import Event, PropertyReference, PublicEvent, References
from testkit.nats_users import nats_url_of

from ..e2e.system import Company
from .harness import Harness
from .processes import PATIENCE_SECONDS, SERVICES
from .writes import Caller

REPLICATING = ("svc-tickets", "svc-occupancy")
HUGE = 2**62


@dataclass
class Thief:
    """A connection with a service's password."""

    client: Client
    refused: asyncio.Event
    """The server has refused something."""


@asynccontextmanager
async def thief(harness: Harness, service: str) -> AsyncIterator[Thief]:
    refused = asyncio.Event()

    async def note_refusal(error: Exception) -> None:
        if "permissions violation" in str(error).lower():
            refused.set()

    client = await nats.connect(
        nats_url_of(harness.nats.url, service), inbox_prefix=f"_INBOX.{service}", error_cb=note_refusal
    )
    yield Thief(client, refused)
    await client.close()


def made(**content: Any) -> Event:
    event = Event(event_id=str(uuid7()), **content)
    event.occurred_at.GetCurrentTime()
    return event


async def publish(by: Thief, producer: str, event: Event, content: str = "") -> bool:
    """Publishes as if `producer` did; returns whether the stream has the message."""
    subject = f"events.{producer}.{content or content_of(event)}"
    jetstream = by.client.jetstream(timeout=PATIENCE_SECONDS)
    by.refused.clear()
    publishing = asyncio.create_task(jetstream.publish(subject, event.SerializeToString()))
    refused = asyncio.create_task(by.refused.wait())
    await asyncio.wait({publishing, refused}, return_when=asyncio.FIRST_COMPLETED)
    refused.cancel()
    if not publishing.done():
        publishing.cancel()
        return False
    try:
        publishing.result()
    except FAULTS:
        return False
    return True


async def consumed(harness: Harness) -> None:
    """Waits until every consumer has taken every message."""
    client = await nats.connect(harness.nats.url)
    deadline = time.monotonic() + PATIENCE_SECONDS
    for name in ("svc-webhooks", "svc-catalog", *REPLICATING):
        while (info := await client.jetstream().consumer_info(STREAM, name)).num_pending or info.num_ack_pending:
            assert time.monotonic() < deadline, (name, info)
            await asyncio.sleep(0.05)
    await client.close()


async def eventually(current: Callable[[], Awaitable[Any]], expected: Any) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (last := await current()) != expected:
        assert time.monotonic() < deadline, last
        await asyncio.sleep(0.05)


class Place:
    """A property of a company, and its rows in the replicas."""

    def __init__(self, harness: Harness, company: Company) -> None:
        self.harness, self.company = harness, company
        self.external_id = secrets.token_hex(4)
        self.id = 0

    async def rename(self, name: str) -> None:
        row = {"external_id": self.external_id, "name": name, "address": "1 Elm St"}
        await asyncio.to_thread(self.company.import_rows, "properties", [row])
        sql = "SELECT id FROM property WHERE company_id = $1 AND external_id = $2"
        ((self.id,),) = await self.harness.query("svc-catalog", sql, self.company.company_id, self.external_id)

    async def replicas(self) -> list[tuple[int, int, str]]:
        """Company, version and name in each service that replicates it."""
        sql = "SELECT company_id, version, name FROM property WHERE id = $1"
        return [tuple(row) for name in REPLICATING for row in await self.harness.query(name, sql, self.id)]

    async def is_everywhere(self, version: int, name: str) -> None:
        await eventually(self.replicas, [(self.company.company_id, version, name)] * len(REPLICATING))

    async def poison(self, company_id: int, version: int, name: str) -> None:
        """Makes the replicas' rows what a forged event of an older release made of them."""
        sql = "UPDATE property SET company_id = $2, version = $3, name = $4 WHERE id = $1 RETURNING id"
        for service in REPLICATING:
            assert await self.harness.query(service, sql, self.id, company_id, version, name)

    def forged(self, company_id: int, version: int) -> Event:
        row = PropertyReference(
            id=self.id, version=version, company_id=company_id, name="Forged", external_id=self.external_id
        )
        return made(company_id=company_id, references=References(properties=[row]))


@pytest.fixture
async def place(harness: Harness, caller: Caller) -> Place:
    place = Place(harness, caller.company)
    await place.rename("Elm Court")
    await place.is_everywhere(1, "Elm Court")
    return place


@pytest.fixture
async def stranger(harness: Harness) -> Company:
    return await harness.company("Strangers")


@pytest.mark.parametrize("service", [name for name in SERVICES if name != "svc-tickets"])
async def test_no_other_service_forges_a_companys_ticket(harness: Harness, caller: Caller, service: str) -> None:
    content = PublicEvent(event="ticket.created", data=b'{"entity_id":1}', entity_id=1)
    event = made(company_id=caller.company.company_id, public=content)
    async with thief(harness, service) as client:
        assert not await publish(client, "svc-tickets", event)
        # Its own subjects are open to it, but the content is not its own.
        assert await publish(client, service, event)
        assert await publish(client, service, event, "public.turn.status_changed")
        assert await publish(client, service, event, "public.vendor.hold")
        assert await publish(client, service, event, "references")
    await consumed(harness)
    await harness.delivered_once(caller.company)
    assert not await harness.query(
        "svc-webhooks", "SELECT 1 FROM event WHERE event_id = $1::text::uuid", event.event_id
    )


@pytest.mark.parametrize("service", ["svc-occupancy", "svc-catalog"])
async def test_no_password_moves_a_property_to_another_company(
    harness: Harness, place: Place, stranger: Company, service: str
) -> None:
    async with thief(harness, service) as client:
        forged = place.forged(stranger.company_id, 2)
        assert await publish(client, "svc-catalog", forged) == (service == "svc-catalog")
        assert await publish(client, service, place.forged(stranger.company_id, 2))
    await consumed(harness)
    await place.is_everywhere(1, "Elm Court")
    await place.rename("Elm House")
    await place.is_everywhere(2, "Elm House")


@pytest.mark.parametrize("service", ["svc-occupancy", "svc-catalog"])
async def test_no_password_freezes_a_replica(harness: Harness, place: Place, service: str) -> None:
    async with thief(harness, service) as client:
        forged = place.forged(place.company.company_id, HUGE)
        assert await publish(client, "svc-catalog", forged) == (service == "svc-catalog")
        assert await publish(client, service, place.forged(place.company.company_id, HUGE))
    await consumed(harness)
    await place.rename("Elm House")
    await place.is_everywhere(2, "Elm House")


async def test_the_next_event_heals_a_replica_that_was_poisoned(
    harness: Harness, place: Place, stranger: Company
) -> None:
    await place.poison(stranger.company_id, HUGE, "Frozen")
    await place.rename("Elm House")
    await place.is_everywhere(2, "Elm House")


async def test_a_forged_next_version_gives_way_to_the_owners(harness: Harness, place: Place) -> None:
    """The owner's password forges a next version, which nothing tells from a true one until the true one comes."""
    async with thief(harness, "svc-catalog") as client:
        assert await publish(client, "svc-catalog", place.forged(place.company.company_id, 2))
    await place.is_everywhere(2, "Forged")
    await place.rename("Elm House")
    await place.is_everywhere(2, "Elm House")


@pytest.fixture
def comparing(harness: Harness) -> Iterator[None]:
    """The services that replicate properties compare their replicas every second."""
    for name in REPLICATING:
        harness.services[name].stop()
        harness.restart(name, MAKEREADY_REPLICA_CHECK_SECONDS="1")
    yield
    for name in REPLICATING:
        harness.services[name].stop()
        harness.restart(name)


async def test_the_comparison_heals_a_replica_about_which_no_event_comes(
    harness: Harness, place: Place, stranger: Company, comparing: None
) -> None:
    await place.poison(stranger.company_id, HUGE, "Frozen")
    await place.is_everywhere(1, "Elm Court")
