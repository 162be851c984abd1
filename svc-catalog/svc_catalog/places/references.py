"""The rows of properties, units and assets that other contexts replicate."""

from sqlalchemy import select

from svc_catalog.places.tables import asset, floorplan, property_, unit
from svc_catalog.references import ReferenceRows, columns_of
from svc_catalog.selects import refers_to

PROPERTY_REFERENCES = ReferenceRows("properties", property_, columns_of(property_))
_floorplan = select(floorplan.c.name).where(refers_to(unit, "floorplan_id", floorplan)).scalar_subquery()
UNIT_REFERENCES = ReferenceRows(
    "units", unit, columns_of(unit, "property_id", "unit_number").add_columns(_floorplan.label("floorplan"))
)
ASSET_REFERENCES = ReferenceRows("assets", asset, columns_of(asset, "property_id"))
