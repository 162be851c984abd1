"""PATCH /tickets/{ticket_id} (spec 3.1, 4.2) against a running svc-tickets."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest
from sqlalchemy import select

from chassis.database import Database
from chassis.identity import Identity
from chassis.refusals import Refusal
from chassis.statements import Statement
from makeready.events.v1.events_pb2 import Event
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import rules
from svc_tickets import tables as t

pytestmark = pytest.mark.usefixtures("places")

NOTE = "Replaced the washer and tested it"
SENT: dict[str, dict[str, Any]] = {
    "Open": {"status": "Open"},
    "In Progress": {"status": "In Progress"},
    "On Hold": {"status": "On Hold"},
    "Completed": {"status": "Completed", "note": NOTE},
    "Cancelled": {"status": "Cancelled", "cancellation_reason_code": "duplicate_ticket"},
}


async def opened(client: Any, who: Identity | None = None, unit_id: int = 100) -> dict[str, Any]:
    body = json.dumps({"unit_id": unit_id, "title": "Tap drips", "category": "Plumbing"}).encode()
    request = pb.CreateTicketRequest(idempotency_key=secrets.token_hex(8), body=body)
    ticket: dict[str, Any] = json.loads((await client("CreateTicket", request, who)).reply.body)
    return ticket


async def change(client: Any, ticket_id: int, sent: object, key: str | None = None, who: Any = None) -> Any:
    raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    request = pb.ChangeTicketStatusRequest(ticket_id=ticket_id, idempotency_key=key or secrets.token_hex(8), body=raw)
    return (await client("ChangeTicketStatus", request, who)).reply


async def served(client: Any, ticket_id: int) -> bytes:
    document = (await client("GetTicket", pb.GetTicketRequest(ticket_id=ticket_id))).document
    json_: bytes = document.json
    return json_


async def events_of(database: Database, ticket_id: int) -> list[Event]:
    rows = await database.rows(Statement(select(t.outbox.c.message).order_by(t.outbox.c.event_id)))
    events = [Event.FromString(row["message"]) for row in rows]
    return [event for event in events if event.public.entity_id == ticket_id]


@pytest.mark.parametrize("after", rules.STATUSES)
@pytest.mark.parametrize("before", rules.STATUSES)
async def test_every_status_follows_every_other(client: Any, database: Database, before: str, after: str) -> None:
    ticket = await opened(client)
    ticket_id = ticket["entity_id"]
    if before != "Open":
        ticket = json.loads((await change(client, ticket_id, SENT[before])).body)
    reply = await change(client, ticket_id, SENT[after])
    found = json.loads(reply.body)
    assert (reply.status, reply.replayed, found["status"]) == (200, False, after)
    assert reply.body == await served(client, ticket_id)
    closed = {name: found[name] for name in ("completed_at", "cancelled_at", "cancellation_reason_code")}
    stayed = before == after
    instant = ticket["updated_at"] if stayed else found["updated_at"]
    assert closed == {
        "completed_at": instant if after == "Completed" else None,
        "cancelled_at": instant if after == "Cancelled" else None,
        "cancellation_reason_code": "duplicate_ticket" if after == "Cancelled" else None,
    }
    # A note is always new; the same status with nothing new changes nothing.
    assert (found["updated_at"] > ticket["updated_at"]) is (not stayed or after == "Completed")
    rest = {name for name in found if name not in ("status", "updated_at", *closed)}
    assert {name: found[name] for name in rest} == {name: ticket[name] for name in rest}
    event = (await events_of(database, ticket_id))[-1]
    if stayed:
        assert json.loads(event.public.change or b"{}").get("to") in (None, before)
    else:
        assert event.public.event == "ticket.status_changed" and event.public.data == reply.body
        assert event.public.change == f'{{"field":"status","from":"{before}","to":"{after}"}}'.encode()
        assert event.occurred_at.ToJsonString() == found["updated_at"] and event.request_id == "req-test"


@pytest.mark.parametrize(
    ("sent", "status", "about"),
    [
        (b"", 400, "body"),
        (b"[]", 400, "body"),
        ({}, 400, "status"),
        ({"status": None}, 400, "status"),
        ({"status": 5}, 400, "status"),
        ({"status": "Closed"}, 422, "status"),
        ({"status": "open"}, 422, "status"),
        ({"status": "Open", "nonsense": 1}, 422, "keys"),
        ({"status": "Open", "nonsense": None}, 422, "keys"),
        ({"nonsense": 1}, 422, "keys"),
        ({"status": "Open", "note": NOTE}, 422, "note"),
        ({"status": "Open", "note": ""}, 422, "note"),
        ({"status": "Open", "note": 5}, 400, "note"),
        ({"status": "In Progress", "cancellation_reason_code": "see_notes"}, 422, "cancellation_reason_code"),
        ({"status": "On Hold", "cancellation_notes": NOTE}, 422, "cancellation_notes"),
        ({"status": "Completed"}, 422, "note"),
        ({"status": "Completed", "note": None}, 422, "note"),
        ({"status": "Completed", "note": "Replaced the washer . . !"}, 422, "note"),
        ({"status": "Completed", "note": "done " * 4001}, 400, "note"),
        ({"status": "Completed", "note": NOTE, "cancellation_reason_code": "see_notes"}, 422, "reason_code"),
        ({"status": "Completed", "note": NOTE, "cancellation_notes": NOTE}, 422, "cancellation_notes"),
        ({"status": "Cancelled"}, 422, "cancellation_reason_code"),
        ({"status": "Cancelled", "note": NOTE}, 422, "note"),
        ({"status": "Cancelled", "cancellation_reason_code": "bored"}, 422, "cancellation_reason_code"),
        ({"status": "Cancelled", "cancellation_reason_code": 7}, 400, "cancellation_reason_code"),
        ({"status": "Cancelled", "cancellation_notes": NOTE}, 422, "cancellation_reason_code"),
        ({"status": "Cancelled", "cancellation_reason_code": "see_notes"}, 422, "cancellation_notes"),
        (
            {"status": "Cancelled", "cancellation_reason_code": "see_notes", "cancellation_notes": "too few words"},
            422,
            "cancellation_notes",
        ),
        (
            {"status": "Cancelled", "cancellation_reason_code": "wrong_property", "cancellation_notes": NOTE},
            400,
            "cancellation_notes",
        ),
    ],
)
async def test_a_bad_change_is_refused_by_name_and_leaves_the_ticket(
    client: Any, database: Database, sent: Any, status: int, about: str
) -> None:
    ticket_id = (await opened(client))["entity_id"]
    before, key = await served(client, ticket_id), secrets.token_hex(8)
    with pytest.raises(Refusal) as refused:
        await change(client, ticket_id, sent, key)
    assert (refused.value.status, refused.value.code) == (status, "invalid_request")
    message = refused.value.message
    assert about in message and message.endswith(".") and ". " not in message
    assert await served(client, ticket_id) == before
    assert (await change(client, ticket_id, SENT["On Hold"], key)).status == 200, "the key was not used up"
