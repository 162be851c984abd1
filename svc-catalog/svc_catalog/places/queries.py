"""The SQL statements that read properties, units and assets, named for what they return. The first parameter is the
company."""

from __future__ import annotations

from sqlalchemy import DateTime

from chassis.changes.documents import Documents
from chassis.changes.feed import Changes
from chassis.db.statements import param
from chassis.lists.paging import Inside, Pages
from makeready.catalog.v1 import places_pb2 as pb
from svc_catalog.places import rules
from svc_catalog.places.records import ASSET, PROPERTY, UNIT
from svc_catalog.places.tables import asset, building, floor, floorplan, location, property_, unit
from svc_catalog.schema import PLACES
from svc_catalog.selects import by_id, equals_parameter, refers_to

_properties = PROPERTY.select(property_)
_units = UNIT.select(
    unit.join(property_, refers_to(unit, "property_id", property_))
    .outerjoin(floorplan, refers_to(unit, "floorplan_id", floorplan))
    .outerjoin(building, refers_to(unit, "building_id", building))
    .outerjoin(floor, refers_to(unit, "floor_id", floor))
)
_assets = ASSET.select(
    asset.join(property_, refers_to(asset, "property_id", property_))
    .outerjoin(unit, refers_to(asset, "unit_id", unit))
    .outerjoin(location, refers_to(asset, "location_id", location))
)

PROPERTY_DOCUMENTS = Documents(PROPERTY, _properties, property_)
UNIT_DOCUMENTS = Documents(UNIT, _units, unit)
ASSET_DOCUMENTS = Documents(ASSET, _assets, asset)

PROPERTIES_PAGE = Pages(PROPERTY_DOCUMENTS.rows, property_.c.id, {}, request=pb.ListPropertiesRequest)
UNITS_PAGE = Pages(
    UNIT_DOCUMENTS.rows,
    unit.c.id,
    {"property_id": equals_parameter(unit, "property_id")},
    places=("property_id",),
    request=pb.ListUnitsRequest,
)
ASSETS_PAGE = Pages(
    ASSET_DOCUMENTS.rows,
    asset.c.id,
    {name: equals_parameter(asset, name) for name in (*PLACES, "status")}
    | {"updated_since": asset.c.updated_at >= param("updated_since", DateTime(timezone=True))},
    statuses=rules.ASSET_STATUSES,
    places=PLACES,
    inside=[Inside("unit_id", "property_id", unit)],
    request=pb.ListAssetsRequest,
)

ONE_PROPERTY = by_id(_properties, property_)
ONE_UNIT = by_id(_units, unit)
ONE_ASSET = by_id(_assets, asset)

PROPERTY_CHANGES = Changes("property", PROPERTY_DOCUMENTS)
UNIT_CHANGES = Changes("unit", UNIT_DOCUMENTS)
ASSET_CHANGES = Changes("asset", ASSET_DOCUMENTS)
