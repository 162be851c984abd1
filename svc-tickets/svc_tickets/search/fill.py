"""Fills `ticket_search` beside the tickets, so that the write of a ticket pays nothing for it.

A comparison, which also fills the table after an upgrade, takes the open tickets first, then all, the newest first.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from asyncpg import Record
from prometheus_client import Counter
from sqlalchemy import BigInteger, Text, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, array, insert

from chassis.changes.following import STRETCH_ROWS, RecordFollower
from chassis.db.database import Database
from chassis.db.rows import array_rows, columns_of
from chassis.db.statements import Expression, Statement, param
from chassis.lists.updated_since import status_key
from svc_tickets.search import rules
from svc_tickets.search.tables import ticket_search
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.rules.fields import PHOTO
from svc_tickets.tickets.rules.staleness import CLOSED

COMMENTS_MAX = 200  # the newest ones of a ticket, whose words are found
OPEN_FIRST = ("Open", "In Progress", "On Hold", None)

FILLED = Counter("makeready_ticket_search_rows_total", "Rows of the search for tickets that were made")

# Only one process makes rows at a time: what it reads is then newer than the rows that it replaces.
_LOCK = int.from_bytes(hashlib.blake2b(b"ticket_search", digest_size=8).digest(), signed=True)
LOCKED = Statement(select(func.pg_advisory_xact_lock(literal_column(str(_LOCK))).label("locked")))
"""Until the end of the transaction, nobody makes rows."""
_IDS = ARRAY(BigInteger)
_AS_SENT = sa.types.NullType()  # an array, as asyncpg returns it
_t, _s, _comment = t.ticket.c, ticket_search.c, t.ticket_comment
_company_id = param("company_id", BigInteger)

_VALUES = ("property_id", "unit_id", "asset_id", "assignee_id", "vendor_id", "status", "priority", "category", "source")
_TEXTS = (
    "title",
    "description",
    "subcategory",
    "unit_number",
    "room",
    "room_instance",
    "external_id",
    "cancellation_reason_code",
)
_quiet_since = sa.case((_t.stale_due_at.is_not(None), _t.quiet_since))


def _read() -> Statement:
    of_ticket = sa.and_(_comment.c.company_id == _t.company_id, _comment.c.ticket_id == _t.id)
    newest = (
        select(_comment.c.id, _comment.c.kind, _comment.c.body)
        .where(of_ticket)
        .order_by(_comment.c.id.desc())
        .limit(literal_column(str(COMMENTS_MAX)))
        .correlate(t.ticket)
        .subquery("newest")
    )
    spoken = newest.c.kind != literal_column(f"'{PHOTO}'")
    comments = select(
        func.coalesce(func.max(newest.c.id), literal_column("0")).label("comment_id"),
        func.array_agg(aggregate_order_by(newest.c.body, newest.c.id.desc()), type_=_AS_SENT)
        .filter(spoken)
        .label("comments"),
    ).lateral("spoken")
    names = dict.fromkeys((*_VALUES, *_TEXTS, "ticket_number", "created_at"))
    return Statement(
        select(
            _t.company_id, _t.id, _t.version, _quiet_since.label("quiet_since"), *(_t[name] for name in names),
            comments.c.comment_id, comments.c.comments,
        )
        .select_from(t.ticket.join(comments, sa.true()))
        .where(_t.company_id == _company_id, _t.id == func.any(param("ids", _IDS)))
    )  # fmt: skip


def _save() -> Statement:
    names = [column.name for column in ticket_search.c if column.name != "terms"]
    entries = array_rows("entries", {**{name: _s[name].type for name in names}, "terms": Text()})
    words = func.string_to_array(entries.c.terms, literal_column("E'\\n'"))
    rows = select(*(entries.c[name] for name in names), func.array_to_tsvector(words))
    adding = insert(ticket_search).from_select([*names, "terms"], rows, include_defaults=False)
    key = [_s.company_id, _s.id]
    changed = {
        column.name: adding.excluded[column.name]
        for column in ticket_search.c
        if column.name not in ("company_id", "id")
    }
    return Statement(adding.on_conflict_do_update(index_elements=key, set_=changed))


_READ, _SAVE = _read(), _save()


def row_of(ticket: Record | Mapping[str, Any]) -> dict[str, Any]:
    """The row of `ticket_search` for a ticket; `terms` has one on each line."""
    company_id, created_at = ticket["company_id"], ticket["created_at"]
    quiet_since: datetime.datetime | None = ticket["quiet_since"]
    values: list[tuple[str, object]] = [
        ("s", ticket["status"]),
        ("p", ticket["priority"]),
        ("c", ticket["category"]),
        ("o", ticket["source"]),
        ("P", ticket["property_id"]),
        *rules.value_terms("U", ticket["unit_id"]),
        *rules.value_terms("E", ticket["asset_id"]),
        *rules.value_terms("A", ticket["assignee_id"]),
        *rules.value_terms("V", ticket["vendor_id"]),
    ]
    if quiet_since is not None:
        values.append(("q", ""))
    if ticket["ticket_number"] is not None:
        values.append(("#", ticket["ticket_number"]))
    if ticket["external_id"] is not None:
        values.append(("x", rules.name_of(ticket["external_id"])))
    number = "" if ticket["ticket_number"] is None else str(ticket["ticket_number"])
    texts = [number, *(ticket[name] for name in _TEXTS), *(ticket["comments"] or ())]
    values += [("w", word) for word in rules.words_of(rules.cut(texts))]
    return {
        **{name: ticket[name] for name in ("company_id", "id", "version", "comment_id", *_VALUES)},
        "quiet_since": quiet_since,
        "is_open": ticket["status"] not in CLOSED,
        "opened": rules.opened_key(created_at),
        "urgency": rules.urgency_key(ticket["priority"], ticket["status"], created_at),
        "waiting": rules.waiting_key(quiet_since, ticket["priority"], created_at),
        "terms": "\n".join(rules.term(company_id, *value) for value in values),
    }


_NAMES = [column.name for column in ticket_search.c]


def _compare(status: str | None) -> Statement:
    """Parameters: company_id, below (an id), rows; status if not None."""
    having = [_t.company_id == _company_id]
    order: list[Expression] = [_t.id.desc()]
    if status is not None:
        key = status_key(_t.company_id, _t.status)
        having = [key == sa.any_(array([status_key(_company_id, literal_column(f"'{status}'"))]))]
        having.append((_t.company_id == _company_id).is_(sa.true()))
        order = [key.desc(), _t.id.desc()]
    columns = (_t.company_id, _t.id, _t.version, _quiet_since.label("quiet_since"))
    tickets = select(*columns).where(*having, _t.id < param("below", BigInteger)).order_by(*order)
    stretch = tickets.limit(literal_column(str(STRETCH_ROWS))).subquery("stretch")
    last_comment = (
        select(func.max(_comment.c.id))
        .where(_comment.c.company_id == stretch.c.company_id, _comment.c.ticket_id == stretch.c.id)
        .correlate(stretch)
        .scalar_subquery()
    )
    differs = sa.or_(
        _s.version.is_distinct_from(stretch.c.version),
        _s.quiet_since.is_distinct_from(stretch.c.quiet_since),
        _s.comment_id != func.coalesce(last_comment, literal_column("0")),
    )
    row = sa.and_(_s.company_id == stretch.c.company_id, _s.id == stretch.c.id)
    return Statement(
        select(
            func.min(stretch.c.id).label("reached"),
            func.count().label("met"),
            func.array_agg(aggregate_order_by(stretch.c.id, stretch.c.id.desc()), type_=_AS_SENT)
            .filter(differs)
            .label("differing"),
            func.count().filter(_s.version.is_(None)).label("missing"),
        ).select_from(stretch.outerjoin(ticket_search, row))
    )


_COMPARE = [_compare(status) for status in OPEN_FIRST]
# The company with the lowest id above another one: a step from index entry to index entry, not over all tickets.
_NEXT_COMPANY = Statement(select(func.min(_t.company_id)).where(_t.company_id > _company_id))


class SearchFiller(RecordFollower):
    """Makes the rows of `ticket_search`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, "ticket", _COMPARE, _NEXT_COMPANY)
        self._database = database

    async def fill(self, company_id: int, ids: Sequence[int]) -> None:
        """Makes the rows of these tickets as they are now."""
        # The lock comes first, then the reading: another process's older reading is never written over a newer one.
        async with self._database.transaction(f"SELECT pg_advisory_xact_lock({_LOCK})") as connection:
            tickets: list[Record] = await connection.rows(_READ, company_id=company_id, ids=list(ids))
            rows = [row_of(ticket) for ticket in tickets]
            if rows:
                await connection.execute(_SAVE, **columns_of(rows, _NAMES))
            # Lists of tickets are as new as these rows, and not as the tickets: a hint for those who watch one.
            connection.changed.update((company_id, "ticket_search", ticket["id"]) for ticket in tickets)
        FILLED.inc(len(rows))
