"""`makeready inspection …`: a company's inspections, row by row."""

from __future__ import annotations

from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

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
_FAILURE = {
    "note": "what is the matter",
    "category": "of the ticket (default: General)",
    "priority": "of the ticket (default: Medium)",
    "asset_id": "the asset that it is about",
    "photo_url": "where a photo of it is",
}


def add(commands: Commands) -> None:
    row = ("inspection_id", "row_id")
    add_commands(
        group(commands, "inspection", "schedule inspections and record their results"),
        RpcCommand("schedule", _CATALOG, _DESK["ScheduleInspection"], "plan an inspection", helps=_INSPECTION),
        RpcCommand(
            "update", _CATALOG, _DESK["UpdateInspection"], "change an inspection", ("inspection_id",), _INSPECTION
        ),
        RpcCommand("start", _CATALOG, _DESK["StartInspection"], "begin an inspection", ("inspection_id",)),
        RpcCommand(
            "rows", _CATALOG, _DESK["ListInspectionRows"], "list what an inspection looks at", ("inspection_id",)
        ),
        RpcCommand("pass-row", _CATALOG, _DESK["PassInspectionRow"], "find a row in order", row),
        RpcCommand(
            "fail-row", _CATALOG, _DESK["FailInspectionRow"], "find a row not in order: opens a ticket", row, _FAILURE
        ),
        RpcCommand(
            "complete",
            _CATALOG,
            _DESK["CompleteInspection"],
            "end an inspection: failed where a row is, else passed",
            ("inspection_id",),
            {"completed_date": "the day on which it was done, YYYY-MM-DD (default: today)"},
        ),
    )
