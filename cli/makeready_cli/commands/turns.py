"""`makeready turn …`: the turn board."""

from __future__ import annotations

from makeready.occupancy.v1 import residency_commands_pb2, turn_board_pb2, turn_tasks_pb2
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_BOARD = turn_board_pb2.DESCRIPTOR.services_by_name["TurnBoardService"].methods_by_name
_TASKS = turn_tasks_pb2.DESCRIPTOR.services_by_name["TurnTasksService"].methods_by_name
_RESIDENCIES = residency_commands_pb2.DESCRIPTOR.services_by_name["ResidencyCommandsService"].methods_by_name
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
            "unit_statuses": "only with this status: Notice, Vacant Not Ready, Vacant Ready or Down; by ready date",
            "under_way": "only units on their way to ready, by ready date: all four of these statuses",
            "after": "by ready date: only units after the page that ended with this next_after",
            "with_tasks": "also each unit's tasks; at most 200 units then",
            "clashes": "only units in which a resident is still there when the next one moves in",
        },
        description="Lists units by id: status, current turn with its dates, who moves in next and when, and how many "
        "tasks are open in the unit.",
    ),
    RpcCommand(
        "unit-status",
        _SERVICE,
        _BOARD["SetUnitStatus"],
        "say what state a unit is in",
        ("unit_id",),
        {
            "unit_status": "Vacant Not Ready, Vacant Ready, Down, Occupied or Notice",
            "expected_unit_status": "only if the unit has this status now",
        },
        "Fires turn.status_changed where the status changes and the unit has a turn. Occupied needs a current turn, "
        "Notice one with a move_out_date.",
    ),
    RpcCommand(
        "schedule",
        _SERVICE,
        _BOARD["ScheduleTurn"],
        "say when a turn's unit will be ready",
        ("turn_id",),
        {
            "projected_ready_on": _DATE,
            "clear": "unknown again",
            "expected_ready_on": "only if this is the ready date now; empty: only if there is none",
        },
        "Fires turn.schedule_changed where the date moves. The turn must be active, and have a move_out_date.",
    ),
    RpcCommand(
        "notice",
        _SERVICE,
        _RESIDENCIES["AddNotice"],
        "record that a unit's resident leaves",
        ("unit_id",),
        {
            "move_out_date": _DATE,
            "ntv_reason_code": "why the resident leaves, as a code",
            "departure_destination_code": "where the resident goes, as a code",
            "notes": "other notes about the departure",
            "external_id": "an identifier of the notice",
            "expected_turn_id": "only if it is the notice of this turn's resident",
            "expected_move_out_date": "only if this is the move-out date now; empty: only if there is none",
        },
        "As a notice over the API, with its events: of the current resident, or of the next one once that one has "
        "left. The turn names no provider from then on.",
    ),
    RpcCommand(
        "move-in",
        _SERVICE,
        _RESIDENCIES["AddMoveIn"],
        "record a new resident's tenancy of a unit",
        ("unit_id",),
        {
            "move_in_date": _DATE,
            "lease_start_date": _DATE,
            "lease_end_date": f"{_DATE}; without it, the lease runs from month to month",
            "predecessor_transition_id": "the unit's last turn, if its resident has not left yet",
            "external_id": "an identifier of the residency",
            "parties": 'a party of the lease: {"first_name": …, "last_name": …, "role": "leaseholder"}',
        },
        "As a move-in over the API, with its events: a date after today is planned, and changes nothing about the unit "
        "until then. The turn names no provider. A party may also have email, phone and external_id; its role may be "
        "guarantor.",
        settings={"parties": {"flag": "--party"}},
    ),
    RpcCommand(
        "change-move-in",
        _SERVICE,
        _RESIDENCIES["ChangeMoveIn"],
        "move the date of a planned move-in",
        ("turn_id",),
        {
            "move_in_date": _DATE,
            "expected_move_in_date": "only if this is the move-in date now; empty: only if there is none",
        },
        "A turn that began by itself on its date is planned again if the new date is later than today: the turn before "
        "it is current again, and turn.status_changed fires.",
    ),
    RpcCommand(
        "cancel",
        _SERVICE,
        _BOARD["CancelTurn"],
        "cancel an active turn: the residency did not take place",
        ("turn_id",),
        description="The turn's open tasks are cancelled. A planned turn changes nothing else. Of a current one, a "
        "unit that was Occupied or on Notice becomes Vacant Not Ready, and turn.status_changed fires; planned turns "
        "stay.",
    ),
    RpcCommand(
        "cancel-notice",
        _SERVICE,
        _BOARD["CancelNotice"],
        "take back a notice: the resident stays",
        ("unit_id",),
        description="The dates of the unit's current turn go, the unit is Occupied, and the turn's open tasks are "
        "cancelled. Refused while another resident's move-in is planned.",
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
