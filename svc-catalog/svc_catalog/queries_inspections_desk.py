"""Every SQL statement about the rows of inspections, named for what it returns. The company comes first in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, select, update

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany
from chassis.db.statements import Statement, param
from svc_catalog.tables_inspections import inspection_row

_RESULT = ("result", "note", "category", "priority", "asset_id", "photo_url", "failed_at")
_company_id, _inspection_id = param("company_id", BigInteger), param("inspection_id", BigInteger)

_INSERT = InsertMany(inspection_row, ("company_id", "inspection_id", "position", "label"))
_OF_INSPECTION = (inspection_row.c.company_id == _company_id, inspection_row.c.inspection_id == _inspection_id)
_ROWS = Statement(select(inspection_row).where(*_OF_INSPECTION).order_by(inspection_row.c.position))
_SAVE = Statement(
    update(inspection_row)
    .where(*_OF_INSPECTION, inspection_row.c.id == param("row_id", BigInteger))
    .values({name: param(name, inspection_row.c[name].type) for name in _RESULT})
)


async def add_rows(connection: Connection, company_id: int, inspection_id: int, labels: Sequence[str]) -> None:
    """Gives an inspection its rows, in the order of their labels."""
    of_inspection = {"company_id": company_id, "inspection_id": inspection_id}
    rows = [of_inspection | {"position": number, "label": label} for number, label in enumerate(labels, start=1)]
    await _INSERT.run(connection, rows)


async def rows_of(connection: Connection | Database, company_id: int, inspection_id: int) -> list[Record]:
    """An inspection's rows in their order. Whoever changes one holds the inspection."""
    return await connection.rows(_ROWS, company_id=company_id, inspection_id=inspection_id)


async def save_row(
    connection: Connection, company_id: int, inspection_id: int, row_id: int, values: dict[str, Any]
) -> None:
    """values: what somebody found."""
    found = {name: values[name] for name in _RESULT}
    await connection.execute(_SAVE, company_id=company_id, inspection_id=inspection_id, row_id=row_id, **found)
