"""Helpers for back-office commands on tickets, and for the records that they leave."""

from __future__ import annotations

import json
import secrets
from typing import Any

from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.common.v1 import audit_pb2
from makeready.tickets.v1 import ticket_commands_pb2 as pb
from makeready.tickets.v1.tickets_pb2 import TicketStatus
from svc_tickets import tables as t

# The RPCs that change a stored ticket, with the fields that they require.
CHANGES: dict[str, dict[str, Any]] = {
    "UpdateTicket": {"title": "Tap drips in the bath"},
    "AssignTicket": {"assignee_id": 30},
    "CommentOnTicket": {"body": "The part is ordered"},
    "AddTicketPhoto": {"photo_url": "https://photos.test/after.jpg"},
    "SetTicketStatus": {"status": "In Progress"},
}


def request_of(rpc: str, **fields: Any) -> Any:
    """The RPC's request, with a new key unless the fields set one."""
    for name in ("status", "from_status"):
        if name in fields:
            fields[name] = TicketStatus.Value(f"TICKET_STATUS_{fields[name].upper().replace(' ', '_')}")
    return getattr(pb, f"{rpc}Request")(**{"idempotency_key": secrets.token_hex(8)} | fields)


def opening(**fields: Any) -> Any:
    return request_of("OpenTicket", **{"property_id": 10, "title": "Tap drips", "category": "Plumbing"} | fields)


async def run_command(client: Any, rpc: str, who: Any, **fields: Any) -> bytes:
    """The record that the command returns. Raises Refusal."""
    json_: bytes = (await client(rpc, request_of(rpc, **fields), who)).document.json
    return json_


async def open_ticket(client: Any, who: Any, **fields: Any) -> dict[str, Any]:
    ticket: dict[str, Any] = json.loads((await client("OpenTicket", opening(**fields), who)).document.json)
    return ticket


async def audited(client: Any, administrator: Any, subject: str, subject_id: int) -> list[dict[str, Any]]:
    """The audit entries of a record, oldest first, without their ids and instants."""
    async with client.service.channel() as channel:
        request = audit_pb2.ListAuditRequest(subject=subject, subject_id=subject_id, limit=200)
        answer = await client.service.call(channel, request, administrator)
    assert all((entry.subject, entry.subject_id) == (subject, subject_id) for entry in answer.entries)
    return [
        {
            "actor": entry.actor,
            "action": entry.action,
            "before": json.loads(entry.before),
            "after": json.loads(entry.after),
            "request_id": entry.request_id,
        }
        for entry in reversed(answer.entries)
    ]


def entry(actor: str, action: str, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {"actor": actor, "action": action, "before": before, "after": after, "request_id": "req-test"}


async def quiet_of(database: Database, ticket_id: int) -> tuple[Any, Any]:
    """quiet_since and stale_due_at."""
    row = await database.row(
        Statement(select(t.ticket.c.quiet_since, t.ticket.c.stale_due_at).where(t.ticket.c.id == ticket_id))
    )
    assert row is not None
    return row["quiet_since"], row["stale_due_at"]


async def comments_of(client: Any, who: Any, ticket_id: int) -> list[tuple[str, str, str, str]]:
    """kind, body, author and actor, oldest first."""
    answer = await client("ListTicketComments", pb.ListTicketCommentsRequest(ticket_id=ticket_id), who)
    return [(comment.kind, comment.body, comment.author, comment.actor) for comment in answer.comments]
