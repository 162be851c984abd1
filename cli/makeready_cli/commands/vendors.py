"""`makeready vendor …`: a company's vendors, their holds and their insurance."""

from __future__ import annotations

from makeready.catalog.v1 import vendor_commands_pb2 as pb
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_DESK = pb.DESCRIPTOR.services_by_name["VendorCommandsService"].methods_by_name
_CATALOG = "svc-catalog"

_VENDOR = {
    "name": "what the company calls it",
    "legal_name": "of the business that it is (default: its name); vendors of one legal name share the business",
    "website": "the business's",
    "avg_rating": "the average of its ratings, from 0 to 100",
    "rating_count": "how many ratings it has",
    "is_active": "whether the company works with it",
    "property_visibility": "all_properties (default) or selected_properties",
    "external_id": "the company's own identifier, by which an import finds the vendor",
}


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "vendor", "add and change vendors, hold and release them"),
        RpcCommand("add", _CATALOG, _DESK["AddVendor"], "add a vendor", helps=_VENDOR),
        RpcCommand("update", _CATALOG, _DESK["UpdateVendor"], "change a vendor", ("vendor_id",), _VENDOR),
        RpcCommand(
            "hold",
            _CATALOG,
            _DESK["HoldVendor"],
            "place a vendor on hold: no new work goes to it",
            ("vendor_id",),
            {"reason": "why, in your own words"},
        ),
        RpcCommand("release", _CATALOG, _DESK["ReleaseVendor"], "end a vendor's hold", ("vendor_id",)),
        RpcCommand(
            "insurance",
            _CATALOG,
            _DESK["RecordInsurance"],
            "record until when a vendor is insured",
            ("vendor_id",),
            {"expires_on": "the last day insured, YYYY-MM-DD (default: none is on record)"},
            "Records until when a vendor is insured. After that, an hourly check decides whether it is compliant, and "
            "places it on hold when the insurance lapses; insurance that is valid ends such a hold.",
        ),
        RpcCommand("holds", _CATALOG, _DESK["ListVendorHolds"], "list the vendors that are on hold"),
    )
