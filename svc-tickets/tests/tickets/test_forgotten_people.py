"""A person is forgotten: the marked texts of a unit's tickets go, once, wherever people could still read them."""

from __future__ import annotations

import asyncio
import datetime
import json
import time
from typing import Any

import nats
import pytest
from sqlalchemy import text

from chassis.auth.identity import ADMINISTRATOR, OPERATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import uuid7
from chassis.refusals import Refusal
from makeready.common.v1 import audit_pb2
from makeready.events.v1 import events_pb2 as pb
from svc_tickets.tickets.rules import texts
from testkit.patience import PATIENCE_SECONDS

from ..search.views import Views
from . import test_importing_tickets as imports
from .changing import events_of, served
from .commands import audited, comments_of, entry, open_ticket, run_command
from .test_undoing_imports import undone

pytestmark = pytest.mark.usefixtures("places")

NAME = "Zqforgotten"


def forgotten(*names: str, unit_id: int = 100, company_id: int = 7) -> pb.Event:
    person = pb.PersonForgotten(party_id=5, unit_id=unit_id, ticket_texts=names, actor="administrator:3")
    event = pb.Event(event_id=str(uuid7()), company_id=company_id, request_id="req-test", person_forgotten=person)
    event.occurred_at.FromDatetime(datetime.datetime.now(datetime.UTC))
    return event


async def publish(server: Any, *events: pb.Event) -> None:
    """As the relay of svc-occupancy does."""
    connection = await nats.connect(server.url)
    for event in events:
        await connection.jetstream().publish("events.svc-occupancy.causes", event.SerializeToString())
    await connection.close()


async def applied(database: Database, *events: pb.Event) -> None:
    ids = ", ".join(f"'{event.event_id}'" for event in events)
    count = Statement(text(f"SELECT count(*) FROM inbox WHERE event_id IN ({ids})"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await database.value(count) != len(events):  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.05)


async def test_marked_texts_are_listed_and_go(
    client: Any, staff: Any, administrator: Any, database: Database, service: Any, own_nats: Any
) -> None:
    views = Views(service, administrator)
    fields = {"description": f"{NAME} says it drips", "preferred_access_time": f"Ask {NAME}", "unit_id": 100}
    ticket = await open_ticket(client, staff, title=f"Tap of {NAME}", **fields)
    other = await open_ticket(client, staff, title="Lamp", unit_id=101, description=NAME)
    ticket_id = ticket["entity_id"]
    for body, by in ((f"{NAME} was out", 1), ("Ordered the part", 2)):
        await run_command(client, "CommentOnTicket", staff, ticket_id=ticket_id, body=body, by=by)
    await run_command(client, "AddTicketPhoto", staff, ticket_id=ticket_id, photo_url="https://photos.test/a.jpg")
    await views.wait_for(2, words=NAME)
    listed = await views("ListTicketTexts", unit_id=100, limit=200)
    (listed_texts,) = (
        listed_ticket for listed_ticket in listed.tickets if listed_ticket.ticket_id == ticket_id
    )  # other tests have tickets too
    assert (listed_texts.title, listed_texts.status) == (ticket["title"], "Open")
    assert [(text.field, text.text, text.author) for text in listed_texts.texts] == [
        ("title", ticket["title"], ""),
        ("description", fields["description"], ""),
        ("preferred_access_time", fields["preferred_access_time"], ""),
        ("comment", f"{NAME} was out", "staff"),
        ("comment", "Ordered the part", "vendor"),
    ]
    names = [text.name for text in listed_texts.texts]
    before = await served(client, ticket_id)

    # The last text stays, as do those of another unit, those that no ticket has, and what is no name.
    strays = [f"{other['entity_id']}.description", f"{2**62}.title", "1.status", "x", f"{ticket_id}.comment.999999"]
    events = forgotten(*names[:4], *strays), forgotten(*names, company_id=8), forgotten(*names[:4])
    await publish(own_nats, *events)
    await applied(database, *events)
    ticket = json.loads(await served(client, ticket_id))
    assert ticket == json.loads(before) | {
        "title": "[removed]",
        "description": "[removed]",
        "preferred_access_time": None,
        "updated_at": ticket["updated_at"],
    }
    assert ticket["updated_at"] > json.loads(before)["updated_at"]
    bodies = [body for _, body, _, _ in await comments_of(client, staff, ticket_id)]
    assert bodies == ["[removed]", "Ordered the part", "https://photos.test/a.jpg"]
    assert json.loads(await served(client, other["entity_id"]))["description"] == NAME
    await views.wait_for(1, words=NAME)  # the other unit's
    listed = await views("ListTicketTexts", unit_id=100, limit=200)
    (remaining,) = (listed_ticket for listed_ticket in listed.tickets if listed_ticket.ticket_id == ticket_id)
    assert [text.name for text in remaining.texts] == names[4:]
    # Once, although the event came twice; and no subscriber hears of it.
    after = {"texts_removed": "title, description, preferred access time, 1 comment"}
    entries = await audited(client, administrator, "ticket", ticket_id)
    assert [entry for entry in entries if entry["action"] == "ticket.texts_removed"] == [
        entry("administrator:3", "ticket.texts_removed", {}, after)
    ]
    assert [event.public.event for event in await events_of(database, ticket_id)] == ["ticket.created"]


async def test_a_timeline_does_not_repeat_what_was_removed(
    client: Any, staff: Any, administrator: Any, database: Database, service: Any, own_nats: Any
) -> None:
    ticket_id = (await open_ticket(client, staff, title="Tap", unit_id=100, description="it drips"))["entity_id"]
    insert = (
        "INSERT INTO audit (company_id, actor, action, subject, subject_id, before, after, request_id) VALUES (7, "
        f"'staff:30', 'ticket.updated', 'ticket', {ticket_id}, '{{\"title\": \"{NAME}\", \"priority\": \"Low\"}}', "
        '\'{"title": "Tap", "priority": "High"}\', \'req\')'
    )
    await database.execute(Statement(text(insert)))
    views = Views(service, administrator)

    async def changes() -> list[tuple[str, str]]:
        entries = (await views("ListTicketTimeline", ticket_id=ticket_id)).entries
        return [(change.field, change.before) for entry in entries for change in entry.changes]

    assert sorted(await changes()) == [("priority", "Low"), ("title", NAME)]
    event = forgotten(f"{ticket_id}.description")
    await publish(own_nats, event)
    await applied(database, event)
    assert sorted(await changes()) == [("priority", "Low"), ("texts_removed", "")]


async def test_the_audit_log_that_people_see_does_not_repeat_what_was_removed(
    client: Any, staff: Any, administrator: Any, database: Database, service: Any, own_nats: Any
) -> None:
    ticket_id = (await open_ticket(client, staff, title=f"Tap of {NAME}", unit_id=100))["entity_id"]
    other = (await open_ticket(client, staff, title=f"Lamp of {NAME}", unit_id=101))["entity_id"]
    for open_id in (ticket_id, other):
        await run_command(
            client, "UpdateTicket", administrator, ticket_id=open_id, description=f"{NAME} has a key", priority="High"
        )

    async def seen(who: Any, **filters: Any) -> dict[int, str]:
        """What the entries say, by ticket. Staff may ask for one record alone."""
        async with service.channel() as channel:
            request = audit_pb2.ListAuditRequest(limit=200, **filters)
            answer = await service.call(channel, request, who)
        texts: dict[int, str] = {}
        for logged in answer.entries:
            if logged.subject == "ticket":
                text = f"{logged.action} {logged.before.decode()} {logged.after.decode()}\n"
                texts[logged.subject_id] = texts.get(logged.subject_id, "") + text
        return texts

    operator = Identity(OPERATOR, "operator", 7)
    of_one = {"subject": "ticket", "subject_id": ticket_id}
    ways: tuple[tuple[Any, dict[str, Any]], ...] = (
        (administrator, {}),
        (administrator, {"subject": "ticket"}),
        (administrator, {"actor": administrator.actor}),
        (administrator, of_one),
        (staff, of_one),
        (operator, of_one),
    )
    for who, filters in ways:
        assert NAME in (await seen(who, **filters))[ticket_id], filters
    event = forgotten(f"{ticket_id}.title", f"{ticket_id}.description")
    await publish(own_nats, event)
    await applied(database, event)
    for who, filters in ways:
        entries = await seen(who, **filters)
        assert NAME not in entries[ticket_id], filters
        # That there was an act, and its other values, stay.
        assert "ticket.updated" in entries[ticket_id] and '"High"' in entries[ticket_id], filters
        assert other not in entries or NAME in entries[other]
    assert "ticket.texts_removed" in entries[ticket_id]
    # What is written later is no secret, and the log itself is as it was.
    await run_command(client, "UpdateTicket", administrator, ticket_id=ticket_id, description="A new washer")
    assert "A new washer" in (await seen(staff, **of_one))[ticket_id]
    stored = f"SELECT count(*) FROM audit WHERE subject_id = {ticket_id} AND after::text LIKE '%{NAME}%'"
    assert await database.value(Statement(text(stored))) >= 2


async def test_texts_of_another_companys_unit_are_nobodys(service: Any, administrator: Any) -> None:
    for who, unit_id, status in (
        (administrator, 200, 404),
        (administrator, 2**62, 404),
        (Identity(ADMINISTRATOR, "gateway", 8, administrator_id=3, stepped_up_at=int(time.time())), 100, 404),
    ):
        with pytest.raises(Refusal) as refused:
            await Views(service, who)("ListTicketTexts", unit_id=unit_id)
        assert refused.value.status == status
    with pytest.raises(Refusal, match="limit must be from 1 to 200"):
        await Views(service, administrator)("ListTicketTexts", unit_id=100, limit=201)


def test_names_of_texts_are_read_as_they_are_made() -> None:
    assert texts.marked([texts.name_of(41, "title"), texts.name_of(7, "comment", 88), "41.description"]) == {
        7: texts.Marked(set(), {88}),
        41: texts.Marked({"title", "description"}, set()),
    }
    assert not texts.marked(["", ".", "41", "41.", "41.id", "41.comment", "41.comment.", "41.comment.x", "x.title"])
    assert not texts.marked(["\u0661.title", "1" * 19 + ".title", "41.title.5"])
    ticket = {"title": "[removed]", "description": "", "preferred_access_time": "noon"}
    assert texts.removal(ticket, texts.FIELDS) == {"preferred_access_time": None}
    assert texts.in_words(["description"], 2) == "description, 2 comments"


async def test_texts_that_an_undo_keeps_go_without_being_marked(
    client: Any, operator: Any, database: Database, own_nats: Any
) -> None:
    """Those of withdrawn tickets of the unit, and those of its tickets before an import changed them."""
    old = imports.row(unit="U1", room="Kitchen", title=f"Tap of {NAME}", description=f"{NAME} says it drips")
    gone, elsewhere = imports.row(unit="U1", title=f"Lamp of {NAME}"), imports.row(title=f"Roof of {NAME}")
    await imports.imported(client, operator, [old])
    changed = old | {"room": "Bath", "title": "Tap", "description": "It drips"}
    await imports.imported(client, operator, [changed], import_key="forgotten-1")
    await imports.imported(client, operator, [gone, elsewhere], import_key="forgotten-2")
    assert (await undone(client, operator, "forgotten-2")).withdrawn == 2
    event = forgotten()
    await publish(own_nats, event)
    await applied(database, event)
    with_name = "SELECT count(*) FROM (SELECT record AS kept FROM withdrawn_record UNION ALL SELECT before FROM "
    with_name += f"import_batch) AS of_undo WHERE kept::text LIKE '%{NAME}%'"
    assert await database.value(Statement(text(with_name))) == 1  # the one that no unit has
    # The rest of the ticket goes back; the file brings the other one again.
    assert (await undone(client, operator, "forgotten-1")).restored == 1
    after = await imports.served(client, old["external_id"])
    assert (after["room"], after["title"], after["description"]) == ("Kitchen", "Tap", "It drips")
    await imports.imported(client, operator, [gone], import_key="forgotten-3")
    assert (await undone(client, operator, "forgotten-3")).withdrawn == 1
