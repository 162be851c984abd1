"""`makeready vendor …`: a company's vendors, their holds and their insurance."""

from __future__ import annotations

from makeready.catalog.v1 import vendor_commands_pb2 as pb
from makeready.catalog.v1 import vendor_details_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.listing import Listing

_DESK = pb.DESCRIPTOR.services_by_name["VendorCommandsService"].methods_by_name


_DETAILS = vendor_details_pb2.DESCRIPTOR.services_by_name["VendorDetailsService"].methods_by_name
LISTING = Listing(
    "vendor",
    _DETAILS["SearchVendors"],
    "vendors",
    "vendor_id",
    {
        "ID": "vendor_id",
        "NAME": "name",
        "COMPLIANCE": "compliance_state",
        "INSURED UNTIL": "insurance_expires_on",
        "ON HOLD": "on_hold",
        "HELD FOR": "hold_reason",
        "ACTIVE": "is_active",
        "EXTERNAL_ID": "external_id",
    },
    "external_id",
)


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "vendor", "list, show, add and change vendors, hold and release them"),
        LISTING.list,
        LISTING.show(_DETAILS["GetVendorDetails"], "vendor"),
        RpcCommand("add", _DESK["AddVendor"], "add a vendor"),
        RpcCommand("update", _DESK["UpdateVendor"], "change a vendor"),
        RpcCommand("hold", _DESK["HoldVendor"], "place a vendor on hold: no new work goes to it"),
        RpcCommand("release", _DESK["ReleaseVendor"], "end a vendor's hold"),
        RpcCommand(
            "insurance",
            _DESK["RecordInsurance"],
            "record until when a vendor is insured",
            description="Records until when a vendor is insured. After that, an hourly check decides whether it is "
            "compliant, and places it on hold when the insurance lapses; insurance that is valid ends such a hold.",
        ),
        RpcCommand("holds", _DESK["ListVendorHolds"], "list the vendors that are on hold"),
    )
