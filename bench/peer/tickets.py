"""The ticket routes (spec 4.2)."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import joinedload

from peer import idempotency
from peer.callers import administrator_of
from peer.database import Session
from peer.idempotency import IdempotencyKey
from peer.models import Asset, Event, Ticket, TicketNumber, Unit
from peer.paging import make_cursor, read_cursor
from peer.refusals import ApiError, not_found, number_without_property
from peer.schemas import TicketCreate, TicketFilters, TicketOut, TicketPage
from peer.security import Reader, Writer

PAGE_MAX = 200

router = APIRouter(prefix="/tickets")

# To-one relations, joined in the same statement; selectinload would send four more, which measured as costlier.
WHOLE = (
    joinedload(Ticket.property),
    joinedload(Ticket.unit),
    joinedload(Ticket.assignee),
    joinedload(Ticket.assigned_vendor),
)


@router.get("", response_model=TicketPage)
async def list_tickets(caller: Reader, session: Session, query: Annotated[TicketFilters, Query()]) -> dict[str, Any]:
    if query.ticket_number is not None and query.property_id is None:
        raise number_without_property()
    limit = min(query.limit, PAGE_MAX)
    filters = query.model_dump_json(exclude={"limit", "cursor"}, exclude_none=True)
    after_id = read_cursor(caller.company_id, query.cursor, filters)
    statement = select(Ticket).where(Ticket.company_id == caller.company_id, Ticket.id > after_id)
    if query.property_id is not None:
        statement = statement.where(Ticket.property_id == query.property_id)
    if query.unit_id is not None:
        statement = statement.where(Ticket.unit_id == query.unit_id)
    if query.status is not None:
        statement = statement.where(Ticket.status == query.status)
    if query.updated_since is not None:
        statement = statement.where(Ticket.updated_at >= query.updated_since)
    if query.ticket_number is not None:
        statement = statement.where(Ticket.ticket_number == query.ticket_number)
    statement = statement.options(*WHOLE).order_by(Ticket.id).limit(limit + 1)
    rows = (await session.scalars(statement)).all()
    tickets = rows[:limit]
    next_cursor = make_cursor(caller.company_id, tickets[-1].id, filters) if len(rows) > limit else None
    return {"data": tickets, "next_cursor": next_cursor, "limit": limit}


@router.get("/{ticket_id}", response_model=TicketOut)
async def get_ticket(ticket_id: int, caller: Reader, session: Session) -> Ticket:
    statement = select(Ticket).where(Ticket.company_id == caller.company_id, Ticket.id == ticket_id).options(*WHOLE)
    ticket = await session.scalar(statement)
    if ticket is None:
        raise not_found("ticket")
    return ticket


@router.post("", response_model=TicketOut, status_code=201)
async def create_ticket(
    body: TicketCreate,
    caller: Writer,
    session: Session,
    idempotency_key: IdempotencyKey,
    response: Response,
) -> TicketOut:
    fingerprint = idempotency.fingerprint_of("POST /tickets", body)
    kept = await idempotency.claim(session, caller, idempotency_key, fingerprint)
    if kept is not None:
        response.headers["X-Idempotent-Replay"] = "1"
        return TicketOut.model_validate_json(kept.body)
    ticket = await _new_ticket(session, caller.company_id, administrator_of(caller), body)
    session.add(ticket)
    await session.flush()
    reply = TicketOut.model_validate(ticket)
    json = reply.model_dump_json()
    session.add(Event(company_id=caller.company_id, event="ticket.created", data=json, occurred_at=ticket.created_at))
    session.add(idempotency.kept_reply(caller, idempotency_key, fingerprint, 201, json))
    await session.commit()
    return reply


async def _new_ticket(session: AsyncSession, company_id: int, administrator_id: int, body: TicketCreate) -> Ticket:
    unit = await session.scalar(
        select(Unit).where(Unit.company_id == company_id, Unit.id == body.unit_id).options(joinedload(Unit.property))
    )
    if unit is None:
        raise not_found("unit")
    if body.asset_id is not None:
        asset = await session.scalar(
            select(Asset).where(
                Asset.company_id == company_id, Asset.id == body.asset_id, Asset.property_id == unit.property_id
            )
        )
        if asset is None:
            raise ApiError(
                404, "not_found", "No asset with that id is visible to this key on the unit's property; check both ids."
            )
    now = datetime.datetime.now(datetime.UTC)
    return Ticket(
        company_id=company_id,
        ticket_number=await _next_number(session, unit.property_id),
        title=body.title,
        description=body.description,
        category=body.category,
        priority=body.priority,
        status="Open",
        property=unit.property,
        unit=unit,
        asset_id=body.asset_id,
        unit_number=unit.unit_number,
        permission_to_enter=False,
        assignee=None,
        assigned_vendor=None,
        created_at=now,
        updated_at=now,
        source="api",
        created_by_administrator_id=administrator_id,
    )


async def _next_number(session: AsyncSession, property_id: int) -> int:
    take = insert(TicketNumber).values(property_id=property_id, last=1)
    number: int | None = await session.scalar(
        take.on_conflict_do_update(
            index_elements=[TicketNumber.property_id], set_={"last": TicketNumber.last + 1}
        ).returning(TicketNumber.last)
    )
    assert number is not None
    return number
