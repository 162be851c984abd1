"""States of a make-ready task, and their transitions. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeVar, get_args

from chassis.refusals import invalid_request
from svc_occupancy.turns.rules import TransitionStatus

# The stored status, and its title case as published.
TaskStatus = Literal["open", "completed", "cancelled"]
ShownTaskStatus = Literal["Open", "Completed", "Cancelled"]
TaskSource = Literal["staff", "import"]
TASK_STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
SHOWN_TASK_STATUSES: tuple[ShownTaskStatus, ...] = get_args(ShownTaskStatus)
TASK_SOURCES: tuple[TaskSource, ...] = get_args(TaskSource)

TASK_TYPE_POINTS_MAX = 200

Task = TypeVar("Task", bound="OpenTask")

TaskAct = Literal["change", "complete", "cancel"]
TASK_ACTS: tuple[TaskAct, ...] = get_args(TaskAct)
# The status after each command. Missing pairs are refused. Repeating the command that ended a task changes nothing.
TASKS: Mapping[tuple[TaskStatus, TaskAct], TaskStatus] = {
    ("open", "change"): "open",
    ("open", "complete"): "completed",
    ("open", "cancel"): "cancelled",
    ("completed", "complete"): "completed",
    ("cancelled", "cancel"): "cancelled",
}

_SHOWN = dict(zip(TASK_STATUSES, SHOWN_TASK_STATUSES, strict=True))
_KEPT = dict(zip(SHOWN_TASK_STATUSES, TASK_STATUSES, strict=True))


def public_task_status(status: TaskStatus) -> ShownTaskStatus:
    """A task's status as published, in title case."""
    return _SHOWN[status]


def stored_task_status(status: ShownTaskStatus) -> TaskStatus:
    """A task's status as stored."""
    return _KEPT[status]


def check_new_task(status: TransitionStatus) -> None:
    """Raises Refusal 422 if the turn is over and takes no more tasks."""
    if status != "active":
        raise invalid_request(f"The turn is {status}; add the task to the unit's active one.", status=422)


def check_vendor(before: int | None, after: int | None, *, on_hold: bool) -> None:
    """Raises Refusal 422 if a vendor on hold would get new work; tasks that the vendor already has stay."""
    if after is not None and after != before and on_hold:
        raise invalid_request(
            "The vendor is on hold and gets no new work; release the vendor or choose another.", "vendor_id", 422
        )


def check_people_seen(field: str, seen: int, now: int | None, after: object) -> None:
    """Raises Refusal 422 if another person has changed who does the task meanwhile, unless to the same one.
    field: assignee_id or vendor_id; seen: 0 for nobody."""
    if seen != (now or 0) and now != after:
        noun = "assignee" if field == "assignee_id" else "vendor"
        raise invalid_request(
            f"Another person has changed the {noun} meanwhile; look at it again.", f"from_{field}", 422
        )


class OpenTask(Protocol):
    """The fields of an open task that its place depends on."""

    @property
    def id(self) -> int: ...
    @property
    def scheduled_date(self) -> datetime.date | None: ...
    @property
    def position(self) -> int | None: ...


def place(task: OpenTask) -> tuple[bool, int, datetime.date, int]:
    """The key of an open task's order: those that a person has put in order, then by date, those without one last."""
    return task.position is None, task.position or 0, task.scheduled_date or datetime.date.max, task.id


def ordered(tasks: Sequence[Task], first_ids: Sequence[int]) -> list[Task]:
    """Open tasks: those with these ids first, in this order, then the others as they are. Other ids do not count."""
    by_id = {task.id: task for task in tasks}
    first = [by_id.pop(task_id) for task_id in dict.fromkeys(first_ids) if task_id in by_id]
    return first + sorted(by_id.values(), key=place)


def after_act(status: TaskStatus, act: TaskAct) -> TaskStatus:
    """The status after a command. Raises Refusal 422 if another command has ended the task."""
    after = TASKS.get((status, act))
    if after is None:
        raise invalid_request(f"The task is {status} already; only an open one can change.", status=422)
    return after
