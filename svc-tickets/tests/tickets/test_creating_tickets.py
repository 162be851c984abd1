"""POST /tickets (spec 4.2, 4.13) against a running svc-tickets."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

import pytest
from sqlalchemy import func, select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from chassis.writes import idempotency
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from testkit.event_contract import public_fields

from .changing import events_of

pytestmark = pytest.mark.usefixtures("places")


def body(**changes: Any) -> dict[str, Any]:
    return {"unit_id": 100, "title": "Tap drips", "category": "Plumbing"} | changes


async def create(client: Any, sent: object, key: str | None = None, who: Any = None) -> Any:
    raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    request = pb.CreateTicketRequest(idempotency_key=key or secrets.token_hex(8), body=raw)
    return (await client("CreateTicket", request, who)).reply


async def test_a_ticket_is_open_and_shaped_as_the_contract_says(client: Any) -> None:
    reply = await create(client, body(asset_id=500))
    ticket = json.loads(reply.body)
    assert (reply.status, reply.replayed) == (201, False)
    assert list(ticket) == public_fields("Ticket")
    assert ticket["status"] == "Open" and ticket["priority"] == "Medium" and ticket["description"] == ""
    assert ticket["property"] == {"id": 10, "name": "Elm Court", "external_id": "P10"}
    assert ticket["unit"] == {"id": 100, "name": "Unit 1A", "external_id": "U1"}
    assert ticket["unit_number"] == "1A" and ticket["source"] == "api"
    assert ticket["created_at"] == ticket["updated_at"] and len(ticket["created_at"]) == 27
    assert ticket["url"] == f"https://app.test/tickets/{ticket['entity_id']}"


async def test_the_get_serves_the_reply_to_the_byte(client: Any) -> None:
    reply = await create(client, body(title="Ünïcødé 漏水 🚿 تسريب"))
    ticket_id = json.loads(reply.body)["entity_id"]
    document = (await client("GetTicket", pb.GetTicketRequest(ticket_id=ticket_id))).document
    assert document.json == reply.body and document.entity_id == ticket_id and document.version == 1


async def test_ticket_numbers_count_within_one_property(client: Any) -> None:
    first, second = [json.loads((await create(client, body())).body)["ticket_number"] for _ in range(2)]
    assert second == first + 1


async def test_the_same_request_is_replayed_and_another_refused(client: Any) -> None:
    key = secrets.token_hex(8)
    first = await create(client, body(), key)
    again = await create(client, b'{ "category":"Plumbing", "title":"Tap drips", "unit_id":100 }', key)
    assert again.replayed and again.body == first.body and again.status == 201
    with pytest.raises(Refusal) as refused:
        await create(client, body(title="Another"), key)
    assert (refused.value.status, refused.value.code) == (409, "idempotency_mismatch")


async def test_a_mismatch_wins_over_a_missing_unit(client: Any) -> None:
    key = secrets.token_hex(8)
    await create(client, body(), key)
    with pytest.raises(Refusal) as refused:
        await create(client, body(unit_id=0), key)
    assert refused.value.code == "idempotency_mismatch"


async def test_fifty_at_once_with_one_key_have_one_effect(client: Any, database: Database) -> None:
    key = secrets.token_hex(8)
    sent = body(title=f"Once {key}")
    outcomes = await asyncio.gather(*(create(client, sent, key) for _ in range(50)), return_exceptions=True)
    fresh = [outcome for outcome in outcomes if not isinstance(outcome, BaseException) and not outcome.replayed]
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(fresh) == 1
    assert all(isinstance(outcome, Refusal) and outcome.code == "idempotency_in_progress" for outcome in refused)
    count = Statement(select(func.count()).select_from(t.ticket).where(t.ticket.c.title == sent["title"]))
    assert await database.value(count) == 1


@pytest.mark.parametrize(
    ("sent", "status", "about"),
    [
        (b"", 400, "body"),
        (b"[]", 400, "body"),
        (b"\xff\xfe", 400, "body"),
        (b'{"unit_id":100,"unit_id":100,"title":"x","category":"HVAC"}', 400, "twice"),
        (b'{"unit_id":100,"title":"\\u0000","category":"HVAC"}', 400, "NUL"),
        (b'{"unit_id":100,"title":"\\ud800","category":"HVAC"}', 400, "Unicode"),
        (b"[" * 100_000, 400, "nested"),
        (b'{"unit_id":' + b"9" * 5000 + b',"title":"x","category":"HVAC"}', 404, "unit"),
        (b'{"unit_id":NaN,"title":"x","category":"HVAC"}', 400, "NaN"),
        (b" " * (256 * 1024 + 1), 400, "bytes"),
        (body(unit_id=None), 400, "unit_id"),
        (body(unit_id="100"), 400, "unit_id"),
        (body(unit_id=100.5), 400, "unit_id"),
        (body(unit_id=True), 400, "unit_id"),
        (body(title="  "), 400, "title"),
        (body(title=5), 400, "title"),
        (body(title="x" * 151), 422, "title"),
        (body(category="Plumbers"), 422, "category"),
        (body(category=1), 400, "category"),
        (body(priority="Urgent"), 422, "priority"),
        (body(description="x" * 20_001), 400, "description"),
        (body(status="Open"), 422, "status"),
        (body(status=None), 422, "status"),
        (body(status="Open", nonsense=1), 422, "status"),
        (body(nonsense=1), 400, "keys"),
        # Impossible ids, then ids that no record has; the service queries the owner of units and assets for the latter.
        (body(unit_id=0), 404, "unit"),
        (body(unit_id=-5), 404, "unit"),
        (body(unit_id=2**63), 404, "unit"),
        (body(unit_id=10**30), 404, "unit"),
        (body(unit_id=999), 404, "unit"),
        (body(unit_id=200), 404, "unit"),
        (body(asset_id=0), 404, "asset"),
        (body(asset_id=999), 404, "asset"),
        (body(asset_id=600), 404, "asset"),
    ],
)
@pytest.mark.usefixtures("catalog")
async def test_a_bad_body_is_refused_by_name(client: Any, sent: Any, status: int, about: str) -> None:
    with pytest.raises(Refusal) as refused:
        await create(client, sent)
    assert refused.value.status == status and about in refused.value.message
    assert refused.value.message.endswith(".") and "Urgent" not in refused.value.message


async def test_titles_count_code_points(client: Any) -> None:
    assert (await create(client, body(title="𝔸" * 150))).status == 201


async def test_null_stands_for_absent(client: Any) -> None:
    assert (await create(client, body(asset_id=None, description=None, priority=None))).status == 201


async def test_a_key_without_administrator_creates_nothing(client: Any, nobody: Any) -> None:
    with pytest.raises(Refusal) as refused:
        await create(client, body(), who=nobody)
    assert (refused.value.status, refused.value.code) == (422, "created_by_missing")


async def test_an_earlier_use_of_the_key_is_checked_before_a_missing_administrator(
    client: Any, nobody: Any, database: Database
) -> None:
    """A key whose administrator is gone still gets the stored reply."""
    key = secrets.token_hex(8)
    first = await create(client, body(), key)
    again = await create(client, body(), key, nobody)
    assert again.replayed and again.body == first.body
    for sent, code in ((body(title="Another"), "idempotency_mismatch"), (body(unit_id=0), "idempotency_mismatch")):
        with pytest.raises(Refusal) as refused:
            await create(client, sent, key, nobody)
        assert refused.value.code == code
    held = idempotency.claim(nobody, other := secrets.token_hex(8), "POST /tickets", b"").lock
    async with database.transaction(f"SELECT pg_advisory_xact_lock({held})"):
        for sent in (body(), body(unit_id=0)):
            with pytest.raises(Refusal) as refused:
                await create(client, sent, other, nobody)
            assert refused.value.code == "idempotency_in_progress"
    with pytest.raises(Refusal) as refused:
        await create(client, body(unit_id=0), other, nobody)
    assert refused.value.code == "created_by_missing"


async def test_the_event_holds_the_reply_to_the_byte(client: Any, database: Database) -> None:
    reply = await create(client, body(title="Evented"))
    entity_id = json.loads(reply.body)["entity_id"]
    mine = await events_of(database, entity_id)
    assert len(mine) == 1
    assert mine[0].public.event == "ticket.created" and mine[0].public.data == reply.body
    assert mine[0].request_id == "req-test" and mine[0].company_id == 7
