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


PROPERTIES = Listing(
    "property",
    _SEARCH["SearchProperties"],
    "properties",
    "property_id",
    {"ID": "property_id", "NAME": "name", "ADDRESS": "address", "CITY": "city", "EXTERNAL_ID": "external_id"},
    "words",
)
UNITS = Listing(
    "unit",
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
)
ASSETS = Listing(
    "asset",
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
)


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "property", "list, show, add and change properties"),
        PROPERTIES.list,
        PROPERTIES.show(_RECORDS["PropertiesService"].methods_by_name["GetProperty"]),
        RpcCommand("add", _DESK["AddProperty"], "add a property"),
        RpcCommand("update", _DESK["UpdateProperty"], "change a property"),
    )
    add_commands(
        group(commands, "unit", "list, show, add and change units"),
        UNITS.list,
        UNITS.show(_RECORDS["UnitsService"].methods_by_name["GetUnit"]),
        RpcCommand("add", _DESK["AddUnit"], "add a unit to a property"),
        RpcCommand("update", _DESK["UpdateUnit"], "change a unit"),
    )
    add_commands(
        group(commands, "asset", "list, show, add and change assets"),
        ASSETS.list,
        ASSETS.show(_RECORDS["AssetsService"].methods_by_name["GetAsset"]),
        RpcCommand("add", _DESK["AddAsset"], "add an asset to a property"),
        RpcCommand("update", _DESK["UpdateAsset"], "change an asset"),
    )
