"""A change of a ticket's status (spec 3.1, 4.2)."""

from __future__ import annotations

import datetime
import json

from fastapi import APIRouter, Request, Response
from sqlalchemy import select

from peer import idempotency
from peer.callers import Caller, administrator_of
from peer.database import Session
from peer.idempotency import IdempotencyKey
from peer.models import Comment, Event, StatusChange, Ticket, TicketPolicy
from peer.refusals import not_found
from peer.rules import check, photo_missing
from peer.schemas import TicketChange, TicketOut
from peer.security import Writer
from peer.tickets import WHOLE

router = APIRouter(prefix="/tickets")


@router.patch("/{ticket_id}", response_model=TicketOut)
async def change_status(
    ticket_id: int,
    body: TicketChange,
    caller: Writer,
    session: Session,
    idempotency_key: IdempotencyKey,
    request: Request,
    response: Response,
) -> TicketOut:
    check(body)
    fingerprint = idempotency.fingerprint_of(f"PATCH /tickets/{ticket_id}", body)
    kept = await idempotency.claim(session, caller, idempotency_key, fingerprint)
    if kept is not None:
        response.headers["X-Idempotent-Replay"] = "1"
        return TicketOut.model_validate_json(kept.body)
    administrator_id = administrator_of(caller)
    same = (Ticket.company_id == caller.company_id, Ticket.id == ticket_id)
    held = select(Ticket).where(*same).options(*WHOLE).with_for_update(of=Ticket, key_share=True)
    ticket = await session.scalar(held)
    if ticket is None:
        raise not_found("ticket")
    policy = await session.get(TicketPolicy, caller.company_id)
    if policy is not None and policy.photo_required_to_complete and body.status == "Completed" and not ticket.photo_url:
        raise photo_missing()
    before = ticket.status
    changed_at = _move(ticket, body)
    reply = TicketOut.model_validate(ticket)
    sent = reply.model_dump_json()
    if changed_at is not None:
        session.add(_entry(ticket, before, body, changed_at, caller, administrator_id, request))
    if ticket.status != before:
        event = Event(company_id=caller.company_id, event="ticket.status_changed", data=sent, occurred_at=changed_at)
        event.change = json.dumps({"field": "status", "from": before, "to": ticket.status})
        session.add(event)
    session.add(idempotency.kept_reply(caller, idempotency_key, fingerprint, 200, sent))
    await session.commit()
    return reply


def _move(ticket: Ticket, body: TicketChange) -> datetime.datetime | None:
    """Changes the ticket; returns the instant of the change, None if nothing is new."""
    is_new = body.status != ticket.status or body.cancellation_reason_code != ticket.cancellation_reason_code
    if not is_new and body.note is None and body.cancellation_notes is None:
        return None
    now = max(datetime.datetime.now(datetime.UTC), ticket.updated_at + datetime.timedelta(microseconds=1))
    ticket.status, ticket.updated_at = body.status, now
    ticket.completed_at = (ticket.completed_at or now) if body.status == "Completed" else None
    ticket.cancelled_at = (ticket.cancelled_at or now) if body.status == "Cancelled" else None
    ticket.cancellation_reason_code = body.cancellation_reason_code
    return now


def _entry(
    ticket: Ticket,
    before: str,
    body: TicketChange,
    now: datetime.datetime,
    caller: Caller,
    administrator_id: int,
    request: Request,
) -> StatusChange:
    """The entry of the history, with the comment of the change."""
    text = body.note or body.cancellation_notes
    comment = None
    if text is not None:
        comment = Comment(
            ticket_id=ticket.id,
            kind="closing_note" if body.note else "cancellation_notes",
            body=text,
            created_at=now,
            administrator_id=administrator_id,
            api_key_id=caller.key_id,
        )
    return StatusChange(
        ticket_id=ticket.id,
        occurred_at=now,
        from_status=before,
        to_status=ticket.status,
        cancellation_reason_code=ticket.cancellation_reason_code,
        comment=comment,
        administrator_id=administrator_id,
        api_key_id=caller.key_id,
        request_id=request.scope["request_id"],
    )
