"""The RPCs of TurnTasksService: make-ready tasks, added, changed and brought to their end, once each."""

from __future__ import annotations

import datetime
from typing import Any

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import Batch, Importer
from chassis.records import bodies
from chassis.writes import commands
from chassis.writes.commands import Command, CommandRunner
from makeready.occupancy.v1 import turn_tasks_pb2 as pb
from svc_occupancy.replicas.fetch import Owners
from svc_occupancy.turn_tasks import inputs, queries, records, rules
from svc_occupancy.turn_tasks.imports import TaskImport
from svc_occupancy.turn_tasks.inputs import TaskRow
from svc_occupancy.turns import queries as turn_queries
from svc_occupancy.turns.commands import held_turn, not_of_company


async def cancel_open_tasks(command: Command, turn_id: int) -> None:
    for row in await queries.open_tasks_for_update(command.connection, command.company_id, turn_id):
        at = task_instant(command, row)
        after = {**row, "status": "cancelled", "cancelled_at": at, "updated_at": at}
        await queries.save_task(command.connection, after)
        await record_task(command, "cancelled", row, after)


def task_instant(command: Command, task: Any) -> datetime.datetime:
    """The instant of a change of a task that is locked: after its last one, and after it was told of."""
    return command.next_instant(max(task["updated_at"], task["stale_at"] or task["updated_at"]))


async def record_task(command: Command, what: str, before: Any, after: Any) -> None:
    """The audit entry of what became of a task; before: empty where there was none."""
    names = ("transition_id", "task_type", "status", "scheduled_date")
    values = [{name: side[name] for name in names if side} for side in (before, after)]
    await command.audit(f"turn_task.{what}", "turn_task", after["id"], *values)


_FIELDS = ("task_type", "scheduled_date")
_DONE = {"complete": "completed_at", "cancel": "cancelled_at"}


class TurnTasksService:
    """Keeps the tasks of turns."""

    def __init__(self, database: Database, made: CommandRunner, importer: Importer, owners: Owners) -> None:
        self.database = database
        self.commands = made
        self.importer = importer
        self.owners = owners

    async def AddTask(self, request: pb.AddTaskRequest, call: identity.Call) -> pb.AddTaskResponse:
        wanted = bodies.check(inputs.Task, commands.fields(request, *_FIELDS))

        async def work(command: Command) -> pb.AddTaskResponse:
            _, turn = await held_turn(command, request.turn_id)
            rules.check_new_task(turn["status"])
            task = await queries.add_task(
                command.connection,
                {
                    "company_id": command.company_id,
                    "transition_id": turn["id"],
                    "unit_id": turn["unit_id"],
                    "task_type": wanted.task_type,
                    "status": "open",
                    "scheduled_date": wanted.scheduled_date,
                    "created_at": command.now,
                    "updated_at": command.now,
                    "source": "staff",
                },
            )
            await record_task(command, "added", {}, task)
            return pb.AddTaskResponse(task=records.turn_task(task))

        return await self.commands.run(call, request, pb.AddTaskResponse, work)

    async def UpdateTask(self, request: pb.UpdateTaskRequest, call: identity.Call) -> pb.UpdateTaskResponse:
        given = commands.fields(request, *_FIELDS)

        async def work(command: Command) -> pb.UpdateTaskResponse:
            return pb.UpdateTaskResponse(task=await self._act(command, request.task_id, "change", given))

        return await self.commands.run(call, request, pb.UpdateTaskResponse, work)

    async def CompleteTask(self, request: pb.CompleteTaskRequest, call: identity.Call) -> pb.CompleteTaskResponse:
        async def work(command: Command) -> pb.CompleteTaskResponse:
            return pb.CompleteTaskResponse(task=await self._act(command, request.task_id, "complete", {}))

        return await self.commands.run(call, request, pb.CompleteTaskResponse, work)

    async def CancelTask(self, request: pb.CancelTaskRequest, call: identity.Call) -> pb.CancelTaskResponse:
        async def work(command: Command) -> pb.CancelTaskResponse:
            return pb.CancelTaskResponse(task=await self._act(command, request.task_id, "cancel", {}))

        return await self.commands.run(call, request, pb.CancelTaskResponse, work)

    async def ListTasks(self, request: pb.ListTasksRequest, call: identity.Call) -> pb.ListTasksResponse:
        company_id = identity.company_id(call)
        if await turn_queries.stored_turn(self.database, company_id, request.turn_id) is None:
            raise not_of_company("turn")
        rows = await queries.tasks(self.database, company_id, request.turn_id)
        return pb.ListTasksResponse(tasks=map(records.turn_task, rows))

    async def ImportTurnTasks(
        self, request: pb.ImportTurnTasksRequest, call: identity.Call
    ) -> pb.ImportTurnTasksResponse:
        work = TaskImport(events=request.events)

        async def prepare(batch: Batch[TaskRow]) -> None:
            await self.owners.fetch_company(batch.company_id)

        results = await self.importer.run(work.save, TaskRow, request, call, prepare)
        return pb.ImportTurnTasksResponse(results=results)

    async def _act(self, command: Command, task_id: int, what: rules.TaskAct, given: dict[str, Any]) -> pb.TurnTask:
        """The task after an act. Its own lock is enough: whether its turn is over makes no difference."""
        task = await queries.task_for_update(command.connection, command.company_id, task_id)
        if task is None:
            raise not_of_company("task")
        status = rules.after_act(task["status"], what)
        # As a new task would be checked, so that what must be there can't be cleared.
        scheduled = task["scheduled_date"]
        now = {"task_type": task["task_type"], "scheduled_date": None if scheduled is None else scheduled.isoformat()}
        wanted = bodies.check(inputs.Task, now | given)
        after = {**task, "task_type": wanted.task_type, "scheduled_date": wanted.scheduled_date, "status": status}
        if after != task:
            at = task_instant(command, task)
            after |= {"updated_at": at} | ({_DONE[what]: at} if what in _DONE else {})
            await queries.save_task(command.connection, after)
            words = {"change": "changed", "complete": "completed", "cancel": "cancelled"}
            await record_task(command, words[what], task, after)
        return records.turn_task(after)
