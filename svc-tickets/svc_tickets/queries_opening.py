"""The SQL statements of tickets that are opened at the desk or by a failed inspection row."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, insert, literal_column, select

from chassis.db.database import Connection
from chassis.db.statements import TIME, Statement, param
from svc_tickets import tables as t
from svc_tickets.queries_import import take_numbers
from svc_tickets.queries_quiet import QUIET

_company_id = param("company_id", BigInteger)

# What an opened ticket has from its opening; all else is as the table or `_insert_ticket` say.
OPENED = (
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
    "source",
    *QUIET,
)


def _insert_ticket(number: Any) -> Any:
    """A new ticket on the place that the replicas have: a unit or asset that is not on the property is left out."""
    now = param("now", TIME)
    property_id = param("property_id", BigInteger)
    on_unit = (t.unit.c.id == param("unit_id", BigInteger), t.unit.c.property_id == property_id)
    on_asset = (t.asset.c.id == param("asset_id", BigInteger), t.asset.c.property_id == property_id)
    values = {
        "company_id": _company_id,
        "id": number,
        "ticket_number": param("ticket_number", t.ticket.c.ticket_number.type),
        "status": literal_column("'Open'"),
        "property_id": property_id,
        "unit_id": select(t.unit.c.id).where(*on_unit).scalar_subquery(),
        "unit_number": select(t.unit.c.unit_number).where(*on_unit).scalar_subquery(),
        "asset_id": select(t.asset.c.id).where(*on_asset).scalar_subquery(),
        "created_at": now,
        "updated_at": now,
        **{name: param(name, t.ticket.c[name].type) for name in OPENED},
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


async def take_number(connection: Connection, property_id: int) -> int:
    return (await take_numbers(connection, {property_id: 1}))[property_id]


async def open_ticket(connection: Connection, **values: Any) -> int:
    """Inserts a ticket: OPENED, company_id, property_id, unit_id, asset_id (0: none), ticket_number, now."""
    ticket_id: int = await connection.value(_OPEN_TICKET, **values)
    return ticket_id


async def ticket_of_row(connection: Connection, company_id: int, inspection_id: int, row_id: int) -> int | None:
    """The ticket that the failed row has opened already."""
    found: int | None = await connection.value(
        _OPENED_BY_ROW, company_id=company_id, inspection_id=inspection_id, row_id=row_id
    )
    return found


async def open_ticket_of_row(connection: Connection, **values: Any) -> int:
    """As `open_ticket`, and says of inspection_id and row_id that this is theirs. Fails where they have one."""
    ticket_id: int = await connection.value(_NEXT_ID)
    await connection.execute(_OPEN_TICKET_OF_ROW, ticket_id=ticket_id, **values)
    return ticket_id
