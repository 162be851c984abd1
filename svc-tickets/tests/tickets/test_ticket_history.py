"""A ticket's history: every status change by any caller; no sequence of changes breaks an invariant."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

import asyncpg
import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from chassis.auth.identity import Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.common.v1 import documents_pb2 as common
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from svc_tickets.tickets.rules import fields
from testkit.examples import examples

from .changing import NOTE, SENT, change, events_of, history_of, opened, refusal_of, served
from .commands import run_command

pytestmark = pytest.mark.usefixtures("places")


async def test_an_entry_has_instant_change_reason_and_actor(client: Any, operator: Any) -> None:
    ticket_id = await opened(client)
    assert await history_of(client, operator, ticket_id) == []
    await change(client, ticket_id, SENT["In Progress"])
    done = json.loads((await change(client, ticket_id, SENT["Completed"])).body)
    another = Identity("caller", "gateway", 7, 12, "write", 34)
    await change(client, ticket_id, SENT["Cancelled"], None, another)
    started, completed, cancelled = await history_of(client, operator, ticket_id)
    assert (started.from_status, started.to_status, started.note) == ("Open", "In Progress", "")
    assert (completed.from_status, completed.to_status, completed.note) == ("In Progress", "Completed", NOTE)
    assert completed.occurred_at.ToDatetime().isoformat(timespec="microseconds") + "Z" == done["completed_at"]
    assert (completed.api_key_id, completed.administrator_id, completed.request_id) == (1, 3, "req-test")
    assert (cancelled.api_key_id, cancelled.administrator_id) == (12, 34)
    assert (cancelled.to_status, cancelled.cancellation_reason_code) == ("Cancelled", "duplicate_ticket")
    assert [entry.version for entry in (started, completed, cancelled)] == [2, 3, 4]


async def test_a_long_one_comes_in_pages(client: Any, database: Database, operator: Any) -> None:
    ticket_id = await opened(client)
    rows = (
        "INSERT INTO ticket_status_change (company_id, ticket_id, version, occurred_at, from_status, to_status, "
        f"request_id) SELECT 7, {ticket_id}, n, now(), 'Open', 'On Hold', '' FROM generate_series(2, 402) n"
    )
    await database.execute(Statement(text(rows)))
    answer = await client("ListTicketHistory", pb.ListTicketHistoryRequest(ticket_id=ticket_id), operator)
    assert (len(answer.changes), answer.next_after_version) == (200, 201)
    assert [entry.version for entry in await history_of(client, operator, ticket_id)] == list(range(2, 403))


async def test_it_is_of_the_companys_own_tickets(client: Any, operator: Any, stranger: Any) -> None:
    theirs = await opened(client, stranger, unit_id=200)
    for ticket_id in (theirs, 10**15, 0, -1):
        refused = await refusal_of(
            client("ListTicketHistory", pb.ListTicketHistoryRequest(ticket_id=ticket_id), operator)
        )
        assert (refused.status, refused.code) == (404, "not_found")
    with pytest.raises(grpc.aio.AioRpcError) as denied:
        await client("ListTicketHistory", pb.ListTicketHistoryRequest(ticket_id=theirs))
    assert denied.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def imported(client: Any, operator: Any, row: dict[str, Any]) -> int:
    request = pb.ImportTicketsRequest(rows=[common.ImportRow(line=2, json=json.dumps(row).encode())])
    (result,) = (await client("ImportTickets", request, operator)).results
    assert not result.reason, result.reason
    outcome: int = result.outcome
    return outcome


async def id_of(database: Database, external_id: str) -> int:
    ticket_id: int = await database.value(Statement(select(t.ticket.c.id).where(t.ticket.c.external_id == external_id)))
    return ticket_id


async def test_what_a_file_changes_belongs_to_it_too(client: Any, database: Database, operator: Any) -> None:
    row = {"external_id": secrets.token_hex(6), "property": "P10", "title": "Lift stuck", "category": "Elevator"}
    await imported(client, operator, row | {"status": "On Hold"})
    ticket_id = await id_of(database, row["external_id"])
    await change(client, ticket_id, SENT["Cancelled"])
    for changes in (
        {"title": "Lift moves"},
        {"cancellation_reason_code": "resolved_independently"},
        {"cancellation_reason_code": ""},
        {"status": "Completed", "completed_at": "2015-01-05"},
        {"status": "Completed", "completed_at": "2015-01-06"},
        {"status": "Open"},
    ):
        assert await imported(client, operator, row | changes) == common.IMPORT_OUTCOME_CHANGED
    await change(client, ticket_id, SENT["Completed"])
    history = await history_of(client, operator, ticket_id)
    assert [
        (entry.from_status, entry.to_status, entry.cancellation_reason_code, entry.api_key_id) for entry in history
    ] == [
        ("On Hold", "Cancelled", "duplicate_ticket", 1),
        ("Cancelled", "Cancelled", "resolved_independently", 0),
        ("Cancelled", "Cancelled", "", 0),
        ("Cancelled", "Completed", "", 0),
        ("Completed", "Open", "", 0),
        ("Open", "Completed", "", 1),
    ]
    assert [entry.version for entry in history] == [2, 4, 5, 6, 8, 9], (
        "each is a version of the ticket, not all are changes"
    )
    instants = [entry.occurred_at.ToNanoseconds() for entry in history]
    assert instants == sorted(set(instants))


async def test_changes_and_imports_of_one_ticket_at_once_lose_nothing(
    client: Any, database: Database, operator: Any
) -> None:
    row = {"external_id": secrets.token_hex(6), "property": "P10", "title": "Lift stuck", "category": "Elevator"}
    await imported(client, operator, row)
    ticket_id = await id_of(database, row["external_id"])
    work = [change(client, ticket_id, SENT[fields.STATUSES[number % 5]]) for number in range(20)]
    files = [imported(client, operator, row | {"status": fields.STATUSES[n % 3], "room": str(n)}) for n in range(20)]
    await asyncio.gather(*(call for pair in zip(work, files, strict=True) for call in pair))
    history = await history_of(client, operator, ticket_id)
    assert [entry.from_status for entry in history] == ["Open", *(entry.to_status for entry in history[:-1])]
    assert history[-1].to_status == json.loads(await served(client, ticket_id))["status"]


CHANGES = st.one_of(
    st.sampled_from([SENT["Open"], SENT["In Progress"], SENT["On Hold"]]),
    st.sampled_from([NOTE, "漏水已经修好了", "a b c d e"]).map(lambda note: {"status": "Completed", "note": note}),
    st.sampled_from(["duplicate_ticket", "wrong_property"]).map(
        lambda code: {"status": "Cancelled", "cancellation_reason_code": code}
    ),
    st.sampled_from([NOTE, "漏水已经修好了"]).map(
        lambda notes: {"status": "Cancelled", "cancellation_reason_code": "see_notes", "cancellation_notes": notes}
    ),
)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence=st.lists(st.tuples(CHANGES, st.booleans()), max_size=8))
async def test_no_sequence_breaks_what_always_holds(
    client: Any, database: Database, operator: Any, staff: Any, sequence: list[tuple[dict[str, Any], bool]]
) -> None:
    """Changes over the API and in the back office, in any order."""
    ticket_id = await opened(client)
    tickets = [json.loads(await served(client, ticket_id))]
    expected: list[tuple[str, ...]] = []
    for sent, by_command in sequence:
        if by_command:
            body = await run_command(client, "SetTicketStatus", staff, ticket_id=ticket_id, **sent)
        else:
            body = (await change(client, ticket_id, sent)).body
        assert body == await served(client, ticket_id)
        before, after = tickets[-1], json.loads(body)
        code, note = sent.get("cancellation_reason_code", ""), sent.get("note") or sent.get("cancellation_notes", "")
        assert (after["status"], after["cancellation_reason_code"]) == (sent["status"], code or None)
        assert [name for name in ("completed_at", "cancelled_at") if after[name]] == {
            "Completed": ["completed_at"],
            "Cancelled": ["cancelled_at"],
        }.get(after["status"], [])
        stored = expected[-1][1:4] if expected else (before["status"], "", "")
        if stored == (after["status"], code, note) and after["status"] != "Completed":
            assert after == before
        else:
            assert after["updated_at"] > before["updated_at"]
            assert (after["completed_at"] or after["cancelled_at"]) in (None, after["updated_at"])
            actor = "staff:30" if by_command else "caller:1"
            expected.append((before["status"], after["status"], code, note, after["updated_at"], actor))
        tickets.append(after)
    history = [
        (
            entry.from_status,
            entry.to_status,
            entry.cancellation_reason_code,
            entry.note,
            printed_of(entry.occurred_at),
            entry.actor,
        )
        for entry in await history_of(client, operator, ticket_id)
    ]
    assert history == expected
    created, *events = await events_of(database, ticket_id)
    assert created.public.event == "ticket.created" and len(events) == len(expected)
    for event, (before, after, *_, at, _actor) in zip(events, expected, strict=True):
        assert json.loads(event.public.change) == {"field": "status", "from": before, "to": after}
        assert printed_of(event.occurred_at) == at == json.loads(event.public.data)["updated_at"]


IMPOSSIBLE = {
    "ticket_status_change_says": "2, now(), 'Open', 'Open', NULL, NULL, NULL, NULL",
    "ticket_status_change_reason": "2, now(), 'Open', 'On Hold', 'see_notes', NULL, NULL, NULL",
    "ticket_status_change_version": "1, now(), 'Open', 'On Hold', NULL, NULL, NULL, NULL",
    "ticket_status_change_from_status": "2, now(), 'New', 'On Hold', NULL, NULL, NULL, NULL",
    "ticket_status_change_to_status": "2, now(), 'Open', 'Closed', NULL, NULL, NULL, NULL",
    "ticket_status_change_cancellation_reason_code": "2, now(), 'Open', 'Cancelled', 'bored', NULL, NULL, NULL",
    "ticket_status_change_reason_given": "2, now(), 'Open', 'Cancelled', NULL, NULL, 3, 1",
    "ticket_status_change_note_given": "2, now(), 'Open', 'Completed', NULL, NULL, 3, 1",
    "ticket_status_change_author": "2, now(), 'Open', 'On Hold', NULL, NULL, NULL, 1",
    "ticket_status_change_comment": "2, now(), 'Open', 'On Hold', NULL, 77, NULL, NULL",
}


@pytest.mark.parametrize("constraint", IMPOSSIBLE)
async def test_the_database_refuses_an_impossible_entry(client: Any, database: Database, constraint: str) -> None:
    ticket_id = await opened(client)
    row = (
        "INSERT INTO ticket_status_change (company_id, ticket_id, request_id, version, occurred_at, from_status, "
        "to_status, cancellation_reason_code, comment_id, administrator_id, api_key_id) "
        f"VALUES (7, {ticket_id}, '', {IMPOSSIBLE[constraint]})"
    )
    with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
        await database.execute(Statement(text(row)))
    assert refused.value.constraint_name == constraint


def printed_of(instant: Any) -> str:
    """A protobuf's instant as the API prints it."""
    text_: str = instant.ToDatetime().isoformat(timespec="microseconds")
    return f"{text_}Z"
