"""`makeready pm …`: preventive maintenance."""

from __future__ import annotations

from makeready.tickets.v1 import pm_tasks_pb2 as pb
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_DESK = pb.DESCRIPTOR.services_by_name["PmTasksService"].methods_by_name
_TICKETS = "svc-tickets"

_TASK = {
    "property_id": "the property that it is for",
    "task_name": "what is to be done, for example Replace furnace filters",
    "due_date": "the day by which it is due, YYYY-MM-DD",
    "unit_id": "the unit that it is in; without a unit and an area it is for the whole property",
    "area": "the part of the property that it is in, in words, for example Boiler room",
    "asset_id": "the asset that it is about",
    "repeat_days": "it repeats so many days after each due date",
    "repeat_months": "it repeats so many months after each due date, on the same day of the month",
    "external_id": "the company's own identifier, by which an import finds the record",
}


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "pm", "schedule preventive maintenance and record the work"),
        RpcCommand(
            "add",
            _TICKETS,
            _DESK["AddPmTask"],
            "add a task",
            helps=_TASK,
            description="Adds an open task. The morning after its due date pm.stale fires for it, once, unless it is "
            "completed or cancelled by then.",
        ),
        RpcCommand("update", _TICKETS, _DESK["UpdatePmTask"], "change an open task", ("pm_task_id",), _TASK),
        RpcCommand(
            "complete",
            _TICKETS,
            _DESK["CompletePmTask"],
            "say that a task is done",
            ("pm_task_id",),
            description="Completes an open task. One that repeats gets a successor, which is due one period "
            "after the task's own due date, whenever it was done.",
        ),
        RpcCommand(
            "cancel",
            _TICKETS,
            _DESK["CancelPmTask"],
            "say that a task won't be done",
            ("pm_task_id",),
            description="Cancels an open task. A repeating task then has no successor.",
        ),
        RpcCommand(
            "list",
            _TICKETS,
            _DESK["ListPmTasks"],
            "list tasks",
            helps={
                "open": "only those that are open, or only those that are not",
                "property_id": "only those of this property",
                "after_id": "only tasks after this one",
                "limit": "1 to 1000 (default: 1000)",
            },
        ),
    )
