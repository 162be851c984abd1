"""`makeready property …`, `unit …` and `asset …`: a company's places and the assets in them."""

from __future__ import annotations

from makeready.catalog.v1 import place_commands_pb2 as pb
from makeready.catalog.v1 import place_search_pb2, places_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.listing import Listing

_SEARCH = place_search_pb2.DESCRIPTOR.services_by_name["PlaceSearchService"].methods_by_name
_RECORDS = places_pb2.DESCRIPTOR.services_by_name
_DESK = pb.DESCRIPTOR.services_by_name["PlaceCommandsService"].methods_by_name
_CATALOG = "svc-catalog"

_ANY = {"external_id": "the company's own identifier, by which an import finds the record"}
_PROPERTY = _ANY | {
    "name": "what people call the property",
    "address": "its street address",
    "building_type": "what kind of building it is, for example Garden",
    "construction_type": "how it is built, for example Wood frame",
    "unit_count": "how many units it has by its records",
    "latitude": "degrees north of the equator",
    "longitude": "degrees east of Greenwich",
}
_UNIT = _ANY | {
    "property_id": "the property that it belongs to",
    "name": "the name that people see, for example Maple Court 204",
    "unit_number": "the number on the door",
    "building": "the name of its building; made where the property has none of that name",
    "floor": "the name of its floor",
    "floorplan": "the name of the plan that it is built to",
    "bedrooms": "of the floorplan; 0 is a studio",
    "bathrooms": "of the floorplan; a half has no bath",
    "square_feet": "of the floorplan",
}
_ASSET = _ANY | {
    "property_id": "the property that it belongs to",
    "name": "what people call it",
    "category": "what kind of equipment it is",
    "make": "who made it",
    "model": "the maker's name for the model",
    "unit_id": "the unit that it stands in",
    "location": "the name of another place that it stands in, with --location-type",
    "location_type": "what kind of place that is",
    "year": "the year in which it was made",
    "installed_on": "YYYY-MM-DD",
    "warranty_expires_on": "YYYY-MM-DD",
    "expected_life_years": "from its installation",
}

_WORDS = "only those whose names, numbers or external_id have words that begin so"
_OF_PROPERTY = {"property_id": "only those of this property", "words": _WORDS}
PROPERTIES = Listing(
    "property",
    _CATALOG,
    _SEARCH["SearchProperties"],
    "properties",
    "property_id",
    {"ID": "property_id", "NAME": "name", "ADDRESS": "address", "CITY": "city", "EXTERNAL_ID": "external_id"},
    "words",
    {"words": _WORDS},
)
UNITS = Listing(
    "unit",
    _CATALOG,
    _SEARCH["SearchUnits"],
    "units",
    "unit_id",
    {
        "ID": "unit_id",
        "NAME": "name",
        "STATUS": "unit_status",
        "PROPERTY": "property.name",
        "FLOORPLAN": "floorplan.name",
        "READY": "projected_ready_on",
        "EXTERNAL_ID": "external_id",
    },
    "words",
    {**_OF_PROPERTY, "unit_status": "Occupied, Notice, Vacant Not Ready, Vacant Ready or Down"},
)
ASSETS = Listing(
    "asset",
    _CATALOG,
    _SEARCH["SearchAssets"],
    "assets",
    "asset_id",
    {
        "ID": "asset_id",
        "NAME": "name",
        "CATEGORY": "category",
        "STATUS": "status",
        "PROPERTY": "property.name",
        "WHERE": "unit.name|location.name",
        "WARRANTY": "warranty_expires_on",
        "EXTERNAL_ID": "external_id",
    },
    "words",
    {
        **_OF_PROPERTY,
        "unit_id": "only those of this unit",
        "status": "Active, Needs Service, Out of Service or Retired",
        "category": "only those of this category",
        "warranty_from": "only those whose warranty ends on this day or later",
        "warranty_by": "only those whose warranty ends on this day or before",
    },
)


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "property", "list, show, add and change properties"),
        PROPERTIES.list,
        PROPERTIES.show(_RECORDS["PropertiesService"].methods_by_name["GetProperty"]),
        RpcCommand("add", _CATALOG, _DESK["AddProperty"], "add a property", helps=_PROPERTY),
        RpcCommand("update", _CATALOG, _DESK["UpdateProperty"], "change a property", ("property_id",), _PROPERTY),
    )
    add_commands(
        group(commands, "unit", "list, show, add and change units"),
        UNITS.list,
        UNITS.show(_RECORDS["UnitsService"].methods_by_name["GetUnit"]),
        RpcCommand("add", _CATALOG, _DESK["AddUnit"], "add a unit to a property", helps=_UNIT),
        RpcCommand("update", _CATALOG, _DESK["UpdateUnit"], "change a unit", ("unit_id",), _UNIT),
    )
    add_commands(
        group(commands, "asset", "list, show, add and change assets"),
        ASSETS.list,
        ASSETS.show(_RECORDS["AssetsService"].methods_by_name["GetAsset"]),
        RpcCommand("add", _CATALOG, _DESK["AddAsset"], "add an asset to a property", helps=_ASSET),
        RpcCommand("update", _CATALOG, _DESK["UpdateAsset"], "change an asset", ("asset_id",), _ASSET),
    )
