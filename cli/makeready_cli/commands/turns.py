"""`makeready turn …`: the turn board."""

from __future__ import annotations

from makeready.occupancy.v1 import turn_board_pb2, turn_tasks_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_BOARD = turn_board_pb2.DESCRIPTOR.services_by_name["TurnBoardService"].methods_by_name
_TASKS = turn_tasks_pb2.DESCRIPTOR.services_by_name["TurnTasksService"].methods_by_name
_SERVICE = "svc-occupancy"
_DATE = "YYYY-MM-DD"

VERBS = (
    RpcCommand(
        "board",
        _SERVICE,
        _BOARD["ListBoard"],
        "show where units stand",
        helps={
            "property_id": "only units of this property",
            "after_id": "only units after the one with this id",
            "limit": "at most so many units, up to 5000 (default: 1000)",
        },
        description="Lists units by id: status, active turn with its dates, and how many tasks are open in the unit.",
    ),
    RpcCommand(
        "unit-status",
        _SERVICE,
        _BOARD["SetUnitStatus"],
        "say what state a unit is in",
        ("unit_id",),
        {"unit_status": "Vacant Not Ready, Vacant Ready, Down, Occupied or Notice"},
        "Fires turn.status_changed where the status changes and the unit has a turn. Occupied needs an active turn, "
        "Notice one with a move_out_date.",
    ),
    RpcCommand(
        "schedule",
        _SERVICE,
        _BOARD["ScheduleTurn"],
        "say when a turn's unit will be ready",
        ("turn_id",),
        {"projected_ready_on": _DATE, "clear": "unknown again"},
        "Fires turn.schedule_changed where the date moves. The turn must be active, and have a move_out_date.",
    ),
    RpcCommand(
        "cancel-notice",
        _SERVICE,
        _BOARD["CancelNotice"],
        "take back a notice: the resident stays",
        ("unit_id",),
        description="The dates of the unit's active turn go, the unit is Occupied, and the turn's open tasks are "
        "cancelled.",
    ),
    RpcCommand(
        "add-task",
        _SERVICE,
        _TASKS["AddTask"],
        "add a make-ready task to an active turn",
        ("turn_id",),
        {"task_type": "what kind of work it is", "scheduled_date": _DATE},
    ),
    RpcCommand(
        "update-task",
        _SERVICE,
        _TASKS["UpdateTask"],
        "change an open task",
        ("task_id",),
        {"task_type": "what kind of work it is", "scheduled_date": _DATE, "clear": "no date any more"},
    ),
    RpcCommand("complete-task", _SERVICE, _TASKS["CompleteTask"], "complete an open task", ("task_id",)),
    RpcCommand("cancel-task", _SERVICE, _TASKS["CancelTask"], "cancel an open task", ("task_id",)),
    RpcCommand("tasks", _SERVICE, _TASKS["ListTasks"], "list a turn's tasks", ("turn_id",)),
)


def add(commands: Commands) -> None:
    add_commands(group(commands, "turn", "make vacated units ready"), *VERBS)
