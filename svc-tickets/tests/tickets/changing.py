"""Helpers that open tickets and change their status, and the contract's response to each body."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import func, select, text

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.events.v1.events_pb2 import Event, PublicEvent
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from testkit.outboxes import OutboxRows
from testkit.patience import PATIENCE_SECONDS

NOTE = "Replaced the washer and tested it"
# An accepted change to each status.
SENT: dict[str, dict[str, Any]] = {
    "Open": {"status": "Open"},
    "In Progress": {"status": "In Progress"},
    "On Hold": {"status": "On Hold"},
    "Completed": {"status": "Completed", "note": NOTE},
    "Cancelled": {"status": "Cancelled", "cancellation_reason_code": "duplicate_ticket"},
}

# The fields of a change and the response, written out from spec 4.2: one line for each note, one column for each pair
# of cancellation_reason_code and cancellation_notes.
REASONS = (None, "wrong_property", "see_notes")
NOTES = {"none": None, "short": "four words are few", "good": "these are five whole words"}
OTHERS = """
          no reason        wrong_property   see_notes
          none short good  none short good  none short good
    none   200   422  422   422   422  422   422   422  422
    short  422   422  422   422   422  422   422   422  422
    good   422   422  422   422   422  422   422   422  422
"""
ANSWERS = {
    "Open": OTHERS,
    "In Progress": OTHERS,
    "On Hold": OTHERS,
    "Completed": """
          no reason        wrong_property   see_notes
          none short good  none short good  none short good
    none   422   422  422   422   422  422   422   422  422
    short  422   422  422   422   422  422   422   422  422
    good   200   422  422   422   422  422   422   422  422
""",
    "Cancelled": """
          no reason        wrong_property   see_notes
          none short good  none short good  none short good
    none   422   422  422   200   400  400   422   422  200
    short  422   422  422   422   422  422   422   422  422
    good   422   422  422   422   422  422   422   422  422
""",
}
# (status, note, cancellation_reason_code, cancellation_notes), and the response.
TABLE = [
    ((status, NOTES[line.split()[0]], reason, notes), int(answer))
    for status, block in ANSWERS.items()
    for line in block.strip().splitlines()[2:]
    for (reason, notes), answer in zip(
        ((reason, notes) for reason in REASONS for notes in NOTES.values()), line.split()[1:], strict=True
    )
]


def body_of(fields: tuple[str | None, ...]) -> dict[str, Any]:
    names = ("status", "note", "cancellation_reason_code", "cancellation_notes")
    return {name: value for name, value in zip(names, fields, strict=True) if value is not None}


async def opened(client: Any, who: Any = None, unit_id: int = 100) -> int:
    """The id of a new ticket."""
    body = json.dumps({"unit_id": unit_id, "title": "Tap drips", "category": "Plumbing"}).encode()
    request = pb.CreateTicketRequest(idempotency_key=secrets.token_hex(8), body=body)
    ticket_id: int = json.loads((await client("CreateTicket", request, who)).reply.body)["entity_id"]
    return ticket_id


def request_of(ticket_id: int, sent: object, key: str | None = None) -> pb.ChangeTicketStatusRequest:
    raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    return pb.ChangeTicketStatusRequest(ticket_id=ticket_id, idempotency_key=key or secrets.token_hex(8), body=raw)


async def change(client: Any, ticket_id: int, sent: object, key: str | None = None, who: Any = None) -> Any:
    """Returns the reply. Raises Refusal, or AioRpcError for a fault."""
    return (await client("ChangeTicketStatus", request_of(ticket_id, sent, key), who)).reply


async def served(client: Any, ticket_id: int, who: Any = None) -> bytes:
    """The bytes of the ticket's GET."""
    document: bytes = (await client("GetTicket", pb.GetTicketRequest(ticket_id=ticket_id), who)).document.json
    return document


_OUTBOX = OutboxRows(t.outbox)


async def events_of(database: Database, ticket_id: int) -> list[Event]:
    """The ticket's events, oldest first."""
    rows = await _OUTBOX.containing(database, PublicEvent(entity_id=ticket_id))
    events = [Event.FromString(row["message"]) for row in rows]
    of_tickets = [event for event in events if event.public.event.startswith("ticket.")]
    mine = [event for event in of_tickets if event.public.entity_id == ticket_id]
    return sorted(mine, key=lambda event: event.occurred_at.ToNanoseconds())


async def history_of(client: Any, operator: Any, ticket_id: int) -> list[pb.TicketChange]:
    """Oldest change first."""
    entries: list[pb.TicketChange] = []
    request = pb.ListTicketHistoryRequest(ticket_id=ticket_id)
    while True:
        answer = await client("ListTicketHistory", request, operator)
        entries += answer.changes
        if not answer.HasField("next_after_version"):
            return entries
        request.after_version = answer.next_after_version


async def kept(database: Database, key: str) -> int:
    """The number of replies stored for the Idempotency-Key."""
    count: int = await database.value(Statement(select(func.count()).where(t.idempotency.c.idempotency_key == key)))
    return count


WAITING = Statement(
    text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        " AND wait_event IN ('transactionid', 'tuple')"
    )
)


@asynccontextmanager
async def held(database: Database, ticket_id: int) -> AsyncIterator[None]:
    """Locks the ticket's row in another transaction."""
    async with database.transaction() as connection:
        await connection.execute(Statement(text(f"SELECT FROM ticket WHERE id = {ticket_id} FOR UPDATE")))
        yield


async def until_it_waits(database: Database, many: int = 1) -> None:
    """Waits until exactly this many transactions wait for a lock."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await database.value(WAITING) != many:  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.01)


async def refusal_of(answer: Any) -> Refusal:
    """The refusal of the call."""
    with pytest.raises(Refusal) as refused:
        await answer
    return refused.value
