"""A failed inspection row opens one ticket, whether its event arrives over NATS, repeatedly, or by reconciliation."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import nats
import pytest
from sqlalchemy import text

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import Outbox, uuid7
from chassis.schedule.clocks import CompanyClocks
from chassis.writes.audit import Audit
from makeready.events.v1 import events_pb2 as pb
from svc_tickets import consumers
from svc_tickets import tables as t
from svc_tickets.replicas.consumer import put_references
from svc_tickets.tickets.forgotten import ForgottenPeople
from svc_tickets.tickets.from_inspection import FailedInspectionRows
from svc_tickets.tickets.opening import TicketOpener
from svc_tickets.tickets.queries import numbering
from svc_tickets.tickets.records import TICKET
from testkit.patience import PATIENCE_SECONDS

from .changing import events_of, served
from .commands import audited, comments_of, entry

pytestmark = pytest.mark.usefixtures("places")

SUBJECT = "events.svc-catalog.causes"
_ids = itertools.count(800_000)


@pytest.fixture
async def tell(own_nats: Any) -> AsyncIterator[Any]:
    """Publishes events of svc-catalog as its relay does."""
    connection = await nats.connect(own_nats.url)
    stream = connection.jetstream()

    async def publish(*events: pb.Event) -> None:
        for event in events:
            await stream.publish(SUBJECT, event.SerializeToString())

    yield publish
    await connection.close()


def failed(row_id: int | None = None, **fields: Any) -> pb.Event:
    row: dict[str, Any] = {
        "inspection_id": 900,
        "row_id": row_id or next(_ids),
        "property_id": 10,
        "title": "Smoke alarm is mute",
        "description": "No sound at the test",
        "category": "Life Safety",
        "priority": "High",
        "actor": "staff:30",
    } | fields
    event = pb.Event(
        event_id=str(uuid7()),
        company_id=7,
        request_id="req-row",
        inspection_row_failed=pb.InspectionRowFailed(**row),
    )
    event.occurred_at.FromDatetime(datetime.datetime.now(datetime.UTC))
    return event


async def ticket_of(database: Database, event: pb.Event) -> int:
    """The ticket that the event opened, once it exists."""
    row = event.inspection_row_failed
    statement = Statement(
        text(
            "SELECT ticket_id FROM ticket_of_inspection_row "
            f"WHERE company_id = 7 AND inspection_id = {row.inspection_id} AND row_id = {row.row_id}"
        )
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (ticket_id := await database.value(statement)) is None:  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.05)
    return int(ticket_id)


async def test_it_opens_a_ticket_that_says_what_failed_and_where(
    client: Any, tell: Any, administrator: Any, database: Database
) -> None:
    event = failed(unit_id=100, asset_id=500, photo_url="https://photos.test/alarm.jpg")
    await tell(event)
    ticket_id = await ticket_of(database, event)
    raw = await served(client, ticket_id)
    ticket = json.loads(raw)
    assert (ticket["title"], ticket["description"]) == ("Smoke alarm is mute", "No sound at the test")
    assert (ticket["category"], ticket["priority"], ticket["status"]) == ("Life Safety", "High", "Open")
    assert (ticket["source"], ticket["photo_url"]) == ("inspection", "https://photos.test/alarm.jpg")
    assert (ticket["unit"]["id"], ticket["unit_number"], ticket["property"]["id"]) == (100, "1A", 10)
    assert ticket["ticket_number"] > 0 and ticket["permission_to_enter"] is False
    (created,) = await events_of(database, ticket_id)
    assert (created.public.event, created.public.change) == ("ticket.created", b"")
    assert created.public.data == raw and created.request_id == "req-row"
    photo = ("photo", "https://photos.test/alarm.jpg", "staff", "staff:30")
    assert await comments_of(client, administrator, ticket_id) == [photo]
    row_id = event.inspection_row_failed.row_id
    after = {"source": "inspection", "title": "Smoke alarm is mute", "property_id": 10}
    after |= {"inspection_id": 900, "row_id": row_id}
    assert await audited(client, administrator, "ticket", ticket_id) == [
        entry("staff:30", "ticket.opened", {}, after) | {"request_id": "req-row"}
    ]


async def test_the_same_row_opens_one_ticket_however_often_it_is_published(tell: Any, database: Database) -> None:
    count = Statement(text("SELECT count(*) FROM ticket WHERE source = 'inspection'"))
    before = await database.value(count)
    first = failed()
    again = pb.Event.FromString(first.SerializeToString())
    other_event = failed(first.inspection_row_failed.row_id)
    last = failed()
    await tell(first, again, other_event, first, last)
    ticket_id = await ticket_of(database, first)
    await ticket_of(database, last)  # all events before it have been applied
    assert len(await events_of(database, ticket_id)) == 1
    async with asyncio.timeout(PATIENCE_SECONDS):  # the other event of the row has been consumed
        in_inbox = Statement(text(f"SELECT count(*) FROM inbox WHERE event_id = '{other_event.event_id}'"))
        while not await database.value(in_inbox):  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.05)
    assert await database.value(count) == before + 2


async def test_places_that_no_replica_has_yet_come_with_it(client: Any, tell: Any, database: Database) -> None:
    tag = int(secrets.token_hex(3), 16) + 10**8
    places = pb.References(
        properties=[pb.PropertyReference(id=tag, version=1, company_id=7, name="New Court")],
        units=[pb.UnitReference(id=tag, version=1, company_id=7, property_id=tag, name="N1", unit_number="1")],
    )
    event = failed(property_id=tag, unit_id=tag, places=places)
    await tell(event)
    ticket = json.loads(await served(client, await ticket_of(database, event)))
    assert (ticket["property"]["name"], ticket["unit"]["name"], ticket["unit_number"]) == ("New Court", "N1", "1")


async def test_words_that_this_release_does_not_know_keep_no_ticket_away(
    client: Any, tell: Any, database: Database
) -> None:
    event = failed(category="Robotics", priority="Whenever", title=" ", unit_id=200, asset_id=600)
    await tell(event)
    ticket = json.loads(await served(client, await ticket_of(database, event)))
    assert (ticket["category"], ticket["priority"], ticket["title"]) == ("Other", "Medium", "Failed at an inspection")
    assert ticket["unit"] is None


async def test_rows_of_several_properties_and_a_file_do_not_wait_for_each_other(database: Database) -> None:
    ids = [next(_ids), next(_ids)]
    places = pb.References(
        properties=[pb.PropertyReference(id=property_id, version=1, company_id=7, name="P") for property_id in ids]
    )
    outbox, renderer = Outbox("svc-tickets", t.outbox), TICKET.renderer("https://x.test")
    audit = Audit(t.audit, database)
    owners: Any = None  # none is asked: the places come with the events
    clocks = CompanyClocks(database, t.metadata.tables["company"])
    failed_rows = FailedInspectionRows(TicketOpener(database, owners, outbox, renderer, clocks), clocks)
    applier = consumers.Applier(failed_rows, ForgottenPeople(audit, clocks))
    events = [
        failed(property_id=property_id, inspection_id=property_id, places=places) for property_id in reversed(ids)
    ]
    async with database.transaction() as connection:
        await put_references(connection, [places])

    async def take() -> None:
        async with database.transaction() as connection:
            await applier.apply(connection, events)

    async with database.transaction() as file:
        await numbering.take_numbers(file, {ids[0]: 1})
        taking = asyncio.create_task(take())
        waiting = Statement(
            text(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
        )
        async with asyncio.timeout(PATIENCE_SECONDS):  # less than the lock timeout
            while not await database.value(waiting):  # noqa: ASYNC110 - polling
                await asyncio.sleep(0.02)
        # The counter of the other property is free: a consumer that waits for the first one holds none.
        await numbering.take_numbers(file, {ids[1]: 1})
    await taking
    numbers = Statement(text(f"SELECT count(*) FROM ticket WHERE property_id IN ({ids[0]}, {ids[1]})"))
    assert await database.value(numbers) == 2


@pytest.mark.parametrize("point", ["consumer-before-commit", "consumer-before-ack"])
async def test_a_service_that_is_killed_over_it_opens_one(
    service: Any, client: Any, tell: Any, database: Database, point: str
) -> None:
    service.stop()
    service.start(MAKEREADY_KILL_AT=point)
    event = failed(title=f"Cut off {secrets.token_hex(6)}")
    try:
        await tell(event)
        await asyncio.to_thread(service.process.wait, 30)
        assert service.process.returncode == -9, f"{point} was not reached"
    finally:
        service.kill()
        service.start()
    await tell(event)  # as reconciliation does; NATS itself redelivers only after half a minute
    ticket_id = await ticket_of(database, event)
    assert [event.public.event for event in await events_of(database, ticket_id)] == ["ticket.created"]
    title = event.inspection_row_failed.title
    assert await database.value(Statement(text(f"SELECT count(*) FROM ticket WHERE title = '{title}'"))) == 1
