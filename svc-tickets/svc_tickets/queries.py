"""Every SQL statement of svc-tickets, named for what it returns. The company comes first in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, DateTime, Integer, Text, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from chassis.lists.paging import Pages
from svc_tickets import rules
from svc_tickets import tables as t
from svc_tickets.together import InsertTogether

_company_id = bindparam("company_id", type_=BigInteger)

# The columns of a served ticket, in the order in which `records.TicketLinks.ticket` takes them.
TICKET_COLUMNS: tuple[ColumnElement[Any], ...] = (
    t.ticket.c.id,
    t.ticket.c.version,
    t.ticket.c.ticket_number,
    t.ticket.c.title,
    t.ticket.c.description,
    t.ticket.c.category,
    t.ticket.c.subcategory,
    t.ticket.c.priority,
    t.ticket.c.status,
    t.ticket.c.unit_number,
    t.ticket.c.room,
    t.ticket.c.room_instance,
    t.ticket.c.permission_to_enter,
    t.ticket.c.preferred_access_time,
    t.ticket.c.photo_url,
    t.ticket.c.created_at,
    t.ticket.c.updated_at,
    t.ticket.c.completed_at,
    t.ticket.c.cancelled_at,
    t.ticket.c.cancellation_reason_code,
    t.ticket.c.external_id,
    t.ticket.c.source,
    t.property_.c.id,
    t.property_.c.name,
    t.property_.c.external_id,
    t.unit.c.id,
    t.unit.c.name,
    t.unit.c.external_id,
    t.staff.c.id,
    t.staff.c.name,
    t.vendor.c.id,
    t.vendor.c.name,
    t.vendor.c.external_id,
)

TICKETS = select(*(column.label(f"c{index}") for index, column in enumerate(TICKET_COLUMNS))).select_from(
    t.ticket.join(t.property_, t.property_.c.id == t.ticket.c.property_id)
    .outerjoin(t.unit, t.unit.c.id == t.ticket.c.unit_id)
    .outerjoin(t.staff, t.staff.c.id == t.ticket.c.assignee_id)
    .outerjoin(t.vendor, t.vendor.c.id == t.ticket.c.vendor_id)
)

TICKETS_PAGE = Pages(
    TICKETS,
    t.ticket.c.company_id,
    t.ticket.c.id,
    {
        "property_id": t.ticket.c.property_id == bindparam("property_id", type_=BigInteger),
        "unit_id": t.ticket.c.unit_id == bindparam("unit_id", type_=BigInteger),
        "status": t.ticket.c.status == bindparam("status", type_=Text),
        "updated_since": t.ticket.c.updated_at >= bindparam("updated_since", type_=DateTime(timezone=True)),
        "ticket_number": t.ticket.c.ticket_number == bindparam("ticket_number", type_=Integer),
    },
    statuses=rules.STATUSES,
)

_TICKET = Statement(
    TICKETS.where(t.ticket.c.company_id == _company_id, t.ticket.c.id == bindparam("ticket_id", type_=BigInteger))
)

_TICKETS = Statement(
    TICKETS.where(
        t.ticket.c.company_id == _company_id,
        t.ticket.c.id == func.any(bindparam("ticket_ids", type_=ARRAY(BigInteger))),
    ).order_by(t.ticket.c.id)
)


async def ticket(database: Database, company_id: int, ticket_id: int) -> Record | None:
    return await database.row(_TICKET, company_id=company_id, ticket_id=ticket_id)


async def tickets(connection: Connection, company_id: int, ticket_ids: Sequence[int]) -> list[Record]:
    """Rows of TICKET_COLUMNS ascending by id."""
    return await connection.rows(_TICKETS, company_id=company_id, ticket_ids=ticket_ids)


CREATE_TICKET = InsertTogether(t.idempotency, t.ticket, t.outbox)
