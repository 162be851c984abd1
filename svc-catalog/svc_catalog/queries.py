"""Every SQL statement of svc-catalog's reads, named for what it returns. The company comes first in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, DateTime, FromClause, Table, Text, and_, bindparam, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from chassis.lists.paging import Pages
from svc_catalog import rules
from svc_catalog import tables as t

_company_id = bindparam("company_id", type_=BigInteger)

# The columns of each served record, in the order in which `records.Links` takes them.
PROPERTY_COLUMNS: tuple[ColumnElement[Any], ...] = (
    t.property_.c.id,
    t.property_.c.name,
    t.property_.c.address,
    t.property_.c.city,
    t.property_.c.state,
    t.property_.c.postal_code,
    t.property_.c.building_type,
    t.property_.c.construction_type,
    t.property_.c.unit_count,
    t.property_.c.year_built,
    t.property_.c.latitude,
    t.property_.c.longitude,
    t.property_.c.created_at,
    t.property_.c.external_id,
    t.property_.c.source,
    t.property_.c.version,
)

UNIT_COLUMNS: tuple[ColumnElement[Any], ...] = (
    t.unit.c.id,
    t.unit.c.name,
    t.unit.c.unit_number,
    t.unit.c.unit_status,
    t.property_.c.id,
    t.property_.c.name,
    t.property_.c.external_id,
    t.floorplan.c.id,
    t.floorplan.c.name,
    t.floorplan.c.external_id,
    t.floorplan.c.bedrooms,
    t.floorplan.c.bathrooms,
    t.floorplan.c.square_feet,
    t.building.c.id,
    t.building.c.name,
    t.building.c.external_id,
    t.floor.c.id,
    t.floor.c.name,
    t.floor.c.external_id,
    t.unit.c.created_at,
    t.unit.c.external_id,
    t.unit.c.source,
    t.unit.c.projected_ready_on,
    t.unit.c.version,
)

ASSET_COLUMNS: tuple[ColumnElement[Any], ...] = (
    t.asset.c.id,
    t.asset.c.name,
    t.asset.c.category,
    t.asset.c.sub_category,
    t.asset.c.asset_tag,
    t.asset.c.make,
    t.asset.c.model,
    t.asset.c.serial_number,
    t.asset.c.status,
    t.property_.c.id,
    t.property_.c.name,
    t.property_.c.external_id,
    t.unit.c.id,
    t.unit.c.name,
    t.unit.c.external_id,
    t.location.c.id,
    t.location.c.name,
    t.location.c.external_id,
    t.location.c.location_type,
    t.asset.c.year,
    t.asset.c.installed_on,
    t.asset.c.warranty_expires_on,
    t.asset.c.expected_life_years,
    t.asset.c.created_at,
    t.asset.c.updated_at,
    t.asset.c.external_id,
    t.asset.c.source,
    t.asset.c.version,
)


def rows_of(columns: Sequence[ColumnElement[Any]], source: FromClause) -> Any:
    """All records of one kind, their columns in this order."""
    return select(*(column.label(f"c{index}") for index, column in enumerate(columns))).select_from(source)


def named(table: Table, column: str, other: Table) -> ColumnElement[bool]:
    """That a row's column names the other row: by the whole of its key."""
    shared = (name for name in other.primary_key.columns.keys() if name != "id")  # noqa: SIM118 - columns by name
    return and_(other.c.id == table.c[column], *(other.c[name] == table.c[name] for name in shared))


_properties = rows_of(PROPERTY_COLUMNS, t.property_)
_units = rows_of(
    UNIT_COLUMNS,
    t.unit.join(t.property_, named(t.unit, "property_id", t.property_))
    .outerjoin(t.floorplan, named(t.unit, "floorplan_id", t.floorplan))
    .outerjoin(t.building, named(t.unit, "building_id", t.building))
    .outerjoin(t.floor, named(t.unit, "floor_id", t.floor)),
)
_assets = rows_of(
    ASSET_COLUMNS,
    t.asset.join(t.property_, named(t.asset, "property_id", t.property_))
    .outerjoin(t.unit, named(t.asset, "unit_id", t.unit))
    .outerjoin(t.location, named(t.asset, "location_id", t.location)),
)


def is_given(table: Table, column: str) -> ColumnElement[bool]:
    """That a column has the value of the parameter of the same name."""
    return table.c[column] == bindparam(column, type_=table.c[column].type)


PROPERTIES_PAGE = Pages(_properties, t.property_.c.company_id, t.property_.c.id, {})
UNITS_PAGE = Pages(_units, t.unit.c.company_id, t.unit.c.id, {"property_id": is_given(t.unit, "property_id")})
ASSETS_PAGE = Pages(
    _assets,
    t.asset.c.company_id,
    t.asset.c.id,
    {name: is_given(t.asset, name) for name in ("property_id", "unit_id", "status")}
    | {"updated_since": t.asset.c.updated_at >= bindparam("updated_since", type_=DateTime(timezone=True))},
    statuses=rules.ASSET_STATUSES,
)


def by_id(rows: Any, table: Table) -> Statement:
    """The company's record with the id `entity_id`."""
    entity_id = bindparam("entity_id", type_=BigInteger)
    return Statement(rows.where(table.c.company_id == _company_id, table.c.id == entity_id))


_PROPERTY = by_id(_properties, t.property_)
_UNIT = by_id(_units, t.unit)
_ASSET = by_id(_assets, t.asset)


async def property_(database: Connection | Database, company_id: int, property_id: int) -> Record | None:
    """A row of PROPERTY_COLUMNS."""
    return await database.row(_PROPERTY, company_id=company_id, entity_id=property_id)


async def unit(database: Connection | Database, company_id: int, unit_id: int) -> Record | None:
    """A row of UNIT_COLUMNS."""
    return await database.row(_UNIT, company_id=company_id, entity_id=unit_id)


async def asset(database: Connection | Database, company_id: int, asset_id: int) -> Record | None:
    """A row of ASSET_COLUMNS."""
    return await database.row(_ASSET, company_id=company_id, entity_id=asset_id)


def _references(table: Table, *columns: str) -> Statement:
    ids = bindparam("ids", type_=ARRAY(BigInteger))
    external_ids = bindparam("external_ids", type_=ARRAY(Text))
    return Statement(
        select(*(table.c[name] for name in ("id", "version", "company_id", *columns, "name", "external_id"))).where(
            table.c.company_id == _company_id,
            or_(table.c.id == func.any(ids), table.c.external_id == func.any(external_ids)),
        )
    )


# The fields of the messages of the same names in makeready.events.v1.
PROPERTY_REFERENCES = _references(t.property_)
UNIT_REFERENCES = _references(t.unit, "property_id", "unit_number")
ASSET_REFERENCES = _references(t.asset, "property_id")


async def references(
    connection: Connection, statement: Statement, company_id: int, ids: Sequence[int], external_ids: Sequence[str]
) -> list[Record]:
    """Those of the company's records that have one of the ids or external ids."""
    if not ids and not external_ids:
        return []
    return await connection.rows(statement, company_id=company_id, ids=ids, external_ids=external_ids)
