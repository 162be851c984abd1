"""The SQL statements that read properties, units and assets, named for what they return. The company comes first."""

from __future__ import annotations

from typing import Any

from asyncpg import Record
from sqlalchemy import DateTime, bindparam
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.lists.paging import Pages
from svc_catalog.places import rules
from svc_catalog.places import tables as t
from svc_catalog.references import ReferenceRows, columns_of
from svc_catalog.selects import by_id, is_given, named, rows_of

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


PROPERTY_REFERENCES = ReferenceRows(t.property_, columns_of(t.property_))
UNIT_REFERENCES = ReferenceRows(t.unit, columns_of(t.unit, "property_id", "unit_number"))
ASSET_REFERENCES = ReferenceRows(t.asset, columns_of(t.asset, "property_id"))
