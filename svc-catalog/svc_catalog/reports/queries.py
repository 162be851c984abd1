"""The statements of reports: completed inspections with their rows, and the names of properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by

from chassis.db.database import Connection
from chassis.db.statements import Statement, param
from chassis.reports.facts import RecordFacts
from chassis.reports.keeping import FactSource
from svc_catalog import schema
from svc_catalog.inspections.tables import SERVED, inspection, inspection_row
from svc_catalog.places.tables import property_
from svc_catalog.reports import facts

_IDS = ARRAY(sa.BigInteger)
_company_id = param("company_id", sa.BigInteger)
_is_completed = sa.and_(
    SERVED,
    inspection.c.published_status == sa.literal_column("'Completed'"),
    inspection.c.completed_date.is_not(None),
)
# The rows of a completed inspection change no more.
_VERSION = sa.cast(inspection.c.version, sa.Text)
RECORDS = sa.select(
    inspection.c.company_id, inspection.c.id, sa.case((_is_completed, _VERSION), else_=sa.null()).label("state")
)


def _of_rows(column: sa.ColumnElement[str]) -> sa.ScalarSelect[Any]:
    """The column of the inspection's rows that have a result, in their order."""
    values = sa.func.array_agg(aggregate_order_by(column, inspection_row.c.position), type_=sa.types.NullType())
    return (
        sa.select(sa.func.coalesce(values, sa.literal_column("'{}'::text[]")))
        .where(
            inspection_row.c.company_id == inspection.c.company_id,
            inspection_row.c.inspection_id == inspection.c.id,
            inspection_row.c.result.is_not(None),
        )
        .scalar_subquery()
    )


READ = Statement(
    sa.select(
        inspection.c.id,
        _VERSION.label("state"),
        inspection.c.property_id,
        inspection.c.inspection_type,
        inspection.c.result,
        inspection.c.completed_date,
        _of_rows(inspection_row.c.label).label("labels"),
        _of_rows(inspection_row.c.result).label("results"),
    ).where(inspection.c.company_id == _company_id, inspection.c.id == sa.func.any(param("ids", _IDS)), _is_completed)
)


def facts_of(row: Record, _timezone: str) -> list[RecordFacts]:
    """The facts of a row of `READ`. An inspection is completed on a day of the company's."""
    return facts.facts_of(facts.CompletedInspection(*row))


SOURCE = FactSource(
    kind="inspection",
    company=schema.company,
    records=RECORDS,
    read=READ,
    facts_of=facts_of,
    definitions=facts.DEFINITIONS,
)
_NAMES = Statement(
    sa.select(property_.c.id, property_.c.name).where(
        property_.c.company_id == _company_id, property_.c.id == sa.func.any(param("ids", _IDS))
    )
)


async def names(connection: Connection, company_id: int, _dimension: str, ids: Sequence[int]) -> Mapping[int, str]:
    """The names of the company's properties, by id."""
    return {row["id"]: row["name"] for row in await connection.rows(_NAMES, company_id=company_id, ids=list(ids))}
