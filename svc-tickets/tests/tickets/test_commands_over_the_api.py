"""Integrations assign tickets and comment on them by the commands of people."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text

from chassis.auth.identity import Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.tickets.v1 import ticket_commands_pb2 as pb

from .changing import events_of, opened, refusal_of, served
from .commands import audited, comments_of, entry, open_ticket, quiet_of

pytestmark = pytest.mark.usefixtures("places")
COMMENT = {"text": "The part comes on Thursday."}
BODIES: dict[str, dict[str, Any]] = {"SetTicketAssignment": {"assignee_id": 30}, "CreateTicketComment": COMMENT}


async def send(client: Any, rpc: str, ticket_id: int, body: object, key: str | None = None, who: Any = None) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = getattr(pb, f"{rpc}Request")(ticket_id=ticket_id, idempotency_key=key or secrets.token_hex(8), body=raw)
    return (await client(rpc, request, who)).reply


async def assign(client: Any, ticket_id: int, **body: Any) -> Any:
    reply = await send(client, "SetTicketAssignment", ticket_id, body)
    assert reply.body == await served(client, ticket_id)
    return json.loads(reply.body)


@pytest.fixture
async def held_vendor(database: Database) -> AsyncIterator[int]:
    await database.execute(Statement(text("UPDATE vendor SET on_hold = true WHERE id = 40")))
    yield 40
    await database.execute(Statement(text("UPDATE vendor SET on_hold = false WHERE id = 40")))


@pytest.mark.parametrize("rpc", BODIES)
async def test_a_write_is_done_once_and_audited_as_the_keys(
    client: Any, staff: Any, administrator: Any, database: Database, rpc: str
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    first = await send(client, rpc, ticket_id, BODIES[rpc], key)
    assert (first.status, first.replayed) == (201 if rpc == "CreateTicketComment" else 200, False)
    await send(client, "SetTicketAssignment", ticket_id, {"vendor_id": 40})  # what changed since is no matter
    again = await send(client, rpc, ticket_id, BODIES[rpc], key)
    assert (again.status, again.replayed, again.body) == (first.status, True, first.body)
    other = BODIES["CreateTicketComment"] | {"text": "Another"} if rpc == "CreateTicketComment" else {}
    assert (await refusal_of(send(client, rpc, ticket_id, other, key))).code == "idempotency_mismatch"
    assert [event.public.event for event in await events_of(database, ticket_id)] == ["ticket.created"]
    entries = await audited(client, administrator, "ticket", ticket_id)
    action = {"SetTicketAssignment": "ticket.assigned", "CreateTicketComment": "ticket.commented"}[rpc]
    assert (entries[0]["actor"], entries[0]["action"], len(entries)) == ("caller:1", action, 2)


@pytest.mark.parametrize("rpc", BODIES)
async def test_another_companys_ticket_is_unknown_and_a_key_needs_an_administrator(
    client: Any, administrator: Any, nobody: Identity, stranger: Identity, rpc: str
) -> None:
    body = {} if rpc == "SetTicketAssignment" else BODIES[rpc]
    ticket_id = await opened(client)
    before = await served(client, ticket_id)
    unknown = await refusal_of(send(client, rpc, 10**15, body, None, stranger))
    theirs = await refusal_of(send(client, rpc, ticket_id, body, None, stranger))
    assert (theirs.status, theirs.code, theirs.message) == (404, "not_found", unknown.message)
    for other_id in (ticket_id, 10**15):
        refused = await refusal_of(send(client, rpc, other_id, BODIES[rpc], None, nobody))
        assert (refused.status, refused.code) == (422, "created_by_missing")
    assert await served(client, ticket_id) == before
    assert await audited(client, administrator, "ticket", ticket_id) == []


async def test_an_assignment_is_replaced_as_a_whole(client: Any, administrator: Any) -> None:
    ticket_id = await opened(client)
    both = await assign(client, ticket_id, assignee_id=30, vendor_id=40)
    assert (both["assignee"]["id"], both["assigned_vendor"]["id"]) == (30, 40)
    same = await assign(client, ticket_id, assignee_id=30, vendor_id=40)
    assert same == both, "the same assignment changes nothing"
    vendor = await assign(client, ticket_id, assignee_id=None, vendor_id=40)
    assert (vendor["assignee"], vendor["assigned_vendor"]["id"]) == (None, 40)
    assert vendor["updated_at"] > both["updated_at"]
    nobody = await assign(client, ticket_id)
    assert (nobody["assignee"], nobody["assigned_vendor"]) == (None, None)
    assert [entry["after"] for entry in await audited(client, administrator, "ticket", ticket_id)] == [
        {"assignee_id": 30, "vendor_id": 40},
        {"assignee_id": None},
        {"vendor_id": None},
    ]


@pytest.mark.parametrize("body", [{"assignee_id": 31}, {"assignee_id": 10**15}, {"vendor_id": 0}, {"vendor_id": 2**70}])
@pytest.mark.usefixtures("reached")
async def test_nobody_else_can_be_assigned(client: Any, body: dict[str, Any]) -> None:
    """31 is another company's."""
    ticket_id = await opened(client)
    before = await served(client, ticket_id)
    (name,) = body
    refused = await refusal_of(send(client, "SetTicketAssignment", ticket_id, body))
    assert (refused.status, refused.code, refused.field) == (404, "not_found", name)
    assert await served(client, ticket_id) == before


async def test_a_vendor_on_hold_gets_no_new_work(client: Any, database: Database, held_vendor: int) -> None:
    ticket_id = await opened(client)
    refused = await refusal_of(send(client, "SetTicketAssignment", ticket_id, {"vendor_id": held_vendor}))
    assert (refused.status, refused.code, refused.field) == (422, "invalid_request", "vendor_id")
    await database.execute(Statement(text("UPDATE vendor SET on_hold = false WHERE id = 40")))
    await assign(client, ticket_id, vendor_id=held_vendor)
    await database.execute(Statement(text("UPDATE vendor SET on_hold = true WHERE id = 40")))
    kept = await assign(client, ticket_id, vendor_id=held_vendor, assignee_id=30)
    assert kept["assigned_vendor"]["id"] == held_vendor, "the work that it has stays"


@pytest.mark.parametrize(
    ("rpc", "body", "field", "status"),
    [
        ("SetTicketAssignment", b"[]", "", 400),
        ("SetTicketAssignment", {"assignee": 30}, "", 400),
        ("SetTicketAssignment", {"assignee_id": "30"}, "assignee_id", 400),
        ("SetTicketAssignment", {"assignee_id": True}, "assignee_id", 400),
        ("SetTicketAssignment", {"vendor_id": 1.5}, "vendor_id", 400),
        ("CreateTicketComment", {}, "text", 400),
        ("CreateTicketComment", {"text": None}, "text", 400),
        ("CreateTicketComment", {"text": " \u200b"}, "text", 400),
        ("CreateTicketComment", {"text": "x" * 20_001}, "text", 400),
        ("CreateTicketComment", {"text": "a\0b"}, "", 400),
        ("CreateTicketComment", COMMENT | {"author": "owner"}, "author", 422),
        ("CreateTicketComment", COMMENT | {"author": 5}, "author", 400),
        ("CreateTicketComment", COMMENT | {"created_at": "2026-01-01T00:00:00Z"}, "", 400),
    ],
)
async def test_a_bad_body_is_refused_and_changes_nothing(
    client: Any, staff: Any, rpc: str, body: object, field: str, status: int
) -> None:
    ticket_id = await opened(client)
    before = await served(client, ticket_id)
    refused = await refusal_of(send(client, rpc, ticket_id, body))
    assert (refused.status, refused.code) == (status, "invalid_request")
    assert not field or refused.field == field
    assert await served(client, ticket_id) == before and await comments_of(client, staff, ticket_id) == []


@pytest.mark.parametrize("author", ["staff", "vendor", "resident", None])
async def test_a_comment_is_answered_and_shown_to_people(
    client: Any, staff: Any, administrator: Any, database: Database, author: str | None
) -> None:
    ticket = await open_ticket(client, staff, by="OPENER_RESIDENT")
    ticket_id, quiet = ticket["entity_id"], await quiet_of(database, ticket["entity_id"])
    before = await served(client, ticket_id)
    comment = json.loads((await send(client, "CreateTicketComment", ticket_id, COMMENT | {"author": author})).body)
    author = author or "staff"
    assert list(comment) == [
        *("schema_version", "entity_type", "entity_id", "ticket_id", "text", "author", "created_at")
    ]
    assert (comment["entity_type"], comment["ticket_id"], comment["author"]) == ("ticket_comment", ticket_id, author)
    assert await comments_of(client, staff, ticket_id) == [("comment", COMMENT["text"], author, "caller:1")]
    assert await served(client, ticket_id) == before
    assert (await quiet_of(database, ticket_id) != quiet) is (author != "resident")
    after = {"comment_id": comment["entity_id"], "author": author}
    assert (await audited(client, administrator, "ticket", ticket_id))[-1] == entry(
        "caller:1", "ticket.commented", {}, after
    )


async def test_many_at_once_are_all_done(client: Any, staff: Any) -> None:
    ticket_id = await opened(client)
    await asyncio.gather(
        *(send(client, "CreateTicketComment", ticket_id, {"text": f"No. {number}"}) for number in range(20)),
        *(send(client, "SetTicketAssignment", ticket_id, {"vendor_id": 40} if n % 2 else {}) for n in range(10)),
    )
    texts = [body for _, body, _, _ in await comments_of(client, staff, ticket_id)]
    assert sorted(texts) == sorted(f"No. {number}" for number in range(20))
