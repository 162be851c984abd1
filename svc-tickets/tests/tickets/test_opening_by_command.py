"""Tickets that staff and residents open, against a running svc-tickets."""

from __future__ import annotations

import asyncio
import datetime
import json
import secrets
from typing import Any

import pytest
from sqlalchemy import text

from chassis.auth.identity import OPERATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.schedule import instants
from makeready.tickets.v1 import tickets_pb2

from .changing import events_of, refusal_of, served
from .commands import audited, entry, open_ticket, opening, quiet_of

pytestmark = pytest.mark.usefixtures("places")


async def test_a_resident_opens_a_ticket_of_a_unit_with_all_fields(client: Any, staff: Any) -> None:
    fields = {
        "title": "Tap drips",
        "subcategory": "Kitchen tap",
        "priority": "High",
        "description": "Since Monday",
        "room": "Kitchen",
        "room_instance": "2",
        "permission_to_enter": True,
        "preferred_access_time": "mornings",
        "photo_url": "https://photos.test/1.jpg",
    }
    ticket = await open_ticket(client, staff, unit_id=100, asset_id=500, by="OPENER_RESIDENT", **fields)
    assert {name: ticket[name] for name in fields} == fields
    assert ticket["unit"] == {"id": 100, "name": "Unit 1A", "external_id": "U1"} and ticket["unit_number"] == "1A"
    assert ticket["property"] == {"id": 10, "name": "Elm Court", "external_id": "P10"}
    assert (ticket["source"], ticket["status"]) == ("staff", "Open") and "resident_asked" not in ticket
    assert ticket["created_at"] == ticket["updated_at"]


async def test_staff_open_one_of_a_property_with_a_word_or_two(client: Any, staff: Any) -> None:
    ticket = await open_ticket(client, staff)
    assert (ticket["unit"], ticket["unit_number"], ticket["source"]) == (None, None, "staff")
    assert (ticket["priority"], ticket["description"], ticket["permission_to_enter"]) == ("Medium", "", False)


async def test_its_number_follows_the_last_one_of_the_property(client: Any, staff: Any, operator: Any) -> None:
    first, second = [await open_ticket(client, who) for who in (staff, operator)]
    assert second["ticket_number"] == first["ticket_number"] + 1


async def test_fifty_at_once_get_a_number_each(client: Any, staff: Any, operator: Any) -> None:
    opened = await asyncio.gather(*(open_ticket(client, who) for who in (staff, operator) * 25))
    assert len({ticket["ticket_number"] for ticket in opened}) == len({ticket["entity_id"] for ticket in opened}) == 50


async def test_the_event_is_what_the_get_serves_to_the_byte(client: Any, staff: Any, database: Database) -> None:
    for opener, extra in (("OPENER_STAFF", {}), ("OPENER_RESIDENT", {"unit_id": 100})):
        ticket = await open_ticket(client, staff, title="Fenêtre cassée 🪟", by=opener, **extra)
        (event,) = await events_of(database, ticket["entity_id"])
        assert (event.public.event, event.public.change, event.request_id) == ("ticket.created", b"", "req-test")
        assert event.public.data == await served(client, ticket["entity_id"])
        assert instants.printed(event.occurred_at.ToDatetime(datetime.UTC)) == ticket["created_at"]


async def test_its_document_is_stored_as_that_of_the_api_is(client: Any, staff: Any, database: Database) -> None:
    stored = "SELECT document IS NOT NULL AND document_shape IS NOT NULL FROM ticket WHERE id ="
    for opener in ("OPENER_STAFF", "OPENER_RESIDENT"):
        ticket = await open_ticket(client, staff, by=opener, unit_id=100, photo_url="https://photos.test/1.jpg")
        assert await database.value(Statement(text(f"{stored} {ticket['entity_id']}")))


@pytest.mark.parametrize("opener", ["OPENER_STAFF", "OPENER_RESIDENT"])
async def test_the_audit_log_says_who_opened_it_with_what(
    client: Any, administrator: Any, staff: Any, opener: str
) -> None:
    ticket = await open_ticket(client, staff, unit_id=100, title="Tap drips", by=opener)
    after: dict[str, Any] = {
        "title": "Tap drips",
        "description": "",
        "category": "Plumbing",
        "priority": "Medium",
        "source": "staff",
        "resident_asked": opener == "OPENER_RESIDENT",
    }
    after |= {"permission_to_enter": False, "property_id": 10, "unit_id": 100}
    assert await audited(client, administrator, "ticket", ticket["entity_id"]) == [
        entry("staff:30", "ticket.opened", {}, after)
    ]


async def test_a_residents_ticket_begins_to_be_quiet_and_others_never_do(
    client: Any, staff: Any, database: Database
) -> None:
    ticket = await open_ticket(client, staff, by="OPENER_RESIDENT")
    created_at = datetime.datetime.fromisoformat(ticket["created_at"])
    assert await quiet_of(database, ticket["entity_id"]) == (created_at, created_at + datetime.timedelta(hours=72))
    assert await quiet_of(database, (await open_ticket(client, staff))["entity_id"]) == (None, None)


async def test_the_same_request_has_one_effect_and_another_with_its_key_is_refused(
    client: Any, staff: Any, database: Database
) -> None:
    key = secrets.token_hex(8)
    first, again = [await open_ticket(client, staff, title=key, idempotency_key=key) for _ in range(2)]
    assert first == again
    count = await database.value(Statement(text(f"SELECT count(*) FROM ticket WHERE title = '{key}'")))
    assert count == 1 and len(await events_of(database, first["entity_id"])) == 1
    refused = await refusal_of(open_ticket(client, staff, title="Another", idempotency_key=key))
    assert (refused.status, refused.code) == (409, "idempotency_mismatch")


@pytest.mark.parametrize(
    ("sent", "status", "about"),
    [
        ({"title": " "}, 400, "title"),
        ({"title": "x" * 151}, 422, "title"),
        ({"title": "nothing\0"}, 400, "NUL"),
        ({"category": "Plumbers"}, 422, "category"),
        ({"priority": "Urgent"}, 422, "priority"),
        ({"room": "x" * 201}, 400, "room"),
        ({"description": "x" * 20_001}, 400, "description"),
        ({"photo_url": "javascript:alert(1)"}, 400, "photo_url"),
        ({"by": 9}, 422, "by"),
        ({"idempotency_key": ""}, 400, "idempotency_key"),
        ({"property_id": 0}, 404, "company has no property"),
        ({"property_id": 10**15}, 404, "company has no property"),
        ({"property_id": 20}, 404, "company has no property"),
        ({"unit_id": 200}, 404, "property has no unit"),
        ({"unit_id": -1}, 404, "property has no unit"),
        ({"unit_id": 100, "asset_id": 600}, 404, "property has no asset"),
    ],
)
@pytest.mark.usefixtures("reached")
async def test_a_bad_request_is_refused_by_name_and_leaves_nothing(
    client: Any, staff: Any, database: Database, sent: dict[str, Any], status: int, about: str
) -> None:
    count = Statement(text("SELECT (SELECT count(*) FROM ticket) + (SELECT count(*) FROM outbox)"))
    before = await database.value(count)
    refused = await refusal_of(client("OpenTicket", opening(**sent), staff))
    assert refused.status == status and about in refused.message and "Urgent" not in refused.message
    assert await database.value(count) == before


async def test_another_company_opens_nothing_here(client: Any, database: Database) -> None:
    stranger = Identity(OPERATOR, "operator", 8)
    refused = await refusal_of(client("OpenTicket", opening(unit_id=100), stranger))
    assert (refused.status, refused.code) == (404, "not_found")


async def test_the_api_serves_it_to_its_company_alone(client: Any, staff: Any, stranger: Any) -> None:
    ticket = await open_ticket(client, staff)
    assert json.loads(await served(client, ticket["entity_id"]))["entity_id"] == ticket["entity_id"]
    request = tickets_pb2.GetTicketRequest(ticket_id=ticket["entity_id"])
    assert (await refusal_of(client("GetTicket", request, stranger))).status == 404
