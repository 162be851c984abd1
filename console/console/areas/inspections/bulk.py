"""What people do to several inspections at once."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.refusals import Refusal
from console.kit.bulk import AT_ONCE, Act, Record, Records
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.forms import Field, Form
from console.kit.texts import _, ngettext
from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready.catalog.v1 import inspection_details_pb2 as details_pb

GET = "catalog.InspectionDetailsService/GetInspectionDetails"
UPDATE = "catalog.InspectionCommandsService/UpdateInspection"
TICK = "inspection"


async def load(context: PageContext, ids: Sequence[int]) -> Sequence[Record]:
    """The inspections with these ids, in their order."""
    records: list[Record | None] = []
    for start in range(0, len(ids), AT_ONCE):
        records += await together(*(_find(context, record_id) for record_id in ids[start : start + AT_ONCE]))
    return [record for record in records if record is not None]


async def _find(context: PageContext, inspection_id: int) -> Record | None:
    try:
        response = await context.rpcs.call(GET, details_pb.GetInspectionDetailsRequest(inspection_id=inspection_id))
    except Refusal as refusal:
        if refusal.status != 404:
            raise
        return None
    inspection: details_pb.InspectionDetails = response.inspection
    title = inspection.title or inspection.inspection_type or _("Inspection %(id)s") % {"id": inspection_id}
    who = inspection.assignee_name or _("Unassigned")
    place = inspection.unit_name or inspection.property_name
    detail = " · ".join(filter(None, (place, inspection.scheduled_date, who)))
    values = {
        "assignee_id": inspection.assignee_id or None,
        "scheduled_date": inspection.scheduled_date or None,
    }
    return Record(inspection_id, title, detail, f"/inspections/{inspection_id}", values)


def _assignment_fault(form: Form) -> str:
    if not form.message.clear and not form.message.assignee_id:
        return _("Choose a staff member, or what to unassign.")
    return ""


RECORDS = Records(
    "Inspections", "/inspections", TICK, "inspection_id", load,
    (
        Act(
            "assign", "people", _("Assign"),
            lambda n: ngettext("Assign %(n)s inspection", "Assign %(n)s inspections", n) % {"n": n},
            lambda n: ngettext("%(n)s inspection: assignment changed.", "%(n)s inspections: assignment changed.", n)
            % {"n": n},
            UPDATE, pb.UpdateInspectionRequest,
            (
                Field("assignee_id", _("Staff member"), kind="picker"),
                Field("clear", _("Unassign"), choices=(("assignee_id", _("Remove staff member")),)),
            ),
            ("assignee_id",), _assignment_fault,
        ),
        Act(
            "reschedule", "cal", _("Reschedule"),
            lambda n: ngettext("Reschedule %(n)s inspection", "Reschedule %(n)s inspections", n) % {"n": n},
            lambda n: ngettext("%(n)s inspection rescheduled.", "%(n)s inspections rescheduled.", n) % {"n": n},
            UPDATE, pb.UpdateInspectionRequest,
            (Field("scheduled_date", _("Date"), kind="date", required=True),), ("scheduled_date",),
        ),
    ),
)  # fmt: skip
