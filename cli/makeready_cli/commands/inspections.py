"""`makeready inspection …`: a company's inspections, row by row."""

from __future__ import annotations

from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready.catalog.v1 import inspection_details_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.listing import Listing

_DESK = pb.DESCRIPTOR.services_by_name["InspectionCommandsService"].methods_by_name
_CATALOG = "svc-catalog"

_INSPECTION = {
    "property_id": "the property that is inspected",
    "title": "what is inspected, in one line",
    "scheduled_date": "the day for which it is planned, YYYY-MM-DD",
    "unit_id": "the unit that is inspected, where it is one",
    "inspection_type": "of its template, for example Fire Alarm",
    "assignee_id": "the member of staff who does it",
    "is_compliance_inspection": "whether a law or a contract asks for it",
    "compliance_type": "what asks for it, in your own words",
    "external_id": "the company's own identifier, by which an import finds the inspection",
    "row": "what is looked at; once for each row, in their order",
}
_SEEN = {"seen_result": "passed, failed or none: refused if another person has recorded another result since"}
_FAILURE = {
    "note": "what is the matter",
    "category": "of the ticket (default: General)",
    "priority": "of the ticket (default: Medium)",
    "asset_id": "the asset that it is about",
    "photo_url": "where a photo of it is",
}

_DETAILS = inspection_details_pb2.DESCRIPTOR.services_by_name["InspectionDetailsService"].methods_by_name
LISTING = Listing(
    "inspection",
    _CATALOG,
    _DETAILS["SearchInspections"],
    "inspections",
    "inspection_id",
    {
        "ID": "inspection_id",
        "DATE": "scheduled_date",
        "STATUS": "status",
        "RESULT": "result",
        "LATE": "late",
        "TITLE": "title",
        "WHERE": "unit_name|property_name",
        "ASSIGNEE": "assignee_name",
        "EXTERNAL_ID": "external_id",
    },
    "external_id",
    {
        "property_id": "only inspections of this property",
        "unit_id": "only inspections of this unit",
        "assignee_id": "only inspections of this member of staff",
        "from_date": "only inspections planned for this day or later",
        "to_date": "only inspections planned for this day or before",
        "status": "only inspections with this status",
        "late": "only inspections that are open after their date",
        "result": "only inspections with this result",
        "external_id": "only the inspection with this external_id",
        "newest_first": "in the reverse order",
        "cancelled": "only inspections that were cancelled",
    },
)


def add(commands: Commands) -> None:
    row = ("inspection_id", "row_id")
    add_commands(
        group(commands, "inspection", "list, show and schedule inspections, and record their results"),
        LISTING.list,
        LISTING.show(_DETAILS["GetInspectionDetails"], hint="`inspection rows` lists what it looks at."),
        RpcCommand("schedule", _CATALOG, _DESK["ScheduleInspection"], "plan an inspection", helps=_INSPECTION),
        RpcCommand(
            "update", _CATALOG, _DESK["UpdateInspection"], "change an inspection", ("inspection_id",), _INSPECTION
        ),
        RpcCommand("start", _CATALOG, _DESK["StartInspection"], "begin an inspection", ("inspection_id",)),
        RpcCommand(
            "rows", _CATALOG, _DESK["ListInspectionRows"], "list what an inspection looks at", ("inspection_id",)
        ),
        RpcCommand("pass-row", _CATALOG, _DESK["PassInspectionRow"], "find a row in order", row, _SEEN),
        RpcCommand(
            "fail-row",
            _CATALOG,
            _DESK["FailInspectionRow"],
            "find a row not in order: opens a ticket",
            row,
            _FAILURE | _SEEN,
        ),
        RpcCommand(
            "complete",
            _CATALOG,
            _DESK["CompleteInspection"],
            "end an inspection: failed where a row is, else passed",
            ("inspection_id",),
            {"completed_date": "the day on which it was done, YYYY-MM-DD (default: today)"},
        ),
        RpcCommand(
            "cancel",
            _CATALOG,
            _DESK["CancelInspection"],
            "call an inspection off, for good: the API serves it no more",
            ("inspection_id",),
            {"reason": "why, for those who open it later"},
        ),
        RpcCommand(
            "add-row",
            _CATALOG,
            _DESK["AddInspectionRow"],
            "add a row after the last one",
            ("inspection_id",),
            {"label": "what is looked at"},
        ),
        RpcCommand(
            "remove-row", _CATALOG, _DESK["RemoveInspectionRow"], "remove a row that nobody has looked at yet", row
        ),
    )
