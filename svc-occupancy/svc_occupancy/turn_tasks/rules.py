"""What a make-ready task may be, and what may become of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from chassis.refusals import invalid_request
from svc_occupancy.turns.rules import TransitionStatus

# The column, and its title case as people see it.
TaskStatus = Literal["open", "completed", "cancelled"]
ShownTaskStatus = Literal["Open", "Completed", "Cancelled"]
TaskSource = Literal["staff", "import"]
TASK_STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
SHOWN_TASK_STATUSES: tuple[ShownTaskStatus, ...] = get_args(ShownTaskStatus)
TASK_SOURCES: tuple[TaskSource, ...] = get_args(TaskSource)

TASK_TYPE_POINTS_MAX = 200

TaskAct = Literal["change", "complete", "cancel"]
TASK_ACTS: tuple[TaskAct, ...] = get_args(TaskAct)
# What a task becomes; its own status: nothing happens.
TASKS: Mapping[tuple[TaskStatus, TaskAct], TaskStatus] = {
    ("open", "change"): "open",
    ("open", "complete"): "completed",
    ("open", "cancel"): "cancelled",
    ("completed", "complete"): "completed",
    ("cancelled", "cancel"): "cancelled",
}

_SHOWN = dict(zip(TASK_STATUSES, SHOWN_TASK_STATUSES, strict=True))
_KEPT = dict(zip(SHOWN_TASK_STATUSES, TASK_STATUSES, strict=True))


def shown_task(status: TaskStatus) -> ShownTaskStatus:
    """A task's status as people see it."""
    return _SHOWN[status]


def kept_task(status: ShownTaskStatus) -> TaskStatus:
    """A task's status as the column has it."""
    return _KEPT[status]


def check_new_task(status: TransitionStatus) -> None:
    """Raises Refusal 422 where no work is added to the turn any more."""
    if status != "active":
        raise invalid_request(f"The turn is {status}; add the task to the unit's active one.", status=422)


def after_act(status: TaskStatus, act: TaskAct) -> TaskStatus:
    """What a task becomes. Raises Refusal 422 where it is over already, in another way."""
    after = TASKS.get((status, act))
    if after is None:
        raise invalid_request(f"The task is {status} already; only an open one can change.", status=422)
    return after
