"""The RPCs of TurnTasksService: add, change, complete, cancel, order, list and import make-ready tasks.

A task has no public record, so no `RecordEditor`: its message and its audit entries are built from its row.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from chassis.auth import identity
from chassis.db.database import Connection, Database
from chassis.imports.importer import Importer
from chassis.lists.paging import limit_of
from chassis.writes.commands import Command, CommandRunner, fields
from chassis.writes.editing import EditableFields
from makeready.occupancy.v1 import turn_tasks_pb2 as pb
from svc_occupancy import dates
from svc_occupancy.replicas import queries as replica_queries
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.turn_tasks import queries, records, rules
from svc_occupancy.turn_tasks.imports import TaskImport
from svc_occupancy.turn_tasks.inputs import TurnTaskRow
from svc_occupancy.turn_tasks.tables import StoredTask
from svc_occupancy.turns import queries as turn_queries
from svc_occupancy.turns.commands import hold_unit_of
from svc_occupancy.turns.rules import not_of_company
from svc_occupancy.turns.tables import StoredTurn

PEOPLE = ("assignee_id", "vendor_id")
_FIELDS = EditableFields(TurnTaskRow, "task_type", "scheduled_date", ids=PEOPLE)
_ENDED_AT = {"complete": "completed_at", "cancel": "cancelled_at"}
_AUDITED_AS: dict[rules.TaskAct, str] = {"change": "changed", "complete": "completed", "cancel": "cancelled"}
_AUDITED = ("transition_id", "task_type", "status", "scheduled_date", *PEOPLE)


class TurnTasksService:
    """Adds, changes, lists and imports the tasks of turns."""

    def __init__(
        self, database: Database, commands: CommandRunner, importer: Importer, fetcher: ReplicaFetcher
    ) -> None:
        self.database = database
        self.commands = commands
        self.importer = importer
        self.fetcher = fetcher

    async def AddTask(self, request: pb.AddTaskRequest, call: identity.Call) -> pb.AddTaskResponse:
        values = _FIELDS.of(request)
        await self._find_people(call, values)

        async def work(command: Command) -> pb.AddTaskResponse:
            turn = await turn_with_work(command, request.turn_id)
            await _check_vendor(command, None, values)
            (task,) = await add_tasks(command, turn, [values])
            return pb.AddTaskResponse(task=task)

        return await self.commands.run(call, request, pb.AddTaskResponse, work)

    async def UpdateTask(self, request: pb.UpdateTaskRequest, call: identity.Call) -> pb.UpdateTaskResponse:
        values = _FIELDS.of(request)
        await self._find_people(call, values)

        async def work(command: Command) -> pb.UpdateTaskResponse:
            return pb.UpdateTaskResponse(
                task=await _act(command, request.task_id, "change", values, _seen_people(request))
            )

        return await self.commands.run(call, request, pb.UpdateTaskResponse, work)

    async def CompleteTask(self, request: pb.CompleteTaskRequest, call: identity.Call) -> pb.CompleteTaskResponse:
        async def work(command: Command) -> pb.CompleteTaskResponse:
            return pb.CompleteTaskResponse(task=await _act(command, request.task_id, "complete", {}))

        return await self.commands.run(call, request, pb.CompleteTaskResponse, work)

    async def CancelTask(self, request: pb.CancelTaskRequest, call: identity.Call) -> pb.CancelTaskResponse:
        async def work(command: Command) -> pb.CancelTaskResponse:
            return pb.CancelTaskResponse(task=await _act(command, request.task_id, "cancel", {}))

        return await self.commands.run(call, request, pb.CancelTaskResponse, work)

    async def OrderTasks(self, request: pb.OrderTasksRequest, call: identity.Call) -> pb.OrderTasksResponse:
        async def work(command: Command) -> pb.OrderTasksResponse:
            await hold_unit_of(command, request.turn_id)
            turn = (command.company_id, request.turn_id)
            before = await queries.open_tasks_for_update(command.connection, *turn)
            task_ids = [task.id for task in rules.ordered(before, request.task_ids)]
            by_hand = bool(request.task_ids)
            positions = {task_id: place if by_hand else None for place, task_id in enumerate(task_ids, start=1)}
            if any(positions[task.id] != task.position for task in before):
                await queries.save_order(command.connection, command.company_id, positions)
                as_before = [task.id for task in rules.ordered(before, ())]
                sides = ({"task_ids": as_before}, {"task_ids": task_ids})
                await command.audit("turn.tasks_ordered", "turn", request.turn_id, *sides)
            tasks = await queries.tasks(command.connection, *turn)
            return pb.OrderTasksResponse(tasks=await _messages(command.connection, command.company_id, tasks))

        return await self.commands.run(call, request, pb.OrderTasksResponse, work)

    async def ListTasks(self, request: pb.ListTasksRequest, call: identity.Call) -> pb.ListTasksResponse:
        company_id = identity.company_id(call)
        if await turn_queries.stored_turn(self.database, company_id, request.turn_id) is None:
            raise not_of_company("turn")
        tasks = await queries.tasks(self.database, company_id, request.turn_id)
        return pb.ListTasksResponse(tasks=await _messages(self.database, company_id, tasks))

    async def GetTask(self, request: pb.GetTaskRequest, call: identity.Call) -> pb.GetTaskResponse:
        company_id = identity.company_id(call)
        placed_task = await queries.task(self.database, company_id, request.task_id)
        if placed_task is None:
            raise not_of_company("task")
        people = await people_of(self.database, company_id, placed_task[:1])
        return pb.GetTaskResponse(task=records.placed_task(*placed_task, people))

    async def ListOpenTasks(self, request: pb.ListOpenTasksRequest, call: identity.Call) -> pb.ListOpenTasksResponse:
        company_id, rows = identity.company_id(call), limit_of(request, dates.ROWS, dates.ROWS_MAX)
        after = dates.position_after(request)
        until = dates.date_of(request, "due_by") or datetime.date.max
        if request.late:
            today = await replica_queries.today(self.database, company_id, self.commands.clocks)
            until = min(until, today - datetime.timedelta(days=1))
        filters: dict[str, int] = fields(request, *PEOPLE, "property_id")
        tasks = await queries.open_tasks(
            self.database, company_id, after, until, rows + 1, filters, unassigned=request.unassigned
        )
        people = await people_of(self.database, company_id, [task for task, _ in tasks])
        response = pb.ListOpenTasksResponse(tasks=[records.placed_task(*task, people) for task in tasks[:rows]])
        if len(tasks) > rows:
            last = tasks[rows - 1][0]
            response.next_after = str(dates.position_of(last.scheduled_date, last.id))
        return response

    async def ImportTurnTasks(
        self, request: pb.ImportTurnTasksRequest, call: identity.Call
    ) -> pb.ImportTurnTasksResponse:
        work = TaskImport(self.fetcher, events=request.events)
        results = await self.importer.run(work.save, TurnTaskRow, request, call, work.prepare)
        return pb.ImportTurnTasksResponse(results=results)

    async def _find_people(self, call: identity.Call, values: Mapping[str, object]) -> None:
        """Raises Refusal 404, with the field, for an assignee or vendor that the company does not have."""
        named: dict[str, list[int]] = {name: [value] for name in PEOPLE if isinstance(value := values.get(name), int)}
        if named:
            await self.fetcher.find_people(identity.company_id(call), named)


async def people_of(
    connection: Connection | Database, company_id: int, tasks: Iterable[StoredTask]
) -> replica_queries.People:
    """The assignees and vendors of tasks."""
    pairs = [(task.assignee_id, task.vendor_id) for task in tasks]
    return await replica_queries.people(
        connection, company_id, [assignee for assignee, _ in pairs], [vendor for _, vendor in pairs]
    )


async def _messages(
    connection: Connection | Database, company_id: int, tasks: Sequence[StoredTask]
) -> list[pb.TurnTask]:
    people = await people_of(connection, company_id, tasks)
    return [records.turn_task(task, people) for task in tasks]


async def turn_with_work(command: Command, turn_id: int) -> StoredTurn:
    """Locks the unit of a turn that takes new tasks. Raises Refusal 404, or 422 if the turn is over."""
    await hold_unit_of(command, turn_id)
    turn = await turn_queries.stored_turn(command.connection, command.company_id, turn_id)
    assert turn is not None
    rules.check_new_task(turn.status)
    return turn


async def add_tasks(command: Command, turn: StoredTurn, several: Sequence[Mapping[str, object]]) -> list[pb.TurnTask]:
    """Adds and audits tasks of a turn whose unit is locked. several: of each the columns that people set."""
    of_turn = {
        "transition_id": turn.id,
        "unit_id": turn.unit_id,
        "property_id": turn.property_id,
        "status": "open",
    }
    added = []
    for values in several:
        added.append(await queries.add_task(command.connection, command.company_id, {**values, **of_turn}, command.now))
        await _audit(command, "added", None, added[-1])
    return await _messages(command.connection, command.company_id, added)


async def cancel_open_tasks(command: Command, turn_id: int) -> None:
    """Cancels a turn's open tasks, when its notice is cancelled."""
    for task in await queries.open_tasks_for_update(command.connection, command.company_id, turn_id):
        await _save(command, "cancel", task, msgspec.structs.replace(task, status="cancelled"))


async def _act(
    command: Command, task_id: int, act: rules.TaskAct, values: dict[str, object], seen: Mapping[str, int] | None = None
) -> pb.TurnTask:
    """Applies a command to a task. Locking the task is enough: it does not matter whether its turn is over.

    seen: the ids of the assignee and the vendor that the person saw, without what the request does not say."""
    task = await queries.task_for_update(command.connection, command.company_id, task_id)
    if task is None:
        raise not_of_company("task")
    after = msgspec.structs.replace(task, **values, status=rules.after_act(task.status, act))
    for name, person_id in (seen or {}).items():
        if name in values:
            rules.check_people_seen(name, person_id, getattr(task, name), values[name])
    await _check_vendor(command, task.vendor_id, values)
    if after != task:
        after = await _save(command, act, task, after)
    (message,) = await _messages(command.connection, command.company_id, [after])
    return message


def _seen_people(request: pb.UpdateTaskRequest) -> dict[str, int]:
    return {name: getattr(request, f"from_{name}") for name in PEOPLE if request.HasField(f"from_{name}")}  # type: ignore[arg-type]


async def _check_vendor(command: Command, before: int | None, values: Mapping[str, object]) -> None:
    """Raises Refusal 422 if a vendor on hold would get the task. before: the vendor that has it."""
    vendor_id = values.get("vendor_id")
    if isinstance(vendor_id, int):
        vendors = (await replica_queries.people(command.connection, command.company_id, (), [vendor_id])).vendors
        rules.check_vendor(before, vendor_id, on_hold=vendor_id in vendors and vendors[vendor_id].on_hold)


async def _save(command: Command, act: rules.TaskAct, before: StoredTask, after: StoredTask) -> StoredTask:
    """Stores and audits the new values of a locked task."""
    at = _next_instant(command, before)
    stamps = {"updated_at": at} | ({_ENDED_AT[act]: at} if act in _ENDED_AT else {})
    after = msgspec.structs.replace(after, **stamps)
    await queries.save_task(command.connection, after)
    await _audit(command, _AUDITED_AS[act], before, after)
    return after


def _next_instant(command: Command, task: StoredTask) -> datetime.datetime:
    """An instant after the task's last change and after its stale event."""
    return command.next_instant(max(task.updated_at, task.stale_at or task.updated_at))


async def _audit(command: Command, action: str, before: StoredTask | None, after: StoredTask) -> None:
    """before: None for a new task."""
    sides = [{name: getattr(side, name) for name in _AUDITED} if side else {} for side in (before, after)]
    await command.audit(f"turn_task.{action}", "turn_task", after.id, *sides)
