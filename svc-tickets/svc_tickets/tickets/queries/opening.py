"""The SQL statements that open tickets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import BigInteger, insert, select, true

from chassis.changes.tables import names_are_current
from chassis.db.database import Connection
from chassis.db.statements import Statement, param
from chassis.writes.coalescing import CoalescingInsert
from svc_tickets import schema
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.rules import staleness

_company_id = param("company_id", BigInteger)

# A create over the API inserts the claim, the ticket and the event.
CREATE_TICKET = CoalescingInsert(
    schema.idempotency,
    t.ticket,
    schema.outbox,
    only_if={t.ticket.c.document: true(), t.ticket.c.document_shape: names_are_current(schema.metadata)},
)

# The columns that are inserted as the row has them.
_GIVEN = (
    "title",
    "description",
    "category",
    "subcategory",
    "priority",
    "room",
    "room_instance",
    "permission_to_enter",
    "preferred_access_time",
    "photo_url",
    "status",
    "source",
    "created_at",
    "updated_at",
    *staleness.COLUMNS,
)


def _insert_ticket(number: Any) -> Any:
    """A new ticket's columns and their values. A unit or asset that the replicas lack on the property is left out."""
    property_id = param("property_id", BigInteger)
    on_unit = (schema.unit.c.id == param("unit_id", BigInteger), schema.unit.c.property_id == property_id)
    on_asset = (schema.asset.c.id == param("asset_id", BigInteger), schema.asset.c.property_id == property_id)
    values = {
        "company_id": _company_id,
        "id": number,
        "ticket_number": param("ticket_number", t.ticket.c.ticket_number.type),
        "property_id": property_id,
        "unit_id": select(schema.unit.c.id).where(*on_unit).scalar_subquery(),
        "unit_number": select(schema.unit.c.unit_number).where(*on_unit).scalar_subquery(),
        "asset_id": select(schema.asset.c.id).where(*on_asset).scalar_subquery(),
        **{name: param(name, t.ticket.c[name].type) for name in _GIVEN},
    }
    return list(values), list(values.values())


def _open_ticket() -> Statement:
    names, values = _insert_ticket(t.ticket_id.next_value())
    return Statement(
        insert(t.ticket).from_select(names, select(*values), include_defaults=False).returning(t.ticket.c.id)
    )


def _open_ticket_of_row() -> Statement:
    row = t.ticket_of_inspection_row
    key = ("company_id", "inspection_id", "row_id")
    names, values = _insert_ticket(param("ticket_id", BigInteger))
    claim = insert(row).values({name: param(name, BigInteger) for name in (*key, "ticket_id")})
    opened = insert(t.ticket).from_select(names, select(*values), include_defaults=False)
    return Statement(select(claim.returning(row.c.ticket_id).cte("claim").c.ticket_id).add_cte(opened.cte("opened")))


_OPEN_TICKET, _OPEN_TICKET_OF_ROW = _open_ticket(), _open_ticket_of_row()
_NEXT_ID = Statement(select(t.ticket_id.next_value()))
_OPENED_BY_ROW = Statement(
    select(t.ticket_of_inspection_row.c.ticket_id).where(
        *(
            t.ticket_of_inspection_row.c[name] == param(name, BigInteger)
            for name in ("company_id", "inspection_id", "row_id")
        )
    )
)


def _arguments(row: Mapping[str, Any], ticket_number: int) -> dict[str, Any]:
    place = {name: row[name] for name in ("company_id", "property_id", "unit_id", "asset_id")}
    return {name: row[name] for name in _GIVEN} | place | {"ticket_number": ticket_number}


async def open_ticket(connection: Connection, row: Mapping[str, Any], ticket_number: int) -> int:
    """Inserts a ticket and returns its id. row: see `opening.NewTicket`; unit_number comes from the unit."""
    ticket_id: int = await connection.value(_OPEN_TICKET, **_arguments(row, ticket_number))
    return ticket_id


async def ticket_of_row(connection: Connection, company_id: int, inspection_id: int, row_id: int) -> int | None:
    """The ticket that the failed row opened, if it did."""
    found: int | None = await connection.value(
        _OPENED_BY_ROW, company_id=company_id, inspection_id=inspection_id, row_id=row_id
    )
    return found


async def open_ticket_of_row(
    connection: Connection, row: Mapping[str, Any], ticket_number: int, inspection_row: Mapping[str, int]
) -> int:
    """Like `open_ticket`, and records the ticket as that of the inspection's row. Fails if the row already has one.

    inspection_row: inspection_id and row_id.
    """
    ticket_id: int = await connection.value(_NEXT_ID)
    values = _arguments(row, ticket_number)
    await connection.execute(_OPEN_TICKET_OF_ROW, ticket_id=ticket_id, **values, **inspection_row)
    return ticket_id
