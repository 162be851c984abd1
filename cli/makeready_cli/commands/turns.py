"""`makeready turn …`: the turn board; `makeready turn-template …`: the tasks that turns of one kind have."""

from __future__ import annotations

from makeready.occupancy.v1 import residency_commands_pb2, turn_board_pb2, turn_tasks_pb2, turn_templates_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_BOARD = turn_board_pb2.DESCRIPTOR.services_by_name["TurnBoardService"].methods_by_name
_TASKS = turn_tasks_pb2.DESCRIPTOR.services_by_name["TurnTasksService"].methods_by_name
_TEMPLATES = turn_templates_pb2.DESCRIPTOR.services_by_name["TurnTemplatesService"].methods_by_name
_RESIDENCIES = residency_commands_pb2.DESCRIPTOR.services_by_name["ResidencyCommandsService"].methods_by_name

VERBS = (
    RpcCommand(
        "board",
        _BOARD["ListBoard"],
        "show the turn board",
        description="Lists units by id: status, current turn with its dates, who moves in next and when, and how many "
        "tasks are open in the unit.",
    ),
    RpcCommand(
        "unit-status",
        _BOARD["SetUnitStatus"],
        "say what state a unit is in",
        description="Fires turn.status_changed where the status changes and the unit has a turn. Occupied needs a "
        "current turn, Notice one with a move_out_date.",
    ),
    RpcCommand(
        "schedule",
        _BOARD["ScheduleTurn"],
        "say when a turn's unit will be ready",
        description="Fires turn.schedule_changed where the date moves. The turn must be active, and have a "
        "move_out_date.",
    ),
    RpcCommand(
        "notice",
        _RESIDENCIES["AddNotice"],
        "record that a unit's resident leaves",
        description="As a notice over the API, with its events: of the current resident, or of the next one once that "
        "one has left. The turn names no provider from then on.",
    ),
    RpcCommand(
        "move-in",
        _RESIDENCIES["AddMoveIn"],
        "record a new resident's tenancy of a unit",
        description="As a move-in over the API, with its events: a date after today is planned, and changes nothing "
        "about the unit until then. The turn names no provider. A party may also have email, phone and external_id; "
        "its role may be guarantor.",
        settings={"parties": {"flag": "--party"}},
    ),
    RpcCommand(
        "change-move-in",
        _RESIDENCIES["ChangeMoveIn"],
        "reschedule a planned move-in",
        description="A turn that began by itself on its date is planned again if the new date is later than today: "
        "the turn before it is current again, and turn.status_changed fires.",
    ),
    RpcCommand(
        "cancel",
        _BOARD["CancelTurn"],
        "cancel an active turn: the lease did not take place",
        description="The turn's open tasks are cancelled. A planned turn changes nothing else. Of a current one, a "
        "unit that was Occupied or on Notice becomes Vacant Not Ready, and turn.status_changed fires; planned turns "
        "stay.",
    ),
    RpcCommand(
        "cancel-notice",
        _BOARD["CancelNotice"],
        "cancel a notice: the resident stays",
        description="The dates of the unit's current turn go, the unit is Occupied, and the turn's open tasks are "
        "cancelled. Refused while another resident's move-in is planned.",
    ),
    RpcCommand("add-task", _TASKS["AddTask"], "add a make-ready task to an active turn"),
    RpcCommand(
        "update-task", _TASKS["UpdateTask"], "change an open task", hidden=("from_assignee_id", "from_vendor_id")
    ),
    RpcCommand("complete-task", _TASKS["CompleteTask"], "complete an open task"),
    RpcCommand("cancel-task", _TASKS["CancelTask"], "cancel an open task"),
    RpcCommand(
        "order-tasks",
        _TASKS["OrderTasks"],
        "put a turn's open tasks in order",
        settings={"task_ids": {"flag": "--task-id"}},
    ),
    RpcCommand(
        "apply-template",
        _TEMPLATES["ApplyTurnTemplate"],
        "add the tasks of a template to an active turn",
        description="Adds the template's tasks that the turn does not have yet. Each is dated so many days after the "
        "move-out date, today if that is past, and without a date if there is no move-out date. A vendor on hold "
        "gets none of them.",
    ),
    RpcCommand("tasks", _TASKS["ListTasks"], "list a turn's tasks"),
)
_TASK = {"tasks": {"flag": "--task"}}
TEMPLATE_VERBS = (
    RpcCommand("list", _TEMPLATES["ListTurnTemplates"], "list the templates"),
    RpcCommand(
        "add",
        _TEMPLATES["AddTurnTemplate"],
        "add a template",
        description="Adds a template. The console offers it for units of the property and of the floorplan that it "
        "names, or for all. Each --task is one task, in their order.",
        settings=_TASK,
    ),
    RpcCommand("update", _TEMPLATES["UpdateTurnTemplate"], "change a template", settings=_TASK),
    RpcCommand("remove", _TEMPLATES["RemoveTurnTemplate"], "remove a template; turns keep its tasks"),
)


def add(commands: Commands) -> None:
    add_commands(group(commands, "turn", "make vacated units ready"), *VERBS)
    add_commands(group(commands, "turn-template", "keep templates of make-ready tasks"), *TEMPLATE_VERBS)
