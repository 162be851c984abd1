"""The SQL statements that open tickets."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import BigInteger, select, true

from chassis.changes.tables import names_are_current
from chassis.db.database import Connection
from chassis.db.rows import InsertMany
from chassis.db.statements import Query, Statement, param
from chassis.schedule.clocks import offset_of
from chassis.writes.coalescing import CoalescingInsert
from svc_tickets import schema
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.rules import staleness

_DOCUMENT = {t.ticket.c.document: true(), t.ticket.c.document_shape: names_are_current(schema.metadata)}
_OF_RESIDENTS = {t.ticket.c[name]: true() for name in ("resident_asked", *staleness.COLUMNS)}

# A create over the API inserts the claim, the ticket and the event.
CREATE_TICKET = CoalescingInsert(schema.idempotency, t.ticket, schema.outbox, only_if=_DOCUMENT)


def _by_person(*tables: sa.Table) -> CoalescingInsert:
    """People open tickets of residents, too, which may go stale."""
    return CoalescingInsert(schema.idempotency, *tables, only_if=_DOCUMENT | _OF_RESIDENTS)


_audited = (t.ticket, schema.outbox, schema.audit)
CREATES: Mapping[tuple[sa.Table, ...], CoalescingInsert] = {
    (t.ticket, schema.outbox): CREATE_TICKET,
    _audited: _by_person(*_audited),
    (*_audited, t.ticket_comment): _by_person(*_audited, t.ticket_comment),
}
"""By the tables that a ticket's rows belong to."""

RECORDS: Mapping[sa.Table, InsertMany] = {
    table: InsertMany(table, [column.name for column in table.c if column.name not in ("id", "recorded_at")])
    for table in (schema.audit, t.ticket_of_inspection_row)
} | {t.ticket_comment: InsertMany(t.ticket_comment, t.ticket_comment.c.keys())}
"""The rows beside a ticket that is opened in the caller's transaction."""

_NEXT_COMMENT_ID = Statement(select(t.comment_id.next_value()))


class OpenedByRow(NamedTuple):
    """The ticket that a failed row opened, if it did; the offset of the company's clock, if it has arrived."""

    ticket_id: int | None
    clock_offset: datetime.timedelta | None


_ticket_of_row = select(t.ticket_of_inspection_row.c.ticket_id).where(
    *(
        t.ticket_of_inspection_row.c[name] == param(name, BigInteger)
        for name in ("company_id", "inspection_id", "row_id")
    )
)
_OPENED_BY_ROW = Query(
    OpenedByRow,
    select(
        _ticket_of_row.scalar_subquery().label("ticket_id"), offset_of(schema.company, param("company_id", BigInteger))
    ),
)


async def comment_id(connection: Connection) -> int:
    """An id for a comment that the transaction adds."""
    next_id: int = await connection.value(_NEXT_COMMENT_ID)
    return next_id


async def opened_by_row(connection: Connection, company_id: int, inspection_id: int, row_id: int) -> OpenedByRow:
    opened = await _OPENED_BY_ROW.row(connection, company_id=company_id, inspection_id=inspection_id, row_id=row_id)
    assert opened is not None
    return opened
