"""The SQL statements that read tickets, their history and their comments. Each one filters by company first."""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Record
from sqlalchemy import BigInteger, DateTime, Integer, Text, and_, func, literal_column, or_, select, tuple_
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.changes.documents import Documents
from chassis.changes.feed import Changes
from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Statement, param
from chassis.lists.lookup import Identified
from chassis.lists.paging import Inside, Pages
from makeready.common.v1 import lookup_pb2
from makeready.tickets.v1.tickets_pb2 import ListTicketsRequest
from svc_tickets import schema
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.records import TICKET, CommentRow, HistoryRow
from svc_tickets.tickets.rules import fields

_company_id = param("company_id", BigInteger)

TICKETS = TICKET.select(
    t.ticket.join(schema.property_, schema.property_.c.id == t.ticket.c.property_id)
    .outerjoin(schema.unit, schema.unit.c.id == t.ticket.c.unit_id)
    .outerjoin(schema.staff, schema.staff.c.id == t.ticket.c.assignee_id)
    .outerjoin(schema.vendor, schema.vendor.c.id == t.ticket.c.vendor_id)
)

TICKET_DOCUMENTS = Documents(TICKET, TICKETS, t.ticket)
TICKETS_PAGE = Pages(
    TICKET_DOCUMENTS.rows,
    t.ticket.c.id,
    {
        "property_id": t.ticket.c.property_id == param("property_id", BigInteger),
        "unit_id": t.ticket.c.unit_id == param("unit_id", BigInteger),
        "status": t.ticket.c.status == param("status", Text),
        "updated_since": t.ticket.c.updated_at >= param("updated_since", DateTime(timezone=True)),
        "ticket_number": t.ticket.c.ticket_number == param("ticket_number", Integer),
    },
    statuses=fields.STATUSES,
    places=schema.PLACES,
    inside=[Inside("unit_id", "property_id", schema.unit)],
    request=ListTicketsRequest,
)

TICKET_CHANGES = Changes("ticket", TICKET_DOCUMENTS)
IDENTIFIED = Identified(lookup_pb2.RECORD_KIND_TICKET, t.ticket)

_TICKETS = Statement(
    TICKETS.where(
        t.ticket.c.company_id == _company_id,
        t.ticket.c.id == func.any(param("ticket_ids", ARRAY(BigInteger))),
    ).order_by(t.ticket.c.id)
)


async def tickets(connection: Connection, company_id: int, ticket_ids: Sequence[int]) -> list[Record]:
    """Rows of TICKETS, ascending by id."""
    return await connection.rows(_TICKETS, company_id=company_id, ticket_ids=ticket_ids)


SAME_TICKET = (t.ticket.c.company_id == _company_id, t.ticket.c.id == param("ticket_id", BigInteger))
_PROPERTY = Statement(select(t.ticket.c.property_id).where(*SAME_TICKET))


async def property_of(database: Database, company_id: int, ticket_id: int) -> int | None:
    """The property of a ticket; None if the ticket does not exist."""
    property_id: int | None = await database.value(_PROPERTY, company_id=company_id, ticket_id=ticket_id)
    return property_id


# This many rows with the longest texts fit a message of 32 MiB.
HISTORY_ROWS = COMMENT_ROWS = 200


def _history() -> Query[HistoryRow]:
    change, comment = t.ticket_status_change, t.ticket_comment
    of_ticket = and_(
        change.c.company_id == t.ticket.c.company_id,
        change.c.ticket_id == t.ticket.c.id,
        change.c.version > param("after_version", BigInteger),
    )
    its_comment = and_(
        comment.c.company_id == change.c.company_id,
        comment.c.ticket_id == change.c.ticket_id,
        comment.c.id == change.c.comment_id,
    )
    rows = (
        select(
            change.c.version,
            change.c.occurred_at,
            change.c.from_status,
            change.c.to_status,
            change.c.cancellation_reason_code,
            comment.c.body.label("note"),
            change.c.api_key_id,
            change.c.administrator_id,
            change.c.actor,
            change.c.request_id,
        )
        .select_from(t.ticket.outerjoin(change, of_ticket).outerjoin(comment, its_comment))
        .where(*SAME_TICKET)
    )
    return Query(HistoryRow, rows.order_by(change.c.version).limit(literal_column(str(HISTORY_ROWS + 1))))


_HISTORY = _history()


async def history(database: Database, company_id: int, ticket_id: int, after_version: int) -> list[HistoryRow] | None:
    """Up to HISTORY_ROWS + 1 changes, oldest first; None if the ticket does not exist."""
    rows = await _HISTORY.rows(database, company_id=company_id, ticket_id=ticket_id, after_version=after_version)
    if not rows:
        return None
    return [row for row in rows if row.version is not None]


def _comments() -> Query[CommentRow]:
    """Orders by instant, because ids come from blocks that each process reserves."""
    comment, last = t.ticket_comment, t.ticket_comment.alias("last")
    of_ticket = [
        and_(table.c.company_id == t.ticket.c.company_id, table.c.ticket_id == t.ticket.c.id)
        for table in (comment, last)
    ]
    is_last = and_(of_ticket[1], last.c.id == param("after_id", BigInteger))
    is_later = tuple_(comment.c.created_at, comment.c.id) > tuple_(last.c.created_at, last.c.id)
    names = ("id", "created_at", "kind", "body", "author", "actor", "api_key_id")
    rows = select(*(comment.c[name] for name in names)).select_from(
        t.ticket.outerjoin(last, is_last).outerjoin(comment, and_(of_ticket[0], or_(last.c.id.is_(None), is_later)))
    )
    in_order = rows.where(*SAME_TICKET).order_by(comment.c.created_at, comment.c.id)
    return Query(CommentRow, in_order.limit(literal_column(str(COMMENT_ROWS + 1))))


_COMMENTS = _comments()


async def comments(database: Database, company_id: int, ticket_id: int, after_id: int) -> list[CommentRow] | None:
    """Up to COMMENT_ROWS + 1 comments, oldest first; None if the ticket does not exist."""
    rows = await _COMMENTS.rows(database, company_id=company_id, ticket_id=ticket_id, after_id=after_id)
    return [row for row in rows if row.id is not None] if rows else None
