"""The rows of properties, units and assets that other contexts replicate."""

from svc_catalog.places.tables import asset, property_, unit
from svc_catalog.references import ReferenceRows, columns_of

PROPERTY_REFERENCES = ReferenceRows("properties", property_, columns_of(property_))
UNIT_REFERENCES = ReferenceRows("units", unit, columns_of(unit, "property_id", "unit_number"))
ASSET_REFERENCES = ReferenceRows("assets", asset, columns_of(asset, "property_id"))
