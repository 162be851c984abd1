"""`makeready meter …` and `makeready reading …`."""

from __future__ import annotations

from makeready.catalog.v1 import meter_commands_pb2 as pb
from makeready.catalog.v1 import meter_search_pb2, meters_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.listing import Listing

_DESK = pb.DESCRIPTOR.services_by_name["MeterCommandsService"].methods_by_name
_CATALOG = "svc-catalog"

_ANY = {"external_id": "the company's own identifier, by which an import finds the record"}
_METER = _ANY | {
    "property_id": "the property that it belongs to",
    "name": "what people call the meter",
    "utility_type": "what it measures",
    "scope": "what it measures it for (default: unit with --unit-id, else master)",
    "unit_id": "the unit that it measures",
    "meter_number": "the number on the meter",
    "unit_of_measure": "what it counts in, for example kWh",
    "is_active": "whether it is in use",
}
_READING = _ANY | {
    "period_start": "from when it counts: YYYY-MM-DD (midnight UTC) or a date-time with a UTC offset",
    "period_end": "up to when it counts, likewise",
    "consumption": "how much was used; negative where more was given back",
    "unit_of_measure": "what that counts in (default: the meter's)",
    "cost": "in the company's currency",
    "is_estimated": "whether it was estimated and not read",
}

_SEARCH = meter_search_pb2.DESCRIPTOR.services_by_name["MeterSearchService"].methods_by_name
METERS = Listing(
    "meter",
    _CATALOG,
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
    {
        "property_id": "only those of this property",
        "unit_id": "only those of this unit",
        "utility_type": "electric, gas, water, sewer, trash or other",
        "scope": "master, common_area or unit",
        "is_active": "only those in use, or those that are not",
        "words": "only those whose name, number or external_id has words that begin so",
    },
)


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "meter", "list, show, add and change utility meters"),
        METERS.list,
        METERS.show(meters_pb2.DESCRIPTOR.services_by_name["MetersService"].methods_by_name["GetMeter"]),
        RpcCommand("add", _CATALOG, _DESK["AddMeter"], "add a meter to a property or a unit", helps=_METER),
        RpcCommand("update", _CATALOG, _DESK["UpdateMeter"], "change a meter", ("meter_id",), _METER),
    )
    add_commands(
        group(commands, "reading", "record and correct readings of meters"),
        RpcCommand("record", _CATALOG, _DESK["RecordReading"], "record a meter's reading", ("meter_id",), _READING),
        RpcCommand(
            "correct", _CATALOG, _DESK["CorrectReading"], "correct a reading", ("meter_id", "reading_id"), _READING
        ),
    )
