"""The SQL statements of an import of tickets: a batch is a handful of statements, whatever its size."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import BigInteger, Integer, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.db.database import Connection
from chassis.db.rows import InsertMany
from chassis.db.statements import Statement
from chassis.imports.importer import ExternalIds, ImportTable
from svc_tickets import tables as t
from svc_tickets.queries_quiet import QUIET

# What a row of a file may change in a ticket that is there already.
CHANGEABLE = (
    "title",
    "description",
    "category",
    "subcategory",
    "priority",
    "status",
    "property_id",
    "unit_id",
    "asset_id",
    "assignee_id",
    "vendor_id",
    "unit_number",
    "room",
    "room_instance",
    "permission_to_enter",
    "preferred_access_time",
    "photo_url",
    "created_at",
    "completed_at",
    "cancelled_at",
    "cancellation_reason_code",
    "source",
)
TICKETS = ImportTable(t.ticket, "ticket_number", *QUIET, *CHANGEABLE)

# What a row names; in a replica those count that have arrived.
NAMED = {
    "property": ExternalIds(t.property_, replica=True),
    "unit": ExternalIds(t.unit, "property_id", "unit_number", replica=True),
    "asset": ExternalIds(t.asset, "property_id", replica=True),
    "assignee": ExternalIds(t.staff, replica=True),
    "assigned_vendor": ExternalIds(t.vendor, replica=True),
}


def _take_numbers() -> Statement:
    ids = bindparam("property_ids", type_=ARRAY(BigInteger))
    counts = bindparam("counts", type_=ARRAY(Integer))
    wanted = func.unnest(ids, counts).table_valued("property_id", "many").render_derived()
    put = insert(t.ticket_number).from_select(
        ["property_id", "last"], select(wanted.c.property_id, wanted.c.many).order_by(wanted.c.property_id)
    )
    return Statement(
        put.on_conflict_do_update(
            index_elements=["property_id"], set_={"last": t.ticket_number.c.last + put.excluded.last}
        ).returning(t.ticket_number.c.property_id, t.ticket_number.c.last)
    )


_TAKE_NUMBERS = _take_numbers()


async def take_numbers(connection: Connection, counts: Mapping[int, int]) -> dict[int, int]:
    """Takes as many ticket numbers of each property; returns the first of each."""
    rows = await connection.rows(_TAKE_NUMBERS, property_ids=list(counts), counts=list(counts.values()))
    return {row["property_id"]: row["last"] - counts[row["property_id"]] + 1 for row in rows}


INSERT_EVENTS = InsertMany(t.outbox, ("event_id", "subject", "message"))
# A change that a file brings has neither a comment nor a key.
INSERT_CHANGES = InsertMany(
    t.ticket_status_change,
    (
        "company_id",
        "ticket_id",
        "version",
        "occurred_at",
        "from_status",
        "to_status",
        "cancellation_reason_code",
        "request_id",
    ),
)
