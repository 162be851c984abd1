"""The SQL statements of an import of tickets: a batch is a handful of statements, whatever its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, Text, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.batches import InsertMany, UpdateMany
from chassis.database import Connection
from chassis.imports import Known
from chassis.statements import Statement
from svc_tickets import tables as t

_company_id = bindparam("company_id", type_=BigInteger)
_external_ids = bindparam("external_ids", type_=ARRAY(Text))

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
_INSERTED = tuple(column.name for column in t.ticket.c)
_UPDATED = ("version", "updated_at", "ticket_number", *CHANGEABLE)


# What a row names; in a replica those count that have arrived.
NAMED = {
    "property": Known(t.property_, replica=True),
    "unit": Known(t.unit, "property_id", "unit_number", replica=True),
    "asset": Known(t.asset, "property_id", replica=True),
    "assignee": Known(t.staff, replica=True),
    "assigned_vendor": Known(t.vendor, replica=True),
}

_EXISTING = Statement(
    select(*(t.ticket.c[name] for name in ("company_id", "id", "external_id", *_UPDATED)))
    .where(t.ticket.c.company_id == _company_id, t.ticket.c.external_id == func.any(_external_ids))
    .order_by(t.ticket.c.id)
    .with_for_update()
)


async def tickets_for_update(connection: Connection, company_id: int, external_ids: Sequence[str]) -> dict[str, Record]:
    rows = await connection.rows(_EXISTING, company_id=company_id, external_ids=external_ids)
    return {row["external_id"]: row for row in rows}


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


_MANY = func.generate_series(1, bindparam("many", type_=Integer)).table_valued("n").render_derived()
_TICKET_IDS = Statement(select(t.ticket_id.next_value().cast(BigInteger)).select_from(_MANY))


async def ticket_ids(connection: Connection, many: int) -> list[int]:
    """Ids for as many new tickets, ascending. On this connection: others may all be waiting for this import."""
    return [row[0] for row in await connection.rows(_TICKET_IDS, many=many)] if many else []


INSERT_TICKETS = InsertMany(t.ticket, _INSERTED)
UPDATE_TICKETS = UpdateMany(t.ticket, _UPDATED)
INSERT_EVENTS = InsertMany(t.outbox, ("event_id", "subject", "message"))
