"""The forms of a unit's card: where the unit goes, when it will be ready, and what is to be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from console.areas.board import cards
from console.kit.forms import Field, Form
from console.kit.texts import _
from makeready.occupancy.v1 import turn_board_pb2, turn_tasks_pb2, turn_templates_pb2

PLAN = "plan-"
"""What the ids of a card's inputs begin with."""
TASK_MAX = {"maxlength": "200"}
DATE = "date"
HANDS = (
    Field("assignee_id", _("Assignee"), kind="picker"),
    Field("vendor_id", _("Vendor"), kind="picker"),
)
"""Who does a task."""


@dataclass
class Plan:
    """The forms of one card, which are sent together."""

    move: Form
    schedule: Form
    task: Form
    done: list[str] = field(default_factory=list)
    """What was done, each as a part of a sentence."""
    fault: str = ""
    """Why a task could not be completed."""

    @property
    def forms(self) -> Sequence[Form]:
        return (self.move, self.schedule, self.task)

    @property
    def has_errors(self) -> bool:
        return bool(self.fault) or any(form.has_errors for form in self.forms)


def fitting(
    templates: Sequence[turn_templates_pb2.TurnTemplate], property_id: int, floorplan: str
) -> list[turn_templates_pb2.TurnTemplate]:
    """The templates of tasks for a unit of this property and floorplan, those that are for fewer units first."""
    fit = [
        template
        for template in templates
        if (not template.HasField("property_id") or template.property_id == property_id)
        and (not template.HasField("floorplan") or template.floorplan.casefold() == floorplan.casefold())
    ]
    return sorted(fit, key=lambda template: (not template.floorplan, not template.property_id, template.name))


def plan_of(unit: turn_board_pb2.BoardUnit) -> Plan:
    choices = [(status, status) for status in cards.moves(unit)]
    return Plan(
        Form(
            turn_board_pb2.SetUnitStatusRequest(unit_status=unit.unit_status),
            [Field("unit_status", _("Status"), kind="select", choices=choices, required=bool(unit.unit_status))],
        ),
        Form(
            turn_board_pb2.ScheduleTurnRequest(projected_ready_on=unit.projected_ready_on or None),
            [Field("projected_ready_on", _("Ready date"), kind=DATE)],
        ),
        Form(
            turn_tasks_pb2.AddTaskRequest(),
            [
                Field("task_type", _("New task"), more=TASK_MAX | {"placeholder": _("Paint, flooring, final walk …")}),
                Field("scheduled_date", "On", kind=DATE),
                *HANDS,
            ],
        ),
    )
