"""`makeready vendor …`: a company's vendors, their holds and their insurance."""

from __future__ import annotations

from makeready.catalog.v1 import vendor_commands_pb2 as pb
from makeready.catalog.v1 import vendor_details_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.listing import Listing

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

_DETAILS = vendor_details_pb2.DESCRIPTOR.services_by_name["VendorDetailsService"].methods_by_name
LISTING = Listing(
    "vendor",
    _CATALOG,
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
    {
        "words": "only vendors whose names have words that begin so",
        "state": "only vendors with this compliance",
        "on_hold": "only vendors that are, or are not, on hold",
        "is_active": "only vendors with whom the company works, or works no more",
        "insured_from": "only vendors whose insurance ends on this day or later",
        "insured_until": "only vendors whose insurance ends on this day or before",
        "external_id": "only the vendor with this external_id",
        "order": "default: newest",
    },
)


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "vendor", "list, show, add and change vendors, hold and release them"),
        LISTING.list,
        LISTING.show(_DETAILS["GetVendorDetails"], "vendor"),
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
