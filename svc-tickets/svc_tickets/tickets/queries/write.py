"""The SQL statements that change tickets, and add to their comments and history."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import partial

from sqlalchemy import (
    BigInteger,
    Insert,
    Label,
    Table,
    Text,
    case,
    delete,
    func,
    insert,
    literal_column,
    select,
    text,
    true,
    update,
)

from chassis.auth.identity import Identity
from chassis.changes.tables import NAMES_SEEN, names_are_current
from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from chassis.records.shapes import DOCUMENT, DOCUMENT_SHAPE
from chassis.writes.coalescing import CoalescingWrite, ConditionSeen
from chassis.writes.editing import EditableTable
from chassis.writes.idempotency import IdempotentWrite
from svc_tickets import schema
from svc_tickets.policy.queries import photo_required
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.queries import stale
from svc_tickets.tickets.queries.read import SAME_TICKET, TICKETS
from svc_tickets.tickets.rules import fields, staleness

_company_id = param("company_id", BigInteger)

# The status of a ticket.

# A photo_url that is not blank counts as a photo where the policy requires one.
HAS_PHOTO = func.coalesce(t.ticket.c.photo_url, text("''")).op("~")(literal_column("'[^[:space:]]'")).label("has_photo")
PHOTO_REQUIRED = photo_required(t.ticket.c.company_id)


def _cancellation_notes() -> Label[str]:
    """The notes of the present cancellation, which the newest entry of the history names. Only one with see_notes has
    any, so other tickets cost no look-up."""
    entry, comment = t.ticket_status_change.c, t.ticket_comment.c
    of_entry = (
        (comment.company_id == entry.company_id)
        & (comment.ticket_id == entry.ticket_id)
        & (comment.id == entry.comment_id)
    )
    newest = (
        select(comment.body)
        .select_from(t.ticket_status_change.outerjoin(t.ticket_comment, of_entry))
        .where(entry.company_id == t.ticket.c.company_id, entry.ticket_id == t.ticket.c.id)
        .order_by(entry.version.desc())
        .limit(literal_column("1"))
    )
    see_notes = t.ticket.c.cancellation_reason_code == literal_column("'see_notes'")
    return case((see_notes, newest.scalar_subquery())).label("cancellation_notes")


# The rendered columns, then those that the rules need.
_ticket_to_change = TICKETS.add_columns(PHOTO_REQUIRED, HAS_PHOTO, *stale.FACTS, _cancellation_notes(), NAMES_SEEN)

# The policy may become another one while the ticket keeps its version.
CHANGE_STATUS = CoalescingWrite(
    schema.idempotency,
    t.ticket,
    _ticket_to_change,
    sets=(
        "version",
        "status",
        "updated_at",
        "completed_at",
        "cancelled_at",
        "cancellation_reason_code",
        *staleness.COLUMNS,
        DOCUMENT,
        DOCUMENT_SHAPE,
    ),
    guards=(PHOTO_REQUIRED, stale.THRESHOLD_OF_RESIDENTS),
    inserts=(t.ticket_comment, t.ticket_status_change, schema.outbox, schema.audit),
    only_if={DOCUMENT_SHAPE: ConditionSeen(NAMES_SEEN, partial(names_are_current, schema.metadata))},
)

# A photo, over the API. The new version is the ticket's own where nothing changes.
_SHOWN = ("photo_url", "updated_at", *staleness.COLUMNS, DOCUMENT, DOCUMENT_SHAPE)
_show_photo = (
    update(t.ticket)
    .where(*SAME_TICKET, t.ticket.c.version < param("new_version", BigInteger))
    .values(
        version=param("new_version", BigInteger),
        **{name: param(f"new_{name}", t.ticket.c[name].type) for name in _SHOWN},
    )
)
ADD_PHOTO = IdempotentWrite(
    schema.idempotency,
    t.ticket,
    TICKETS.add_columns(*stale.FACTS).where(*SAME_TICKET),
    inserts=(t.ticket_comment,),
    updates=(_show_photo,),
)

# In the back office.

# What a ticket says, and its unit and asset. A ticket stays on its property.
CORRECTED = (
    "title",
    "description",
    "category",
    "subcategory",
    "priority",
    "unit_id",
    "asset_id",
    "room",
    "room_instance",
    "permission_to_enter",
    "preferred_access_time",
)
EDITABLE = EditableTable(
    t.ticket,
    "assignee_id",
    "vendor_id",
    "photo_url",
    *CORRECTED,
    "unit_number",
    *staleness.COLUMNS,
)
# The columns that the audit log records of a change.
AUDITED = ("assignee_id", "vendor_id", "photo_url", *CORRECTED)
EDITED = Statement(
    TICKETS.add_columns(*stale.FACTS).where(
        t.ticket.c.company_id == _company_id, t.ticket.c.id == param("entity_id", BigInteger)
    )
)
_SAVE_STALENESS = Statement(
    update(t.ticket)
    .where(*SAME_TICKET)
    .values({name: param(f"new_{name}", t.ticket.c[name].type) for name in staleness.COLUMNS})
)


async def save_staleness(
    connection: Connection, company_id: int, ticket_id: int, columns: Mapping[str, datetime.datetime | None]
) -> None:
    """columns: those of `staleness.Staleness`. Rendered columns and the version stay."""
    values = {f"new_{name}": columns[name] for name in staleness.COLUMNS}
    await connection.execute(_SAVE_STALENESS, company_id=company_id, ticket_id=ticket_id, **values)


# Staff and vendors that a ticket can be assigned to.


def _known(table: Table) -> Statement:
    mine = (table.c.company_id == _company_id, table.c.id == param("id", BigInteger), table.c.version > 0)
    return Statement(select(true()).where(*mine))


_KNOWN = {"assignee_id": _known(schema.staff), "vendor_id": _known(schema.vendor)}


async def lacking(database: Database, company_id: int, named: Mapping[str, int]) -> list[str]:
    """Those of assignee_id and vendor_id that the replicas lack."""
    async with database.connection() as connection:
        return [
            name
            for name, entity_id in named.items()
            if not await connection.value(_KNOWN[name], company_id=company_id, id=entity_id)
        ]


def _name(table: Table) -> Statement:
    return Statement(
        select(table.c.name).where(table.c.company_id == _company_id, table.c.id == param("id", BigInteger))
    )


_NAMES = {"assignee_id": _name(schema.staff), "vendor_id": _name(schema.vendor)}


async def name_of(connection: Connection, company_id: int, field: str, entity_id: int | None) -> str | None:
    """The name of an assignee or a vendor. field: assignee_id or vendor_id."""
    if entity_id is None:
        return None
    name: str | None = await connection.value(_NAMES[field], company_id=company_id, id=entity_id)
    return name


_UNIT_NUMBER = Statement(
    select(schema.unit.c.unit_number).where(
        schema.unit.c.company_id == _company_id, schema.unit.c.id == param("id", BigInteger)
    )
)


async def unit_number(connection: Connection, company_id: int, unit_id: int | None) -> str | None:
    if unit_id is None:
        return None
    number: str | None = await connection.value(_UNIT_NUMBER, company_id=company_id, id=unit_id)
    return number


_ON_HOLD = Statement(
    select(schema.vendor.c.on_hold).where(
        schema.vendor.c.company_id == _company_id, schema.vendor.c.id == param("id", BigInteger)
    )
)


async def is_on_hold(connection: Connection, company_id: int, vendor_id: int) -> bool:
    return bool(await connection.value(_ON_HOLD, company_id=company_id, id=vendor_id))


# Comments.


def _insert(table: Table, names: Sequence[str], **more: object) -> Insert:
    return insert(table).values({name: param(name, table.c[name].type) for name in names} | more)


_COMMENT = ("company_id", "ticket_id", "kind", "body", "created_at", "administrator_id", "author", "actor")
_ADD_COMMENT = Statement(
    _insert(t.ticket_comment, _COMMENT, id=t.comment_id.next_value()).returning(t.ticket_comment.c.id)
)


async def add_comment(
    connection: Connection,
    by: Identity,
    *,
    company_id: int,
    ticket_id: int,
    kind: str,
    body: str,
    created_at: datetime.datetime,
    author: str,
) -> int:
    """Inserts a back-office comment and returns its id. author: of the words or the photo; by: the identity that
    submits it."""
    comment_id: int = await connection.value(
        _ADD_COMMENT,
        company_id=company_id,
        ticket_id=ticket_id,
        kind=kind,
        body=body,
        created_at=created_at,
        administrator_id=by.administrator_id,
        author=author,
        actor=by.actor,
    )
    return comment_id


_of_photos = (
    t.ticket_comment.c.company_id == _company_id,
    t.ticket_comment.c.ticket_id == param("ticket_id", BigInteger),
    t.ticket_comment.c.kind == literal_column(f"'{fields.PHOTO}'"),
)
_REMOVE_PHOTO = Statement(
    delete(t.ticket_comment)
    .where(*_of_photos, t.ticket_comment.c.body == param("photo_url", Text))
    .returning(t.ticket_comment.c.id)
)
_NEWEST_PHOTO = Statement(
    select(t.ticket_comment.c.body)
    .where(*_of_photos)
    .order_by(t.ticket_comment.c.created_at.desc(), t.ticket_comment.c.id.desc())
    .limit(literal_column("1"))
)


async def remove_photo(connection: Connection, company_id: int, ticket_id: int, photo_url: str) -> bool:
    """Deletes the rows of a photo. Returns whether there was one."""
    values = {"company_id": company_id, "ticket_id": ticket_id, "photo_url": photo_url}
    return bool(await connection.rows(_REMOVE_PHOTO, **values))


async def newest_photo(connection: Connection, company_id: int, ticket_id: int) -> str | None:
    """The address of the photo that was added last; None without any."""
    photo_url: str | None = await connection.value(_NEWEST_PHOTO, company_id=company_id, ticket_id=ticket_id)
    return photo_url
