"""What staff may do on the turn board: units' status, turns' schedule, make-ready tasks. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Literal, get_args

from chassis.refusals import invalid_request
from svc_occupancy.rules import VACANT, TransitionStatus, UnitStatus

# The column, and its title case as people see it.
TaskStatus = Literal["open", "completed", "cancelled"]
ShownTaskStatus = Literal["Open", "Completed", "Cancelled"]
TASK_STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
SHOWN_TASK_STATUSES: tuple[ShownTaskStatus, ...] = get_args(ShownTaskStatus)

TASK_TYPE_POINTS_MAX = 200

# The status after a resident has left, and those that the morning after finds where nobody has said more.
VACATED: UnitStatus = "Vacant Not Ready"
LIVED_IN: frozenset[UnitStatus] = frozenset({"Occupied", "Notice"})

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


def check_unit_status(status: UnitStatus, *, is_lived_in: bool, move_out_date: datetime.date | None) -> None:
    """Raises Refusal 422 where the unit's active turn, if it has one, says otherwise. is_lived_in: it has one."""
    if status in VACANT:
        return
    if not is_lived_in:
        message = f"{status} needs an active turn: nobody is known to live in the unit; record the move-in instead."
        raise invalid_request(message, "unit_status", 422)
    if status == "Notice" and move_out_date is None:
        message = "Notice needs a move_out_date on the unit's active turn; record the notice instead."
        raise invalid_request(message, "unit_status", 422)


def check_schedule(
    status: TransitionStatus, move_out_date: datetime.date | None, projected_ready_on: datetime.date | None
) -> None:
    """Raises Refusal 422 where a turn can't have this projected ready date."""
    if status != "active":
        raise invalid_request(f"The turn is {status}; an active one alone has work left to schedule.", status=422)
    if projected_ready_on is not None and move_out_date is None:
        raise invalid_request("projected_ready_on needs a move_out_date.", "projected_ready_on", 422)


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


def is_over(date: datetime.date | None, morning: datetime.date) -> bool:
    """Whether the morning after a date has come. morning: the last date whose morning has."""
    return date is not None and date < morning


def vacated(status: UnitStatus | None) -> UnitStatus | None:
    """What a unit is the morning after its resident's move_out_date, where no successor came; what somebody who has
    seen it has said of it stays."""
    return VACATED if status in LIVED_IN else status
