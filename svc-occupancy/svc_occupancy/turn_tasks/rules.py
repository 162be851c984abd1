"""States of a make-ready task, and their transitions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

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


def after_act(status: TaskStatus, act: TaskAct) -> TaskStatus:
    """The status after a command. Raises Refusal 422 if another command has ended the task."""
    after = TASKS.get((status, act))
    if after is None:
        raise invalid_request(f"The task is {status} already; only an open one can change.", status=422)
    return after
