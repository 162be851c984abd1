"""What people do to several make-ready tasks at once."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.refusals import Refusal
from console.areas.board.plans import HANDS
from console.kit.bulk import AT_ONCE, Act, Record, Records
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.forms import Field, Form
from console.kit.texts import _, ngettext
from makeready.occupancy.v1 import turn_tasks_pb2 as pb

TASK = "occupancy.TurnTasksService/GetTask"
UPDATE_TASK = "occupancy.TurnTasksService/UpdateTask"
TASKS_PATH = "/turn-tasks"
UNASSIGN = (("assignee_id", _("Remove staff member")), ("vendor_id", _("Remove vendor")))


async def load(context: PageContext, ids: Sequence[int]) -> Sequence[Record]:
    """The tasks with these ids, in their order."""
    records: list[Record | None] = []
    for start in range(0, len(ids), AT_ONCE):
        records += await together(*(_find(context, task_id) for task_id in ids[start : start + AT_ONCE]))
    return [record for record in records if record is not None]


async def _find(context: PageContext, task_id: int) -> Record | None:
    try:
        placed: pb.PlacedTask = (await context.rpcs.call(TASK, pb.GetTaskRequest(task_id=task_id))).task
    except Refusal as refusal:
        if refusal.status != 404:
            raise
        return None
    task = placed.task
    who = _(" and ").join(name for name in (task.assignee_name, task.vendor_name) if name) or _("Unassigned")
    detail = " · ".join(filter(None, (placed.unit, placed.property, task.scheduled_date, who)))
    values = {"assignee_id": task.assignee_id or None, "vendor_id": task.vendor_id or None}
    return Record(task_id, task.task_type, detail, f"{TASKS_PATH}/{task_id}", values)


def _fault(form: Form) -> str:
    message = form.message
    if not message.clear and not message.assignee_id and not message.vendor_id:
        return _("Choose a staff member, a vendor or what to unassign.")
    return ""


RECORDS = Records(
    "Turn board", TASKS_PATH, "task", "task_id", load,
    (
        Act(
            "assign", "people", _("Assign"),
            lambda n: ngettext("Assign %(n)s task", "Assign %(n)s tasks", n) % {"n": n},
            lambda n: ngettext("%(n)s task: assignment changed.", "%(n)s tasks: assignment changed.", n) % {"n": n},
            UPDATE_TASK, pb.UpdateTaskRequest,
            (*HANDS, Field("clear", _("Unassign"), choices=UNASSIGN)),
            ("assignee_id", "vendor_id"), _fault,
        ),
    ),
)  # fmt: skip
