"""PATCH /tickets/{ticket_id} (spec 3.1, 4.2) against a running svc-tickets."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

import pytest
from sqlalchemy import select, text, update

from chassis.auth.identity import INTEGRATION, OPERATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from svc_tickets.tickets.rules.fields import STATUSES

from .changing import NOTE, SENT, TABLE, body_of, change, events_of, history_of, opened, served, until_it_waits

pytestmark = pytest.mark.usefixtures("places")


@pytest.mark.parametrize("after", STATUSES)
@pytest.mark.parametrize("before", STATUSES)
async def test_every_status_follows_every_other(client: Any, database: Database, before: str, after: str) -> None:
    ticket_id = await opened(client)
    if before != "Open":
        await change(client, ticket_id, SENT[before])
    ticket, earlier = json.loads(await served(client, ticket_id)), await events_of(database, ticket_id)
    reply = await change(client, ticket_id, SENT[after])
    changed = json.loads(reply.body)
    assert (reply.status, reply.replayed, changed["status"]) == (200, False, after)
    assert reply.body == await served(client, ticket_id)
    # Completed again is another closing; any other status again, without anything new, changes nothing.
    changes = before != after or after == "Completed"
    assert (changed["updated_at"] > ticket["updated_at"]) is changes
    closed_at = changed["updated_at"] if changes else ticket["cancelled_at"]
    assert changed == ticket | {
        "status": after,
        "updated_at": changed["updated_at"],
        "completed_at": closed_at if after == "Completed" else None,
        "cancelled_at": closed_at if after == "Cancelled" else None,
        "cancellation_reason_code": "duplicate_ticket" if after == "Cancelled" else None,
    }
    fired = (await events_of(database, ticket_id))[len(earlier) :]
    assert len(fired) == changes
    for event in fired:
        assert (event.public.event, event.public.data) == ("ticket.status_changed", reply.body)
        assert event.public.change == f'{{"field":"status","from":"{before}","to":"{after}"}}'.encode()
        assert event.occurred_at.ToDatetime().isoformat(timespec="microseconds") + "Z" == changed["updated_at"]
        assert (event.request_id, event.company_id) == ("req-test", 7)


@pytest.mark.parametrize("before", STATUSES)
async def test_every_combination_of_fields_is_answered_as_the_contract_says(client: Any, before: str) -> None:
    ticket_id = await opened(client)
    await change(client, ticket_id, SENT[before])
    for fields, answer in TABLE:
        if answer == 200:
            fresh = await opened(client)
            await change(client, fresh, SENT[before])
            reply = await change(client, fresh, body_of(fields))
            assert (reply.status, json.loads(reply.body)["status"]) == (200, fields[0]), fields
            continue
        with pytest.raises(Refusal) as refused:
            await change(client, ticket_id, body_of(fields))
        assert (refused.value.status, refused.value.code) == (answer, "invalid_request"), fields
    assert json.loads(await served(client, ticket_id))["status"] == before


@pytest.mark.parametrize(
    ("sent", "status", "about"),
    [
        (b"", 400, "body"),
        (b"[]", 400, "body"),
        (b'"Open"', 400, "body"),
        (b'{"status":"Open","status":"Open"}', 400, "twice"),
        ({}, 400, "status"),
        ({"status": None}, 400, "status"),
        ({"status": 5}, 400, "status"),
        ({"status": ["Open"]}, 400, "status"),
        ({"status": "Closed"}, 422, "status"),
        ({"status": "open"}, 422, "status"),
        ({"status": "Open "}, 422, "status"),
        ({"status": ""}, 422, "status"),
        ({"status": "Open", "nonsense": 1}, 422, "keys"),
        ({"status": "Open", "nonsense": None}, 422, "keys"),
        ({"status": "Open", "priority": "High"}, 422, "keys"),
        ({"nonsense": 1}, 422, "keys"),
        ({"status": "Open", "note": 5}, 400, "note"),
        ({"status": "Completed", "note": [NOTE]}, 400, "note"),
        ({"status": "Completed", "note": "Replaced the washer . . !"}, 422, "note"),
        ({"status": "Completed", "note": "done " * 4001}, 400, "note"),
        ({"status": "Completed", "note": "a b c d e \u0000"}, 400, "NUL"),
        ({"status": "Cancelled", "cancellation_reason_code": "bored"}, 422, "cancellation_reason_code"),
        ({"status": "Open", "cancellation_reason_code": "bored"}, 422, "cancellation_reason_code"),
        ({"status": "Cancelled", "cancellation_reason_code": 7}, 400, "cancellation_reason_code"),
        ({"status": "Cancelled", "cancellation_reason_code": "see_notes", "cancellation_notes": {}}, 400, "notes"),
    ],
)
async def test_a_bad_body_is_refused_by_name_and_leaves_the_ticket(
    client: Any, sent: Any, status: int, about: str
) -> None:
    ticket_id = await opened(client)
    before, key = await served(client, ticket_id), secrets.token_hex(8)
    with pytest.raises(Refusal) as refused:
        await change(client, ticket_id, sent, key)
    assert (refused.value.status, refused.value.code) == (status, "invalid_request")
    message = refused.value.message
    assert about in message and message.endswith(".") and ". " not in message
    assert "bored" not in message and "Closed" not in message, "it must not repeat what the caller sent"
    assert await served(client, ticket_id) == before
    assert (await change(client, ticket_id, SENT["On Hold"], key)).status == 200, "the key was not used up"


async def test_null_stands_for_absent(client: Any) -> None:
    nulls = dict.fromkeys(("note", "cancellation_reason_code", "cancellation_notes"))
    assert (await change(client, await opened(client), {"status": "On Hold"} | nulls)).status == 200


async def test_the_longest_note_is_kept_as_it_came(client: Any, operator: Any) -> None:
    ticket_id, note = await opened(client), (" \U0001f6bf é\n" * 4000)[:19_992] + "漏水 fixed"
    assert len(note) == 20_000
    await change(client, ticket_id, {"status": "Completed", "note": note})
    assert [entry.note for entry in await history_of(client, operator, ticket_id)] == [note]


async def test_a_ticket_that_is_not_there_and_one_of_another_company_answer_alike(client: Any, stranger: Any) -> None:
    theirs = await opened(client, stranger, unit_id=200)
    messages = set()
    for ticket_id in (theirs, 10**15, 2**63 - 1, 0, -1):
        with pytest.raises(Refusal) as refused:
            await change(client, ticket_id, SENT["On Hold"])
        assert (refused.value.status, refused.value.code) == (404, "not_found")
        messages.add(refused.value.message)
    assert len(messages) == 1
    assert json.loads(await served(client, theirs, stranger))["status"] == "Open"


async def test_checks_come_in_their_order(client: Any, nobody: Any, stranger: Any) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    theirs = await opened(client, stranger, unit_id=200)
    await change(client, ticket_id, SENT["On Hold"], key)
    for sent, target, who, code in (
        ({"status": "Nothing"}, ticket_id, None, "invalid_request"),
        (SENT["Open"], ticket_id, None, "idempotency_mismatch"),
        (SENT["On Hold"], theirs, None, "idempotency_mismatch"),
        (SENT["On Hold"], theirs, nobody, "idempotency_mismatch"),
        ({"status": "Open", "note": NOTE}, theirs, nobody, "invalid_request"),
    ):
        with pytest.raises(Refusal) as refused:
            await change(client, target, sent, key, who)
        assert refused.value.code == code
    for target in (ticket_id, theirs):
        with pytest.raises(Refusal) as refused:
            await change(client, target, SENT["Open"], None, nobody)
        assert (refused.value.status, refused.value.code) == (422, "created_by_missing")


@pytest.fixture
async def strict(database: Database, client: Any) -> Identity:
    """A caller of a company that requires a photo and has units of its own."""
    company_id = secrets.randbelow(10**9) + 1000
    for statement in (
        f"INSERT INTO property (id, version, company_id, name) VALUES ({company_id}, 1, {company_id}, 'Strict')",
        "INSERT INTO unit (id, version, company_id, property_id, name) "
        f"VALUES ({company_id}, 1, {company_id}, {company_id}, 'Unit')",
    ):
        await database.execute(Statement(text(statement)))
    policy = pb.UpdateTicketPolicyRequest(photo_required_to_complete=True)
    await client("UpdateTicketPolicy", policy, Identity(OPERATOR, "operator", company_id))
    return Identity(INTEGRATION, "gateway", company_id, 5, "write", 3)


async def with_photo(database: Database, ticket_id: int, photo_url: str | None) -> None:
    await database.execute(Statement(update(t.ticket).values(photo_url=photo_url).where(t.ticket.c.id == ticket_id)))


async def test_a_company_that_wants_a_photo_gets_one_before_completion(
    client: Any, database: Database, strict: Identity
) -> None:
    ticket_id = await opened(client, strict, unit_id=strict.company_id)
    for photo_url in (None, "", "  \n"):
        await with_photo(database, ticket_id, photo_url)
        with pytest.raises(Refusal) as refused:
            await change(client, ticket_id, SENT["Completed"], None, strict)
        assert refused.value.status == 422 and "photo_url" in refused.value.message
    # Other statuses need no photo, and the note is checked first.
    for status in ("On Hold", "Cancelled", "In Progress"):
        assert (await change(client, ticket_id, SENT[status], None, strict)).status == 200
    with pytest.raises(Refusal, match="note"):
        await change(client, ticket_id, {"status": "Completed", "note": "done"}, None, strict)
    await with_photo(database, ticket_id, "https://photos.example/1.jpg")
    assert (await change(client, ticket_id, SENT["Completed"], None, strict)).status == 200
    # A ticket that is already Completed is checked like any other.
    await with_photo(database, ticket_id, None)
    with pytest.raises(Refusal, match="photo_url"):
        await change(client, ticket_id, SENT["Completed"], None, strict)
    lax = pb.UpdateTicketPolicyRequest(photo_required_to_complete=False)
    await client("UpdateTicketPolicy", lax, Identity(OPERATOR, "operator", strict.company_id))
    assert (await change(client, ticket_id, SENT["Completed"], None, strict)).status == 200


async def test_the_policy_holds_as_it_is_when_the_ticket_is_held(
    client: Any, database: Database, strict: Identity
) -> None:
    """The change waits for its ticket's lock; the policy that changes meanwhile decides."""
    ticket_id = await opened(client, strict, unit_id=strict.company_id)
    async with database.transaction() as holder:
        await holder.execute(Statement(select(t.ticket.c.id).where(t.ticket.c.id == ticket_id).with_for_update()))
        waiting = asyncio.create_task(change(client, ticket_id, SENT["Completed"], None, strict))
        await until_it_waits(database)
        lax = pb.UpdateTicketPolicyRequest(photo_required_to_complete=False)
        await client("UpdateTicketPolicy", lax, Identity(OPERATOR, "operator", strict.company_id))
    assert (await waiting).status == 200


def _cancelled(code: str, notes: str | None = None) -> dict[str, Any]:
    return body_of(("Cancelled", None, code, notes))


async def test_cancelled_again_is_silent_only_with_the_stored_reason_and_notes(
    client: Any, database: Database, operator: Any
) -> None:
    ticket_id = await opened(client)
    # Each body twice: the second time it changes nothing.
    bodies = [
        _cancelled("duplicate_ticket"),
        _cancelled("wrong_property"),
        _cancelled("see_notes", NOTE),
        _cancelled("see_notes", NOTE + " twice"),
        _cancelled("see_notes", NOTE),
        _cancelled("duplicate_ticket"),
    ]
    tickets = []
    for sent in bodies:
        reply = await change(client, ticket_id, sent)
        assert (await change(client, ticket_id, sent)).body == reply.body
        tickets.append(json.loads(reply.body))
        assert tickets[-1]["cancelled_at"] == tickets[-1]["updated_at"]
    assert sorted({ticket["cancelled_at"] for ticket in tickets}) == [ticket["cancelled_at"] for ticket in tickets]
    fired = (await events_of(database, ticket_id))[1:]
    assert [json.loads(event.public.data) for event in fired] == tickets
    changes = [json.loads(event.public.change) for event in fired]
    assert [(event_change["from"], event_change["to"]) for event_change in changes] == [
        ("Open", "Cancelled"),
        *[("Cancelled", "Cancelled")] * (len(bodies) - 1),
    ]
    assert [
        (entry.from_status, entry.to_status, entry.cancellation_reason_code, entry.note)
        for entry in await history_of(client, operator, ticket_id)
    ] == [
        (
            "Cancelled" if n else "Open",
            "Cancelled",
            sent["cancellation_reason_code"],
            sent.get("cancellation_notes", ""),
        )
        for n, sent in enumerate(bodies)
    ]


async def test_notes_of_an_earlier_cancellation_are_not_those_of_the_present_one(
    client: Any, database: Database
) -> None:
    ticket_id = await opened(client)
    await change(client, ticket_id, _cancelled("see_notes", NOTE))
    await change(client, ticket_id, SENT["Open"])
    first = json.loads((await change(client, ticket_id, _cancelled("see_notes", NOTE + " twice"))).body)
    second = json.loads((await change(client, ticket_id, _cancelled("see_notes", NOTE))).body)
    assert second["cancelled_at"] > first["cancelled_at"]
    assert len(await events_of(database, ticket_id)) == 1 + 4


async def test_the_same_cancellations_at_once_are_one(client: Any, database: Database) -> None:
    ticket_id = await opened(client)
    sent = _cancelled("see_notes", NOTE)
    replies = await asyncio.gather(*(change(client, ticket_id, sent) for _ in range(20)))
    assert len({reply.body for reply in replies}) == 1
    assert len(await events_of(database, ticket_id)) == 2


async def test_completed_again_is_a_closing_each_time(client: Any, database: Database, operator: Any) -> None:
    ticket_id = await opened(client)
    replies = [await change(client, ticket_id, SENT["Completed"]) for _ in range(3)]
    tickets = [json.loads(reply.body) for reply in replies]
    assert len({ticket["completed_at"] for ticket in tickets}) == 3
    assert all(ticket["completed_at"] == ticket["updated_at"] for ticket in tickets)
    fired = (await events_of(database, ticket_id))[1:]
    assert [event.public.data for event in fired] == [reply.body for reply in replies]
    assert fired[-1].public.change == b'{"field":"status","from":"Completed","to":"Completed"}'
    assert [entry.note for entry in await history_of(client, operator, ticket_id)] == [NOTE] * 3


async def test_a_note_is_a_comment_of_the_ticket(client: Any, database: Database) -> None:
    ticket_id = await opened(client)
    reply = json.loads((await change(client, ticket_id, SENT["Completed"])).body)
    see_notes = {"status": "Cancelled", "cancellation_reason_code": "see_notes", "cancellation_notes": "  " + NOTE}
    await change(client, ticket_id, see_notes)
    comments = await database.rows(Statement(select(t.ticket_comment).where(t.ticket_comment.c.ticket_id == ticket_id)))
    assert [(comment["kind"], comment["body"]) for comment in comments] == [
        ("closing_note", NOTE),
        ("cancellation_notes", "  " + NOTE),
    ]
    assert all(
        (comment["administrator_id"], comment["api_key_id"], comment["company_id"]) == (3, 1, 7) for comment in comments
    )
    assert comments[0]["created_at"].isoformat(timespec="microseconds").replace("+00:00", "Z") == reply["completed_at"]


async def test_a_change_is_stamped_after_the_last_one_whatever_the_clock_says(client: Any, database: Database) -> None:
    ticket_id = await opened(client)
    future = "2090-01-01T00:00:00+00:00"
    await database.execute(Statement(text(f"UPDATE ticket SET updated_at = '{future}' WHERE id = {ticket_id}")))
    reply = json.loads((await change(client, ticket_id, SENT["Completed"])).body)
    assert reply["updated_at"] == reply["completed_at"] == "2090-01-01T00:00:00.000001Z"
    assert (await events_of(database, ticket_id))[-1].occurred_at.ToJsonString() == reply["updated_at"]


async def test_fifty_changes_of_one_ticket_at_once_come_one_after_the_other(
    client: Any, database: Database, operator: Any
) -> None:
    ticket_id = await opened(client)
    bodies = [SENT[STATUSES[number % 5]] for number in range(50)]
    replies = await asyncio.gather(*(change(client, ticket_id, sent) for sent in bodies))
    assert [reply.status for reply in replies] == [200] * 50
    history = await history_of(client, operator, ticket_id)
    instants = [entry.occurred_at.ToNanoseconds() for entry in history]
    assert instants == sorted(set(instants)), "each later than the one before"
    assert [entry.version for entry in history] == list(range(2, 2 + len(history)))
    assert [entry.from_status for entry in history] == ["Open", *(entry.to_status for entry in history[:-1])]
    last = json.loads(await served(client, ticket_id))
    assert last["status"] == history[-1].to_status
    moves = [(entry.from_status, entry.to_status) for entry in history]
    changes = [json.loads(event.public.change) for event in (await events_of(database, ticket_id))[1:]]
    assert [(event_change["from"], event_change["to"]) for event_change in changes] == moves
