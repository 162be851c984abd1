"""The representations of a task: its message, and the data of turn.task.stale. Tasks have no public record."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from chassis.records.shapes import Link, Shape
from makeready.occupancy.v1 import turn_tasks_pb2
from svc_occupancy import schema
from svc_occupancy.messages import filled
from svc_occupancy.replicas.queries import People
from svc_occupancy.turn_tasks import rules, tables
from svc_occupancy.turn_tasks.tables import StoredTask


class StaleTurnTask(msgspec.Struct, frozen=True, gc=False):
    """The data of turn.task.stale (spec 6.1). property and unit are names."""

    task_type: str
    property: str
    unit: str
    url: str


class PlacedTask(NamedTuple):
    """The places of a task, with their names."""

    unit: str
    property_id: int
    property: str


STALE_TASK = Shape(
    StaleTurnTask,
    tables.turn_task,
    property=schema.property_.c.name,
    unit=schema.unit.c.name,
    # A task has no page of its own; it opens on its turn's page.
    url=Link("/turns/{turn}", turn=tables.turn_task.c.transition_id),
)


def placed_task(task: StoredTask, place: PlacedTask, people: People) -> turn_tasks_pb2.PlacedTask:
    return turn_tasks_pb2.PlacedTask(task=turn_task(task, people), **place._asdict())


def turn_task(task: StoredTask, people: People) -> turn_tasks_pb2.TurnTask:
    """people: at least the task's assignee and vendor."""
    assignee, vendor = people.staff.get(task.assignee_id or 0), people.vendors.get(task.vendor_id or 0)
    renamed = {
        "task_id": task.id,
        "turn_id": task.transition_id,
        "status": rules.public_task_status(task.status),
        "assignee_name": assignee and assignee.name,
        "vendor_name": vendor and vendor.name,
    }
    return filled(turn_tasks_pb2.TurnTask, msgspec.structs.asdict(task) | renamed)
