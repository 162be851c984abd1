"""`makeready inspection …`: a company's inspections, row by row; `makeready inspection-template …`: the rows that
inspections of one kind have."""

from __future__ import annotations

from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready.catalog.v1 import inspection_details_pb2, inspection_templates_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.listing import Listing

_DESK = pb.DESCRIPTOR.services_by_name["InspectionCommandsService"].methods_by_name


_DETAILS = inspection_details_pb2.DESCRIPTOR.services_by_name["InspectionDetailsService"].methods_by_name
LISTING = Listing(
    "inspection",
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
)


_TEMPLATES = inspection_templates_pb2.DESCRIPTOR.services_by_name["InspectionTemplatesService"].methods_by_name
_ROW = {"rows": {"flag": "--row"}}


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "inspection", "list, show and schedule inspections, and record their results"),
        LISTING.list,
        LISTING.show(_DETAILS["GetInspectionDetails"], hint="`inspection rows` lists its checklist."),
        RpcCommand("schedule", _DESK["ScheduleInspection"], "schedule an inspection"),
        RpcCommand(
            "update",
            _DESK["UpdateInspection"],
            "change an inspection",
            hidden=("from_assignee_id", "from_scheduled_date"),
        ),
        RpcCommand("start", _DESK["StartInspection"], "begin an inspection"),
        RpcCommand("rows", _DESK["ListInspectionRows"], "list the checklist of an inspection"),
        RpcCommand("pass-row", _DESK["PassInspectionRow"], "find a row in order"),
        RpcCommand("fail-row", _DESK["FailInspectionRow"], "find a row not in order: opens a ticket"),
        RpcCommand("complete", _DESK["CompleteInspection"], "end an inspection: failed where a row is, else passed"),
        RpcCommand("cancel", _DESK["CancelInspection"], "call an inspection off, for good: the API serves it no more"),
        RpcCommand("add-row", _DESK["AddInspectionRow"], "add a row after the last one"),
        RpcCommand("remove-row", _DESK["RemoveInspectionRow"], "remove an item that is not inspected yet"),
        RpcCommand("set-row-photo", _DESK["SetInspectionRowPhoto"], "set or remove the photo of a row"),
    )
    add_commands(
        group(commands, "inspection-template", "keep templates: the rows of inspections of one kind"),
        RpcCommand("list", _TEMPLATES["ListInspectionTemplates"], "list the templates"),
        RpcCommand(
            "add",
            _TEMPLATES["AddInspectionTemplate"],
            "add a template",
            description="Adds a template. Each --row is one row, in their order. Inspections that are planned without "
            "rows have those of the template that they name, or of the default template of their type.",
            settings=_ROW,
        ),
        RpcCommand("update", _TEMPLATES["UpdateInspectionTemplate"], "change a template", settings=_ROW),
        RpcCommand("remove", _TEMPLATES["RemoveInspectionTemplate"], "remove a template; inspections keep its rows"),
    )
