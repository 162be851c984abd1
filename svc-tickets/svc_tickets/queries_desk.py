"""The SQL statements of the back office, of tickets that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, and_, insert, literal_column, or_, select, text, true, tuple_, update

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from svc_tickets import queries
from svc_tickets import tables as t
from svc_tickets.queries_changes import HAS_PHOTO, PHOTO_REQUIRED
from svc_tickets.queries_quiet import QUIET, THRESHOLD_OF_RESIDENTS

# As many of them as fit a message with the longest texts: 32 MiB.
COMMENT_ROWS = 200

_company_id = param("company_id", BigInteger)
_same_ticket = (t.ticket.c.company_id == _company_id, t.ticket.c.id == param("ticket_id", BigInteger))

# Whom a ticket may be given to.


def _known(table: Any) -> Statement:
    mine = (table.c.company_id == _company_id, table.c.id == param("id", BigInteger), table.c.version > 0)
    return Statement(select(true()).where(*mine))


_KNOWN = {"assignee_id": _known(t.staff), "vendor_id": _known(t.vendor)}


async def lacking(database: Database, company_id: int, named: Mapping[str, int]) -> list[str]:
    """Which of assignee_id and vendor_id the replicas do not have."""
    async with database.connection() as connection:
        return [
            name
            for name, entity_id in named.items()
            if not await connection.value(_KNOWN[name], company_id=company_id, id=entity_id)
        ]


_ON_HOLD = Statement(
    select(t.vendor.c.on_hold).where(t.vendor.c.company_id == _company_id, t.vendor.c.id == param("id", BigInteger))
)


async def is_on_hold(connection: Connection, company_id: int, vendor_id: int) -> bool:
    return bool(await connection.value(_ON_HOLD, company_id=company_id, id=vendor_id))


# Tickets that are there.

_LOCK = Statement(select(text("1")).select_from(t.ticket).where(*_same_ticket).with_for_update(key_share=True))
_HELD = Statement(select(t.ticket, PHOTO_REQUIRED, THRESHOLD_OF_RESIDENTS, HAS_PHOTO).where(*_same_ticket))
# What an act may change in a ticket.
CHANGEABLE = (
    "version",
    "updated_at",
    "status",
    "completed_at",
    "cancelled_at",
    "cancellation_reason_code",
    "assignee_id",
    "vendor_id",
    "photo_url",
    *QUIET,
)
_SAVE = Statement(
    update(t.ticket)
    .where(*_same_ticket)
    .values({name: param(f"new_{name}", t.ticket.c[name].type) for name in CHANGEABLE})
)
_SERVED = Statement(queries.TICKETS.where(*_same_ticket))


async def ticket_for_update(connection: Connection, company_id: int, ticket_id: int) -> dict[str, Any] | None:
    """The ticket's own columns, held until the end of the transaction; photo_required, stale_after_hours and has_photo
    as they are then."""
    key = {"company_id": company_id, "ticket_id": ticket_id}
    # Two statements: what is read while a lock is waited for is older than the lock.
    await connection.execute(_LOCK, **key)
    row = await connection.row(_HELD, **key)
    return None if row is None else dict(row)


async def save_ticket(connection: Connection, ticket: Mapping[str, Any]) -> None:
    """Stores CHANGEABLE of a ticket that is held."""
    values = {f"new_{name}": ticket[name] for name in CHANGEABLE}
    await connection.execute(_SAVE, company_id=ticket["company_id"], ticket_id=ticket["id"], **values)


async def served(connection: Connection, company_id: int, ticket_id: int) -> Record:
    """The columns of a served ticket, within a transaction."""
    row = await connection.row(_SERVED, company_id=company_id, ticket_id=ticket_id)
    assert row is not None
    return row


# Comments, and the history of a ticket's status.


def _insert(table: Any, names: Sequence[str], **more: Any) -> Any:
    return insert(table).values({name: param(name, table.c[name].type) for name in names} | more)


_COMMENT = ("company_id", "ticket_id", "kind", "body", "created_at", "administrator_id", "author", "actor")
_ADD_COMMENT = Statement(
    _insert(t.ticket_comment, _COMMENT, id=t.comment_id.next_value()).returning(t.ticket_comment.c.id)
)
_ENTRY = (
    "company_id",
    "ticket_id",
    "version",
    "occurred_at",
    "from_status",
    "to_status",
    "cancellation_reason_code",
    "comment_id",
    "administrator_id",
    "actor",
    "request_id",
)
_ADD_ENTRY = Statement(_insert(t.ticket_status_change, _ENTRY))


async def add_comment(connection: Connection, **values: Any) -> int:
    """Inserts a comment of a ticket, and returns its id."""
    comment_id: int = await connection.value(_ADD_COMMENT, **values)
    return comment_id


async def add_entry(connection: Connection, **values: Any) -> None:
    """Adds to the history of a ticket's status."""
    await connection.execute(_ADD_ENTRY, **values)


def _comments() -> Statement:
    """In the order of their instants: ids come from blocks, of which each process has its own."""
    comment, last = t.ticket_comment, t.ticket_comment.alias("last")
    of_ticket = [
        and_(one.c.company_id == t.ticket.c.company_id, one.c.ticket_id == t.ticket.c.id) for one in (comment, last)
    ]
    is_last = and_(of_ticket[1], last.c.id == param("after_id", BigInteger))
    is_later = tuple_(comment.c.created_at, comment.c.id) > tuple_(last.c.created_at, last.c.id)
    names = ("id", "created_at", "kind", "body", "author", "actor", "api_key_id")
    rows = select(*(comment.c[name] for name in names)).select_from(
        t.ticket.outerjoin(last, is_last).outerjoin(comment, and_(of_ticket[0], or_(last.c.id.is_(None), is_later)))
    )
    in_order = rows.where(*_same_ticket).order_by(comment.c.created_at, comment.c.id)
    return Statement(in_order.limit(literal_column(str(COMMENT_ROWS + 1))))


_COMMENTS = _comments()


async def comments(database: Database, company_id: int, ticket_id: int, after_id: int) -> list[Record] | None:
    """Up to COMMENT_ROWS + 1, the oldest first; None where there is no such ticket."""
    rows = await database.rows(_COMMENTS, company_id=company_id, ticket_id=ticket_id, after_id=after_id)
    return [row for row in rows if row["id"] is not None] if rows else None
