"""The SQL statements about the free texts of tickets: to list a unit's, and to remove marked ones."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, Text, func, literal_column, select, text, true, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database
from chassis.db.statements import TIME, Query, Statement, param
from chassis.lists.updated_since import is_of, stretch
from chassis.schedule.clocks import offset_of
from svc_tickets import schema
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.rules import fields, texts

COMMENTS_MAX = 200  # the newest of a ticket
REMOVED_ACTION = "ticket.texts_removed"

_company_id, _unit_id = param("company_id", BigInteger), param("unit_id", BigInteger)
_t, _c = t.ticket.c, t.ticket_comment.c


class TicketTexts(NamedTuple):
    """A ticket with its texts."""

    id: int
    ticket_number: int | None
    title: str
    description: str | None
    preferred_access_time: str | None
    status: str
    created_at: datetime.datetime


_of_unit, _order = stretch([(_t.company_id, _company_id), (_t.unit_id, _unit_id)], [])
OF_UNIT = Query(
    TicketTexts,
    select(*(_t[name] for name in TicketTexts._fields))
    .where(
        *_of_unit,
        # In a form that no index matches.
        (_t.created_at >= param("opened_from", TIME)).is_(true()),
        (_t.created_at < param("opened_to", TIME)).is_(true()),
    )
    .order_by(*(column.desc() for column in _order), _t.id.desc())
    .limit(param("rows", Integer)),
)
_EXISTS = Statement(
    select(schema.unit.c.id).where(
        schema.unit.c.company_id == _company_id, schema.unit.c.id == _unit_id, schema.unit.c.version > 0
    )
)


class Comment(NamedTuple):
    """A comment or note, not a photo."""

    ticket_id: int
    id: int
    created_at: datetime.datetime
    body: str
    author: str | None


def _comments() -> Query[Comment]:
    tickets = (
        func.unnest(param("ticket_ids", ARRAY(BigInteger))).table_valued("ticket_id").render_derived(name="tickets")
    )
    newest = (
        select(*(_c[name] for name in Comment._fields))
        .where(
            _c.company_id == _company_id,
            _c.ticket_id == tickets.c.ticket_id,
            _c.kind != literal_column(f"'{fields.PHOTO}'"),
        )
        .order_by(_c.id.desc())
        .limit(literal_column(str(COMMENTS_MAX)))
        .lateral("newest")
    )
    rows = select(*newest.c).select_from(tickets.join(newest, true()))
    return Query(Comment, rows.order_by(newest.c.ticket_id, newest.c.created_at, newest.c.id))


_COMMENTS = _comments()


async def of_unit(
    database: Database,
    company_id: int,
    unit_id: int,
    opened_from: datetime.datetime,
    opened_to: datetime.datetime,
    rows: int,
) -> tuple[list[TicketTexts], dict[int, list[Comment]]] | None:
    """The unit's tickets opened between two instants, newest first, and their comments by ticket, oldest first; None if
    the company has no such unit."""
    key = {"company_id": company_id, "unit_id": unit_id}
    async with database.connection() as connection:
        if await connection.value(_EXISTS, **key) is None:
            return None
        tickets = await OF_UNIT.rows(connection, **key, opened_from=opened_from, opened_to=opened_to, rows=rows)
        comments: dict[int, list[Comment]] = {ticket.id: [] for ticket in tickets}
        if comments:
            for comment in await _COMMENTS.rows(connection, company_id=company_id, ticket_ids=list(comments)):
                comments[comment.ticket_id].append(comment)
    return tickets, comments


_LOCK = Statement(
    select(_t.id, _t.updated_at, offset_of(schema.company, _company_id), *(_t[name] for name in texts.FIELDS))
    .where(
        _t.company_id == _company_id,
        _t.id == param("ticket_id", BigInteger),
        *is_of([(_t.unit_id, _unit_id)]),
    )
    .with_for_update(of=t.ticket, key_share=True)
)
_REMOVE = Statement(
    update(t.ticket)
    .where(_t.company_id == _company_id, _t.id == param("ticket_id", BigInteger))
    .values(
        version=_t.version + literal_column("1"),
        updated_at=param("at", TIME),
        **{name: param(f"new_{name}", _t[name].type) for name in texts.FIELDS},
    )
)
_REMOVE_COMMENTS = Statement(
    update(t.ticket_comment)
    .where(
        _c.company_id == _company_id,
        _c.ticket_id == param("ticket_id", BigInteger),
        _c.id == func.any(param("comment_ids", ARRAY(BigInteger))),
        _c.kind != literal_column(f"'{fields.PHOTO}'"),
        _c.body != literal_column(f"'{texts.REMOVED}'"),
    )
    .values(body=literal_column(f"'{texts.REMOVED}'", Text))
    .returning(_c.id)
)


async def locked(connection: Connection, company_id: int, unit_id: int, ticket_id: int) -> Record | None:
    """Locks the ticket and reads its texts, and its company's clock_offset; None if the unit has no such ticket."""
    return await connection.row(_LOCK, company_id=company_id, unit_id=unit_id, ticket_id=ticket_id)


async def save(
    connection: Connection, company_id: int, ticket: Record, values: Mapping[str, str | None], at: datetime.datetime
) -> None:
    """Stores the new values of some texts; those without a new one stay. at: the ticket's new updated_at."""
    new = {f"new_{name}": values.get(name, ticket[name]) for name in texts.FIELDS}
    await connection.execute(_REMOVE, company_id=company_id, ticket_id=ticket["id"], at=at, **new)


async def remove_comments(
    connection: Connection, company_id: int, ticket_id: int, comment_ids: Sequence[int]
) -> list[int]:
    """Removes the words of comments; returns the ids of those that had any."""
    rows = await connection.rows(
        _REMOVE_COMMENTS, company_id=company_id, ticket_id=ticket_id, comment_ids=list(comment_ids)
    )
    return sorted(row["id"] for row in rows)


_REMOVE_OF_WITHDRAWN = Statement(
    text(
        "UPDATE withdrawn_record SET record = record - CAST(:texts AS text[]) WHERE company_id = :company_id "
        "AND kind = 'ticket' AND CAST(record ->> 'unit_id' AS bigint) = :unit_id"
    )
)
# The condition stands in it twice: a batch that is undone meanwhile is read anew.
_REMOVE_BEFORE_IMPORTS = Statement(
    text(
        "UPDATE import_batch SET before = (SELECT jsonb_object_agg(old.key, CASE "
        "WHEN CAST(old.value ->> 'unit_id' AS bigint) = :unit_id OR EXISTS (SELECT FROM ticket "
        "WHERE ticket.company_id = :company_id AND ticket.id = CAST(old.key AS bigint) AND ticket.unit_id = :unit_id) "
        "THEN old.value - CAST(:texts AS text[]) ELSE old.value END) FROM jsonb_each(before) AS old) "
        "WHERE company_id = :company_id AND kind = 'tickets' AND EXISTS (SELECT FROM jsonb_each(before) AS old "
        "WHERE CAST(old.value ->> 'unit_id' AS bigint) = :unit_id OR EXISTS (SELECT FROM ticket "
        "WHERE ticket.company_id = :company_id AND ticket.id = CAST(old.key AS bigint) AND ticket.unit_id = :unit_id))"
    )
)


async def remove_undone(connection: Connection, company_id: int, unit_id: int) -> None:
    """Removes the texts that nobody can mark, since nobody sees them: those of the unit's withdrawn tickets, and those
    that an undo of an import would bring back to its tickets."""
    for statement in (_REMOVE_OF_WITHDRAWN, _REMOVE_BEFORE_IMPORTS):
        await connection.execute(statement, company_id=company_id, unit_id=unit_id, texts=list(texts.FIELDS))


_audit = schema.audit
_REMOVALS = Statement(
    select(_audit.c.subject_id, func.max(_audit.c.recorded_at).label("removed_at"))
    .where(
        _audit.c.company_id == _company_id,
        _audit.c.subject == literal_column("'ticket'"),
        _audit.c.subject_id == func.any(param("ticket_ids", ARRAY(BigInteger))),
        _audit.c.action == literal_column(f"'{REMOVED_ACTION}'"),
    )
    .group_by(_audit.c.subject_id)
)


async def removals(database: Database, company_id: int, ticket_ids: Sequence[int]) -> dict[int, datetime.datetime]:
    """When texts of these tickets were removed last, by ticket; without those of which none was."""
    rows = await database.rows(_REMOVALS, company_id=company_id, ticket_ids=list(ticket_ids))
    return {row["subject_id"]: row["removed_at"] for row in rows}
