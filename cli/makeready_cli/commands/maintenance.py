"""`makeready pm …`: preventive maintenance."""

from __future__ import annotations

from makeready.tickets.v1 import pm_tasks_pb2 as pb
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_DESK = pb.DESCRIPTOR.services_by_name["PmTasksService"].methods_by_name


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "pm", "schedule preventive maintenance and record the work"),
        RpcCommand(
            "add",
            _DESK["AddPmTask"],
            "add a task",
            description="Adds an open task. The morning after its due date pm.stale fires for it, once, unless it is "
            "completed or cancelled by then.",
        ),
        RpcCommand("update", _DESK["UpdatePmTask"], "change an open task"),
        RpcCommand(
            "complete",
            _DESK["CompletePmTask"],
            "say that a task is done",
            description="Completes an open task. One that repeats gets a successor, which is due one period "
            "after the task's own due date, whenever it was done.",
        ),
        RpcCommand(
            "cancel",
            _DESK["CancelPmTask"],
            "say that a task won't be done",
            description="Cancels an open task. A repeating task then has no successor.",
        ),
        RpcCommand("list", _DESK["ListPmTasks"], "list tasks"),
    )
