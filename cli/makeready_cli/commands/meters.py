"""`makeready meter …` and `makeready reading …`."""

from __future__ import annotations

from makeready.catalog.v1 import meter_commands_pb2 as pb
from makeready.catalog.v1 import meter_search_pb2, meters_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.listing import Listing

_DESK = pb.DESCRIPTOR.services_by_name["MeterCommandsService"].methods_by_name


_SEARCH = meter_search_pb2.DESCRIPTOR.services_by_name["MeterSearchService"].methods_by_name
METERS = Listing(
    "meter",
    _SEARCH["SearchMeters"],
    "meters",
    "meter_id",
    {
        "ID": "meter_id",
        "NAME": "name",
        "TYPE": "utility_type",
        "SCOPE": "scope",
        "PROPERTY": "property.name",
        "UNIT": "unit.name",
        "LAST READ TO": "last_reading.period_end",
        "ACTIVE": "is_active",
        "EXTERNAL_ID": "external_id",
    },
    "words",
)


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "meter", "list, show, add and change utility meters"),
        METERS.list,
        METERS.show(meters_pb2.DESCRIPTOR.services_by_name["MetersService"].methods_by_name["GetMeter"]),
        RpcCommand("add", _DESK["AddMeter"], "add a meter to a property or a unit"),
        RpcCommand("update", _DESK["UpdateMeter"], "change a meter"),
    )
    add_commands(
        group(commands, "reading", "record and correct readings of meters"),
        RpcCommand("record", _DESK["RecordReading"], "record a meter's reading"),
        RpcCommand("correct", _DESK["CorrectReading"], "correct a reading"),
    )
