"""The forms of inspections."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import EnumDescriptor

from console.kit.forms import Edit, Field, Form
from console.kit.texts import _, ngettext
from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready.catalog.v1 import inspection_details_pb2 as details_pb
from makeready.catalog.v1 import inspection_templates_pb2 as templates_pb
from makeready.common.v1 import maintenance_pb2, options_pb2

NOT_LOOKED_AT = "none"
_TITLE = Field(
    "title", _("Title"), _("For example “Annual fire alarm test”."), required=True, more={"maxlength": "200"}
)
_DAY = Field("scheduled_date", _("Date"), kind="date", required=True)
_UNIT = Field("unit_id", _("Unit"), _("Leave blank for the property or a common area."), kind="picker")
_TYPE = Field("inspection_type", "Type", _("For example Move-out or Fire alarm."), more={"maxlength": "200"})
_WHO = Field("assignee_id", _("Assign to"), kind="picker")
_COMPLIANCE = Field("is_compliance_inspection", _("Compliance inspection"), kind="checkbox")
_LAW = Field("compliance_type", _("Requirement"), _("For example NFPA 72."), more={"maxlength": "200"})
_EXTERNAL = Field("external_id", _("External ID"), _("Its ID in another system."), more={"maxlength": "200"})


def _labels(enum: EnumDescriptor) -> Sequence[tuple[str, str]]:
    labels = [enum_value.GetOptions().Extensions[options_pb2.label] for enum_value in enum.values if enum_value.number]
    return [(label, label) for label in labels]


def new_form(templates: Sequence[templates_pb.InspectionTemplate] = ()) -> Form:
    lines = _("One item per line. Each item passes or fails; a failed item opens a ticket.")
    rows = Field("row", _("Checklist"), lines, kind="lines", more={"rows": "8"})
    template = Field(
        "template_id",
        _("Template"),
        _("Used when the checklist below is blank. Without one, the default template of the type is used."),
        "select",
        tuple((str(template.template_id), template_words(template)) for template in templates),
    )
    place = Field("property_id", "Property", kind="picker", required=True)
    fields = (
        _TITLE,
        place,
        _UNIT,
        _DAY,
        _WHO,
        *((template,) if templates else ()),
        rows,
        _TYPE,
        _COMPLIANCE,
        _LAW,
        _EXTERNAL,
    )
    return Form(pb.ScheduleInspectionRequest(), fields)


def template_words(template: templates_pb.InspectionTemplate) -> str:
    """A template as a choice."""
    rows = ngettext("%(num)s item", "%(num)s items", len(template.rows)) % {"num": len(template.rows)}
    return f"{template.name} ({rows})"


def template_form(template: templates_pb.InspectionTemplate | None = None) -> Form:
    """To add a template, or to change one."""
    request: Any = templates_pb.AddInspectionTemplateRequest()
    if template is not None:
        request = templates_pb.UpdateInspectionTemplateRequest(
            template_id=template.template_id, name=template.name, is_default=template.is_default, rows=template.rows
        )
        if template.HasField("inspection_type"):
            request.inspection_type = template.inspection_type
    return Form(
        request,
        (
            Field("name", _("Name"), _("For example “Move-out inspection”."), required=True, more={"maxlength": "200"}),
            Field("inspection_type", _("Type"), _("The inspection type that it is for."), more={"maxlength": "200"}),
            Field("is_default", _("Default for this type"), kind="checkbox"),
            Field("rows", _("Checklist"), _("One item a line, in the order of the walk."), kind="lines", required=True,
                  more={"rows": "12"}),
        ),
    )  # fmt: skip


def edit_form(inspection: details_pb.InspectionDetails) -> Edit:
    request = pb.UpdateInspectionRequest(
        inspection_id=inspection.inspection_id, is_compliance_inspection=inspection.is_compliance_inspection
    )
    for name in (
        "title",
        "scheduled_date",
        "unit_id",
        "inspection_type",
        "assignee_id",
        "compliance_type",
        "external_id",
    ):
        if inspection.HasField(name):
            setattr(request, name, getattr(inspection, name))
    return Edit(request, (_TITLE, _DAY, _UNIT, _WHO, _TYPE, _COMPLIANCE, _LAW, _EXTERNAL))


def complete_form(inspection_id: int, today: datetime.date) -> Form:
    request = pb.CompleteInspectionRequest(inspection_id=inspection_id, completed_date=str(today))
    return Form(request, (Field("completed_date", _("Completed on"), kind="date", more={"max": str(today)}),))


def cancel_form(inspection_id: int) -> Form:
    hint = _("Optional. Shown on this page.")
    reason = Field("reason", _("Reason"), hint, kind="area", more={"maxlength": "500", "rows": "3"})
    return Form(pb.CancelInspectionRequest(inspection_id=inspection_id), (reason,))


def row_form(inspection_id: int) -> Form:
    label = Field("label", _("New item"), required=True, more={"maxlength": "150"})
    return Form(pb.AddInspectionRowRequest(inspection_id=inspection_id), (label,))


def fail_form(inspection_id: int, row: pb.InspectionRow) -> Form:
    """With what is known of an earlier failure of the row; its photo stays."""
    request = pb.FailInspectionRowRequest(inspection_id=inspection_id, row_id=row.row_id)
    for name in ("note", "category", "priority", "asset_id", "photo_url"):
        if row.HasField(name):
            setattr(request, name, getattr(row, name))
    if not row.result:
        request.category, request.priority = "General", "Medium"
    fields = (
        Field("note", _("Issue"), _("Becomes the ticket's description."), kind="area", more={"rows": "4"}),
        Field(
            "category",
            _("Category"),
            choices=_labels(maintenance_pb2.TicketCategory.DESCRIPTOR),
            kind="select",
            required=True,
        ),
        Field(
            "priority",
            "Priority",
            choices=_labels(maintenance_pb2.TicketPriority.DESCRIPTOR),
            kind="select",
            required=True,
        ),
        Field("asset_id", "Asset", _("If it is a piece of equipment."), kind="picker"),
    )
    return Form(request, fields)
