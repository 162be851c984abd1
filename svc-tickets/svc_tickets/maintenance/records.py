"""How svc-tickets renders a preventive-maintenance task: for the back office, and in pm.stale."""

from __future__ import annotations

import datetime

import msgspec

from chassis.records.shapes import Computed, Link, Renderer, Shape
from makeready.tickets.v1 import pm_tasks_pb2 as pb
from svc_tickets import schema
from svc_tickets.maintenance import rules
from svc_tickets.maintenance import tables as t

# The task that follows a completed task that repeats.
successor = t.pm_task.alias("next")
_label = Computed(rules.label, schema.unit.c.name, t.pm_task.c.area)


class PmTask(msgspec.Struct, frozen=True, gc=False):
    """A task, with the fields of the message of that name."""

    pm_task_id: int
    task_name: str
    status: str
    due_date: str
    property: str
    unit: str
    property_id: int
    unit_id: int | None
    area: str | None
    asset_id: int | None
    repeat_days: int | None
    repeat_months: int | None
    previous_pm_task_id: int | None
    next_pm_task_id: int | None
    completed_at: datetime.datetime | None
    cancelled_at: datetime.datetime | None
    stale_at: datetime.datetime | None
    created_at: datetime.datetime
    updated_at: datetime.datetime
    external_id: str | None
    source: str
    url: str
    assignee_id: int | None
    assignee_name: str | None


PM_TASK = Shape(
    PmTask,
    t.pm_task,
    pm_task_id=t.pm_task.c.id,
    due_date=Computed(datetime.date.isoformat, t.pm_task.c.due_date),
    property=schema.property_.c.name,
    unit=_label,
    previous_pm_task_id=t.pm_task.c.previous_id,
    next_pm_task_id=successor.c.id,
    url=Link("/pm-tasks/{pm_task_id}"),
    assignee_name=schema.staff.c.name,
    version=t.pm_task.c.version,
)
PmTaskRenderer = Renderer[PmTask]


def message(task: PmTask) -> pb.PmTask:
    return pb.PmTask(**msgspec.structs.asdict(task))


class StalePmTask(msgspec.Struct, frozen=True, gc=False):
    """The data of pm.stale (spec 6.1): exactly these keys, plain texts."""

    task_name: str
    property: str
    unit: str
    due_date: datetime.date
    url: str


STALE_PM_TASK = Shape(
    StalePmTask,
    t.pm_task,
    property=schema.property_.c.name,
    unit=_label,
    url=Link("/pm-tasks/{id}", id=t.pm_task.c.id),
)
StalePmTaskRenderer = Renderer[StalePmTask]
