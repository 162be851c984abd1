"""The SQL statements of changes of a ticket's status, and of what is told of them."""

from __future__ import annotations

from asyncpg import Record
from sqlalchemy import BigInteger, and_, func, literal_column, select, text, update

from chassis.db.database import Database
from chassis.db.statements import Statement, param
from chassis.writes.idempotency import DecideOnce
from svc_tickets import tables as t
from svc_tickets.queries import TICKETS
from svc_tickets.queries_quiet import QUIET, THRESHOLD_OF_RESIDENTS

# As many of them as fit a message with the longest notes: 32 MiB.
HISTORY_ROWS = 200

# What counts as a photo of a ticket where the company wants one before a ticket is completed.
_has_photo = func.coalesce(t.ticket.c.photo_url, text("''")).op("~")(literal_column("'[^[:space:]]'"))

_same_ticket = (
    t.ticket.c.company_id == param("company_id", BigInteger),
    t.ticket.c.id == param("ticket_id", BigInteger),
)
_photo_required = (
    select(t.ticket_policy.c.photo_required_to_complete)
    .where(t.ticket_policy.c.company_id == param("company_id", BigInteger))
    .scalar_subquery()
)
PHOTO_REQUIRED = func.coalesce(_photo_required, text("false")).label("photo_required")
HAS_PHOTO = _has_photo.label("has_photo")
# The columns of a served ticket, then what the rule asks: the policy as it is while the ticket is held.
_ticket_to_change = TICKETS.add_columns(PHOTO_REQUIRED, HAS_PHOTO).where(*_same_ticket)

# What a change of status may change.
CHANGED = ("status", "updated_at", "completed_at", "cancelled_at", "cancellation_reason_code")

# A version that is the ticket's already, where nothing is new, changes no row.
_change_ticket = (
    update(t.ticket)
    .where(*_same_ticket, t.ticket.c.version < param("new_version", BigInteger))
    .values(
        version=param("new_version", BigInteger),
        **{name: param(f"new_{name}", t.ticket.c[name].type) for name in (*CHANGED, *QUIET)},
    )
)

CHANGE_STATUS = DecideOnce(
    t.idempotency,
    t.ticket,
    _ticket_to_change.add_columns(THRESHOLD_OF_RESIDENTS),
    inserts=(t.ticket_comment, t.ticket_status_change, t.outbox),
    updates=(_change_ticket,),
)


def _history() -> Statement:
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
        .where(*_same_ticket)
    )
    return Statement(rows.order_by(change.c.version).limit(literal_column(str(HISTORY_ROWS + 1))))


_HISTORY = _history()


async def history(database: Database, company_id: int, ticket_id: int, after_version: int) -> list[Record] | None:
    """Up to HISTORY_ROWS + 1 changes, the oldest first; None where there is no such ticket."""
    rows = await database.rows(_HISTORY, company_id=company_id, ticket_id=ticket_id, after_version=after_version)
    if not rows:
        return None
    return [row for row in rows if row["version"] is not None]
