"""The message of a template, built from its rows. Templates have no public record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from makeready.occupancy.v1 import turn_templates_pb2 as pb
from svc_occupancy.messages import filled
from svc_occupancy.replicas.queries import People
from svc_occupancy.turn_templates.tables import StoredTemplate, StoredTemplateTask


def turn_template(
    template: StoredTemplate, property_name: str | None, tasks: Iterable[StoredTemplateTask], people: People
) -> pb.TurnTemplate:
    """people: at least those that the tasks have."""
    values = msgspec.structs.asdict(template)
    message = filled(pb.TurnTemplate, values | {"template_id": template.id, "property": property_name, "tasks": None})
    message.tasks.extend(_task(task, people) for task in tasks)
    return message


def _task(task: StoredTemplateTask, people: People) -> pb.TurnTemplateTask:
    assignee, vendor = people.staff.get(task.assignee_id or 0), people.vendors.get(task.vendor_id or 0)
    names = {"assignee_name": assignee and assignee.name, "vendor_name": vendor and vendor.name}
    return filled(pb.TurnTemplateTask, msgspec.structs.asdict(task) | names)


def audited(template: StoredTemplate, tasks: Sequence[StoredTemplateTask]) -> dict[str, object]:
    """The values of a template in the audit log."""
    names = ("task_type", "days_after_move_out", "assignee_id", "vendor_id")
    return {
        "name": template.name,
        "property_id": template.property_id,
        "floorplan": template.floorplan,
        "tasks": [{name: getattr(task, name) for name in names} for task in tasks],
    }
