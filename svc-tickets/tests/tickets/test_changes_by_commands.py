"""Back-office commands on stored tickets: assign, comment, photo, status; against a running svc-tickets."""

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
from makeready.tickets.v1 import ticket_commands_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets.tickets.rules import fields

from .changing import NOTE, change, events_of, history_of, opened, refusal_of, served
from .commands import CHANGES, audited, comments_of, entry, open_ticket, quiet_of, request_of, run_command

pytestmark = pytest.mark.usefixtures("places")

CANCELLED = {"status": "Cancelled", "cancellation_reason_code": "duplicate_ticket"}


@pytest.fixture
async def ticket_id(client: Any) -> int:
    return await opened(client)


@pytest.fixture
async def held_vendor(database: Database) -> Any:
    await database.execute(Statement(text("UPDATE vendor SET on_hold = true WHERE id = 40")))
    yield 40
    await database.execute(Statement(text("UPDATE vendor SET on_hold = false WHERE id = 40")))


# All commands


@pytest.mark.parametrize("rpc", CHANGES)
async def test_the_answer_is_what_the_get_serves_to_the_byte(client: Any, staff: Any, ticket_id: int, rpc: str) -> None:
    before = await served(client, ticket_id)
    answer = await run_command(client, rpc, staff, ticket_id=ticket_id, **CHANGES[rpc])
    assert answer == await served(client, ticket_id)
    assert (answer == before) is (rpc == "CommentOnTicket")


@pytest.mark.parametrize("rpc", CHANGES)
async def test_a_retry_answers_the_same_and_changes_nothing(
    client: Any, staff: Any, administrator: Any, database: Database, ticket_id: int, rpc: str
) -> None:
    key = secrets.token_hex(8)
    sent = {"ticket_id": ticket_id, "idempotency_key": key, **CHANGES[rpc]}
    first, again = [await run_command(client, rpc, staff, **sent) for _ in range(2)]
    assert first == again
    assert len(await audited(client, administrator, "ticket", ticket_id)) == 1
    assert len(await events_of(database, ticket_id)) == (2 if rpc == "SetTicketStatus" else 1)
    other = await opened(client)
    refused = await refusal_of(run_command(client, rpc, staff, **sent | {"ticket_id": other}))
    assert (refused.status, refused.code) == (409, "idempotency_mismatch")
    assert await audited(client, administrator, "ticket", other) == []


@pytest.mark.parametrize("rpc", CHANGES)
@pytest.mark.parametrize("fault", ["unknown", "of another company", "impossible"])
async def test_a_ticket_that_the_company_does_not_have_is_not_found(
    client: Any, staff: Any, ticket_id: int, rpc: str, fault: str
) -> None:
    who = Identity(OPERATOR, "operator", 8) if fault == "of another company" else staff
    unknown_id = {"unknown": 10**12, "of another company": ticket_id, "impossible": -1}[fault]
    sent = CHANGES[rpc] | ({"assignee_id": 31} if who is not staff and rpc == "AssignTicket" else {})
    refused = await refusal_of(run_command(client, rpc, who, ticket_id=unknown_id, **sent))
    assert (refused.status, refused.message) == (404, "The company has no ticket with that id; check the id.")


@pytest.mark.parametrize("rpc", [name for name in CHANGES if name != "CommentOnTicket"])
async def test_what_is_so_already_changes_nothing(
    client: Any, staff: Any, operator: Any, administrator: Any, ticket_id: int, rpc: str
) -> None:
    first = await run_command(client, rpc, staff, ticket_id=ticket_id, **CHANGES[rpc])
    assert await run_command(client, rpc, operator, ticket_id=ticket_id, **CHANGES[rpc]) == first
    assert [entry["actor"] for entry in await audited(client, administrator, "ticket", ticket_id)] == ["staff:30"]
    assert len(await comments_of(client, operator, ticket_id)) == (1 if rpc == "AddTicketPhoto" else 0)


async def test_many_at_once_come_one_after_the_other(
    client: Any, staff: Any, operator: Any, database: Database, ticket_id: int
) -> None:
    statuses = ["In Progress", "On Hold", "Open"] * 5
    acts = [run_command(client, "SetTicketStatus", staff, ticket_id=ticket_id, status=status) for status in statuses]
    acts += [change(client, ticket_id, {"status": status}) for status in statuses]
    acts += [run_command(client, "AssignTicket", staff, ticket_id=ticket_id, assignee_id=30)]
    await asyncio.gather(*acts)
    history = await history_of(client, operator, ticket_id)
    assert [entry.from_status for entry in history] == ["Open", *(entry.to_status for entry in history[:-1])]
    moves = [(entry.from_status, entry.to_status) for entry in history]
    changes = [json.loads(event.public.change) for event in (await events_of(database, ticket_id))[1:]]
    assert [(event_change["from"], event_change["to"]) for event_change in changes] == moves
    last = json.loads(await served(client, ticket_id))
    assert last["status"] == history[-1].to_status and last["assignee"] == {"id": 30, "name": "Ada Byrne"}


# Assignments


async def test_a_ticket_goes_to_staff_and_vendor_and_comes_back(
    client: Any, staff: Any, administrator: Any, ticket_id: int
) -> None:
    both = json.loads(
        await run_command(client, "AssignTicket", staff, ticket_id=ticket_id, assignee_id=30, vendor_id=40)
    )
    assert both["assignee"] == {"id": 30, "name": "Ada Byrne"}
    assert both["assigned_vendor"] == {"id": 40, "name": "Otis", "external_id": "V40"}
    without_vendor = json.loads(
        await run_command(client, "AssignTicket", administrator, ticket_id=ticket_id, clear=["vendor_id"])
    )
    assert without_vendor["assigned_vendor"] is None and without_vendor["assignee"] == both["assignee"]
    assert without_vendor["updated_at"] > both["updated_at"]
    assert await audited(client, administrator, "ticket", ticket_id) == [
        entry(
            "staff:30",
            "ticket.assigned",
            {"assignee_id": None, "vendor_id": None},
            {"assignee_id": 30, "vendor_id": 40},
        ),
        entry("administrator:3", "ticket.assigned", {"vendor_id": 40}, {"vendor_id": None}),
    ]


async def test_a_vendor_on_hold_gets_no_new_work_and_keeps_the_old(
    client: Any, staff: Any, administrator: Any, ticket_id: int, held_vendor: int
) -> None:
    refused = await refusal_of(run_command(client, "AssignTicket", staff, ticket_id=ticket_id, vendor_id=held_vendor))
    assert refused.status == 422 and "on hold" in refused.message
    assert await audited(client, administrator, "ticket", ticket_id) == []


async def test_a_vendor_who_has_the_ticket_when_the_hold_comes_keeps_it(
    client: Any, staff: Any, database: Database, ticket_id: int
) -> None:
    await run_command(client, "AssignTicket", staff, ticket_id=ticket_id, vendor_id=40)
    await database.execute(Statement(text("UPDATE vendor SET on_hold = true WHERE id = 40")))
    try:
        answer = await run_command(client, "AssignTicket", staff, ticket_id=ticket_id, vendor_id=40, assignee_id=30)
        assert json.loads(answer)["assigned_vendor"]["id"] == 40
        await run_command(client, "AssignTicket", staff, ticket_id=ticket_id, clear=["vendor_id"])
        again = await refusal_of(run_command(client, "AssignTicket", staff, ticket_id=ticket_id, vendor_id=40))
        assert again.status == 422
    finally:
        await database.execute(Statement(text("UPDATE vendor SET on_hold = false WHERE id = 40")))


@pytest.mark.parametrize(
    ("sent", "status", "about"),
    [
        ({}, 400, "assignee_id or vendor_id"),
        ({"clear": ["status"]}, 400, "clear"),
        ({"clear": ["vendor_id"], "vendor_id": 40}, 400, "set or cleared"),
        ({"assignee_id": 31}, 404, "no member of staff"),
        ({"assignee_id": 0}, 404, "no member of staff"),
        ({"vendor_id": 41}, 404, "no vendor"),
        ({"vendor_id": 10**15}, 404, "no vendor"),
    ],
)
@pytest.mark.usefixtures("reached")
async def test_a_bad_assignment_is_refused(
    client: Any, staff: Any, ticket_id: int, sent: dict[str, Any], status: int, about: str
) -> None:
    refused = await refusal_of(run_command(client, "AssignTicket", staff, ticket_id=ticket_id, **sent))
    assert refused.status == status and about in refused.message


async def test_who_looked_at_another_assignment_is_told_of_the_new_one(
    client: Any, staff: Any, administrator: Any, ticket_id: int
) -> None:
    sent = {"ticket_id": ticket_id, "assignee_id": 30, "from_assignee_id": 0, "from_vendor_id": 0}
    await run_command(client, "AssignTicket", staff, **sent)
    again = await run_command(client, "AssignTicket", administrator, **sent)
    assert json.loads(again)["assignee"]["id"] == 30, "it has come true"
    late = {"ticket_id": ticket_id, "clear": ["assignee_id"], "from_assignee_id": 0}
    refused = await refusal_of(run_command(client, "AssignTicket", administrator, **late))
    assert (refused.status, refused.field) == (422, "from_assignee_id")
    assert "meanwhile: Ada Byrne has the ticket now" in refused.message
    await run_command(client, "AssignTicket", staff, ticket_id=ticket_id, clear=["assignee_id"], from_assignee_id=30)
    late = {"ticket_id": ticket_id, "vendor_id": 40, "from_vendor_id": 41}
    refused = await refusal_of(run_command(client, "AssignTicket", administrator, **late))
    assert "meanwhile: no vendor has the ticket now" in refused.message
    assert len(await audited(client, administrator, "ticket", ticket_id)) == 2


# Comments and photos


async def test_all_that_was_said_and_shown_is_listed_with_whose_it_is(
    client: Any, staff: Any, operator: Any, administrator: Any, ticket_id: int
) -> None:
    await run_command(client, "CommentOnTicket", staff, ticket_id=ticket_id, body="It drips", by="AUTHOR_RESIDENT")
    photo = "https://photos.test/1.jpg"
    await run_command(client, "AddTicketPhoto", operator, ticket_id=ticket_id, photo_url=photo, by="AUTHOR_VENDOR")
    await run_command(client, "SetTicketStatus", administrator, ticket_id=ticket_id, status="Completed", note=NOTE)
    await change(client, ticket_id, {"status": "Completed", "note": f"{NOTE} again"})
    assert await comments_of(client, staff, ticket_id) == [
        ("comment", "It drips", "resident", "staff:30"),
        ("photo", photo, "vendor", "operator"),
        ("closing_note", NOTE, "staff", "administrator:3"),
        ("closing_note", f"{NOTE} again", "", "caller:1"),
    ]
    comment, photographed, _ = await audited(client, administrator, "ticket", ticket_id)
    assert comment == entry(
        "staff:30", "ticket.commented", {}, {"comment_id": comment["after"]["comment_id"], "author": "resident"}
    )
    assert photographed == entry("operator", "ticket.photographed", {"photo_url": None}, {"photo_url": photo})


async def test_the_ticket_shows_the_newest_photo_and_the_list_keeps_all(client: Any, staff: Any) -> None:
    first, *urls = [f"https://photos.test/{n}.jpg" for n in range(3)]
    ticket_id = (await open_ticket(client, staff, by="OPENER_RESIDENT", photo_url=first))["entity_id"]
    for url in urls:
        answer = json.loads(await run_command(client, "AddTicketPhoto", staff, ticket_id=ticket_id, photo_url=url))
        assert answer["photo_url"] == url
    assert await comments_of(client, staff, ticket_id) == [
        ("photo", first, "resident", "staff:30"),
        *(("photo", url, "staff", "staff:30") for url in urls),
    ]


@pytest.mark.parametrize(
    ("rpc", "sent", "about"),
    [
        ("CommentOnTicket", {"body": ""}, "body"),
        ("CommentOnTicket", {"body": " \n"}, "body"),
        ("CommentOnTicket", {"body": "x" * 20_001}, "body"),
        ("CommentOnTicket", {"body": "a\0b"}, "NUL"),
        ("AddTicketPhoto", {"photo_url": ""}, "photo_url"),
        ("AddTicketPhoto", {"photo_url": "photo.jpg"}, "photo_url"),
        ("AddTicketPhoto", {"photo_url": "https://photos.test/" + "x" * 2000}, "photo_url"),
    ],
)
async def test_a_bad_comment_or_photo_is_refused(
    client: Any, staff: Any, ticket_id: int, rpc: str, sent: dict[str, Any], about: str
) -> None:
    refused = await refusal_of(run_command(client, rpc, staff, ticket_id=ticket_id, **sent))
    assert refused.status == 400 and about in refused.message
    assert await comments_of(client, staff, ticket_id) == []


async def test_a_long_list_of_comments_comes_in_pages(
    client: Any, staff: Any, database: Database, ticket_id: int
) -> None:
    rows = (
        "INSERT INTO ticket_comment (company_id, ticket_id, id, kind, body, created_at, author, actor) "
        f"SELECT 7, {ticket_id}, nextval('ticket_comment_id'), 'comment', n, now(), 'staff', 'operator' "
        "FROM generate_series(1, 401) n"
    )
    await database.execute(Statement(text(rows)))
    request, numbers = ticket_commands_pb2.ListTicketCommentsRequest(ticket_id=ticket_id), []
    for many in (200, 200, 1):
        answer = await client("ListTicketComments", request, staff)
        assert len(answer.comments) == many and answer.HasField("next_after_comment_id") is (many == 200)
        numbers += [int(comment.body) for comment in answer.comments]
        request.after_comment_id = answer.next_after_comment_id
    assert numbers == list(range(1, 402))


async def test_other_kinds_of_actor_may_not_read_comments(client: Any, ticket_id: int) -> None:
    request = ticket_commands_pb2.ListTicketCommentsRequest(ticket_id=ticket_id)
    refused = await refusal_of(client("ListTicketComments", request, Identity(OPERATOR, "operator", 8)))
    assert (refused.status, refused.message) == (404, "The company has no ticket with that id; check the id.")


# Status


async def test_staff_change_a_ticket_as_the_api_does_with_the_same_event(
    client: Any, staff: Any, operator: Any, administrator: Any, database: Database, ticket_id: int
) -> None:
    done = await run_command(client, "SetTicketStatus", staff, ticket_id=ticket_id, status="Completed", note=NOTE)
    reopened = await run_command(client, "SetTicketStatus", administrator, ticket_id=ticket_id, status="Open")
    cancelled = await run_command(client, "SetTicketStatus", operator, ticket_id=ticket_id, **CANCELLED)
    assert json.loads(done)["completed_at"] == json.loads(done)["updated_at"]
    assert json.loads(reopened)["completed_at"] is None
    assert json.loads(cancelled)["cancellation_reason_code"] == "duplicate_ticket"
    published = (await events_of(database, ticket_id))[1:]
    assert [event.public.data for event in published] == [done, reopened, cancelled]
    assert [json.loads(event.public.change) for event in published] == [
        {"field": "status", "from": "Open", "to": "Completed"},
        {"field": "status", "from": "Completed", "to": "Open"},
        {"field": "status", "from": "Open", "to": "Cancelled"},
    ]
    assert [event.occurred_at.ToJsonString() for event in published] == [
        json.loads(reply)["updated_at"] for reply in (done, reopened, cancelled)
    ]
    history = await history_of(client, staff, ticket_id)
    assert [(entry.actor, entry.administrator_id, entry.api_key_id, entry.note) for entry in history] == [
        ("staff:30", 0, 0, NOTE),
        ("administrator:3", 3, 0, ""),
        ("operator", 0, 0, ""),
    ]
    first, second, third = await audited(client, administrator, "ticket", ticket_id)
    comment_id = first["after"].pop("comment_id")
    assert comment_id > 0
    assert first == entry("staff:30", "ticket.status_changed", {"status": "Open"}, {"status": "Completed"})
    assert second == entry("administrator:3", "ticket.status_changed", {"status": "Completed"}, {"status": "Open"})
    assert third == entry(
        "operator",
        "ticket.status_changed",
        {"status": "Open", "cancellation_reason_code": None},
        {"status": "Cancelled", "cancellation_reason_code": "duplicate_ticket"},
    )


async def test_the_history_names_a_key_of_the_api_too(client: Any, operator: Any, ticket_id: int) -> None:
    await change(client, ticket_id, {"status": "On Hold"})
    (only,) = await history_of(client, operator, ticket_id)
    assert (only.actor, only.api_key_id) == ("caller:1", 1)


async def test_people_and_integrations_at_once_come_one_after_the_other(
    client: Any, staff: Any, administrator: Any, database: Database, ticket_id: int
) -> None:
    by_api = [change(client, ticket_id, {"status": "Completed", "note": NOTE}) for _ in range(5)]
    by_staff = [
        run_command(client, "SetTicketStatus", staff, ticket_id=ticket_id, status="Completed", note=NOTE)
        for _ in range(5)
    ]
    await asyncio.gather(*by_api, *by_staff)
    history = await history_of(client, staff, ticket_id)
    assert [step.version for step in history] == list(range(2, 12))
    assert sorted(step.actor == "staff:30" for step in history) == [False] * 5 + [True] * 5
    assert {step.note for step in history} == {NOTE}
    assert len(await audited(client, administrator, "ticket", ticket_id)) == 5
    assert len(await events_of(database, ticket_id)) == 1 + 10


async def test_staff_close_a_ticket_again_as_the_api_does(
    client: Any, staff: Any, operator: Any, database: Database, ticket_id: int
) -> None:
    async def closed(**sent: str) -> dict[str, Any]:
        ticket: dict[str, Any] = json.loads(
            await run_command(client, "SetTicketStatus", staff, ticket_id=ticket_id, **sent)
        )
        return ticket

    twice = [await closed(status="Completed", note=NOTE) for _ in range(2)]
    assert twice[1]["completed_at"] == twice[1]["updated_at"] > twice[0]["completed_at"]
    see_notes = {"status": "Cancelled", "cancellation_reason_code": "see_notes"}
    first, same, other = [
        await closed(**see_notes, cancellation_notes=notes) for notes in (NOTE, NOTE, f"{NOTE} again")
    ]
    assert first == same and other["cancelled_at"] == other["updated_at"] > first["cancelled_at"]
    fired = (await events_of(database, ticket_id))[1:]
    assert [json.loads(event.public.data) for event in fired] == [*twice, first, other]
    assert [entry.note for entry in await history_of(client, operator, ticket_id)] == [
        NOTE,
        NOTE,
        NOTE,
        f"{NOTE} again",
    ]


@pytest.mark.parametrize(
    ("sent", "status", "about"),
    [
        ({"status": "Completed"}, 422, "note"),
        ({"status": "Completed", "note": "too few words"}, 422, "note"),
        ({"status": "Open", "note": NOTE}, 422, "note"),
        ({"status": "Cancelled"}, 422, "cancellation_reason_code"),
        ({"status": "Cancelled", "cancellation_reason_code": "bored"}, 422, "cancellation_reason_code"),
        ({"status": "Cancelled", "cancellation_reason_code": "see_notes"}, 422, "cancellation_notes"),
        (CANCELLED | {"cancellation_notes": NOTE}, 400, "cancellation_notes"),
    ],
)
async def test_the_rules_of_the_api_hold_for_staff(
    client: Any, staff: Any, ticket_id: int, sent: dict[str, Any], status: int, about: str
) -> None:
    refused = await refusal_of(run_command(client, "SetTicketStatus", staff, ticket_id=ticket_id, **sent))
    assert refused.status == status and about in refused.message


@pytest.mark.parametrize("number", [0, 6, 99])
async def test_a_number_that_is_no_status_is_refused(client: Any, staff: Any, ticket_id: int, number: int) -> None:
    request = request_of("SetTicketStatus", ticket_id=ticket_id)
    request.status = number
    refused = await refusal_of(client("SetTicketStatus", request, staff))
    assert refused.status == 422 and "Open, In Progress" in refused.message


async def test_a_photo_that_the_company_wants_is_wanted_of_staff_and_one_is_enough(
    client: Any, staff: Any, operator: Any, ticket_id: int
) -> None:
    policy = pb.UpdateTicketPolicyRequest(photo_required_to_complete=True)
    await client("UpdateTicketPolicy", policy, operator)
    try:
        done = {"ticket_id": ticket_id, "status": "Completed", "note": NOTE}
        refused = await refusal_of(run_command(client, "SetTicketStatus", staff, **done))
        assert refused.status == 422 and "photo" in refused.message
        await run_command(client, "AddTicketPhoto", staff, ticket_id=ticket_id, photo_url="https://photos.test/1.jpg")
        assert json.loads(await run_command(client, "SetTicketStatus", staff, **done))["status"] == "Completed"
    finally:
        await client("UpdateTicketPolicy", pb.UpdateTicketPolicyRequest(photo_required_to_complete=False), operator)


# Staleness


@pytest.mark.parametrize(
    ("rpc", "author"),
    [(rpc, author) for rpc in ("CommentOnTicket", "AddTicketPhoto") for author in fields.AUTHORS]
    + [("AssignTicket", "staff"), ("SetTicketStatus", "staff")],
)
async def test_what_staff_and_vendors_do_breaks_a_residents_silence(
    client: Any, staff: Any, database: Database, rpc: str, author: str
) -> None:
    has_author = rpc in ("CommentOnTicket", "AddTicketPhoto")
    ticket = await open_ticket(client, staff, by="OPENER_RESIDENT")
    before, _ = await quiet_of(database, ticket["entity_id"])
    sent = CHANGES[rpc] | ({"by": f"AUTHOR_{author.upper()}"} if has_author else {})
    await run_command(client, rpc, staff, ticket_id=ticket["entity_id"], **sent)
    quiet_since, due = await quiet_of(database, ticket["entity_id"])
    assert (quiet_since > before) is (author != "resident")
    assert due == quiet_since + datetime.timedelta(hours=72)


async def test_a_closed_ticket_is_not_due_and_a_reopened_one_is_again(
    client: Any, staff: Any, database: Database
) -> None:
    ticket_id = (await open_ticket(client, staff, by="OPENER_RESIDENT"))["entity_id"]
    await run_command(client, "SetTicketStatus", staff, ticket_id=ticket_id, **CANCELLED)
    closed_at, due = await quiet_of(database, ticket_id)
    assert due is None
    await run_command(client, "CommentOnTicket", staff, ticket_id=ticket_id, body="They called again")
    assert (await quiet_of(database, ticket_id))[1] is None
    await run_command(client, "SetTicketStatus", staff, ticket_id=ticket_id, status="Open")
    reopened_at, due = await quiet_of(database, ticket_id)
    assert reopened_at > closed_at and due == reopened_at + datetime.timedelta(hours=72)
