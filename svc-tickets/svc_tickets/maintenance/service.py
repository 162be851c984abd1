"""The RPCs of preventive-maintenance tasks."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from asyncpg import Record
from google.protobuf.message import Message

from chassis.auth.identity import Call, company_id
from chassis.db.database import Database
from chassis.imports.importer import Importer
from chassis.lists.paging import limit_of
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import local_date
from chassis.writes.commands import Command, CommandRunner, fields
from chassis.writes.editing import LockedRecord, RecordEditor, RecordWording, audited_columns
from makeready.tickets.v1 import pm_tasks_pb2 as pb
from svc_tickets import schema
from svc_tickets.maintenance import inputs, rules
from svc_tickets.maintenance import queries as q
from svc_tickets.maintenance.imports import CatchUp, PmTaskImport
from svc_tickets.maintenance.records import PmTask, PmTaskRenderer, message
from svc_tickets.replicas import places
from svc_tickets.replicas.fetch import ReplicaFetcher

ROWS_MAX = 1000
CALLED = "preventive-maintenance task"
_EQUAL, _DUE = ("property_id", "unit_id", "asset_id", "assignee_id"), ("due_from", "due_to")
_REQUIRED = ("task_name", "due_date")
# Setting a field clears its alternative, unless the request sets that too.
_INSTEAD = {
    "unit_id": "area",
    "area": "unit_id",
    "repeat_days": "repeat_months",
    "repeat_months": "repeat_days",
}

Response = TypeVar("Response", bound=Message)
LockedTask = LockedRecord[PmTask]


class PmTasksService:
    """Adds, changes, completes, cancels, lists and imports preventive-maintenance tasks."""

    def __init__(
        self,
        commands: CommandRunner,
        database: Database,
        replicas: ReplicaFetcher,
        renderer: PmTaskRenderer,
        catch_up: CatchUp,
        clocks: CompanyClocks,
    ) -> None:
        """catch_up: takes in pending events of other contexts; called if the replica lacks a company's timezone."""
        self.commands = commands
        self.database = database
        self.replicas = replicas
        self.renderer = renderer
        self.catch_up = catch_up
        self.clocks = clocks
        self.importer = Importer(database, commands.outbox, schema.idempotency, clocks)
        self.editor = RecordEditor(
            "pm_task",
            q.EDITABLE,
            q.EDITED,
            renderer,
            audit=audited_columns(q.AUDITED),
            wording=RecordWording(CALLED, _no_such_task),
        )

    async def AddPmTask(self, request: pb.AddPmTaskRequest, call: Call) -> pb.AddPmTaskResponse:
        new = bodies.check(inputs.PmTaskNew, fields(request, *inputs.PmTaskNew.__struct_fields__))
        rules.check_place(new.unit_id, new.area)
        comes = rules.round_of(new.due_date, new.repeat_days, new.repeat_months)
        place = (new.property_id, new.unit_id, new.asset_id)
        await places.find(self.database, self.replicas, company_id(call), *place)
        await self._find_assignee(company_id(call), new.assignee_id)
        values = msgspec.structs.asdict(new) | {"day_of_month": comes.day_of_month}

        async def work(command: Command) -> pb.AddPmTaskResponse:
            saved = await self.editor.save_new(command, values)
            return pb.AddPmTaskResponse(task=message(saved.record))

        return await self.commands.run(call, request, pb.AddPmTaskResponse, work)

    async def UpdatePmTask(self, request: pb.UpdatePmTaskRequest, call: Call) -> pb.UpdatePmTaskResponse:
        names = fields(request, *inputs.PmTaskChange.__struct_fields__)
        requested = bodies.check(inputs.PmTaskChange, names)
        values = {name: getattr(requested, name) for name in names}
        for name in _REQUIRED:
            if name in values and values[name] is None:
                raise invalid_request(f"{name} can't be cleared.", name)
        rules.check_place(requested.unit_id, requested.area)
        await self._find_of(company_id(call), request.pm_task_id, values)
        await self._find_assignee(company_id(call), requested.assignee_id)

        async def change(command: Command, locked: LockedTask) -> PmTask:
            row = locked.row
            rules.check_open(row["status"])
            after = _changed(row, values)
            place = (row["property_id"], values.get("unit_id"), values.get("asset_id"))
            fault = await places.fault(command.connection, command.company_id, *place)
            if fault is not None:  # the task's property changed in the meantime
                raise fault
            return (await self.editor.save(command, locked, after, action="changed")).record

        return await self._change(call, request, pb.UpdatePmTaskResponse, change)

    async def CompletePmTask(self, request: pb.CompletePmTaskRequest, call: Call) -> pb.CompletePmTaskResponse:
        async def complete(command: Command, locked: LockedTask) -> PmTask:
            row = locked.row
            if not rules.closes(row["status"], "Completed"):
                return locked.record
            at = command.next_instant(row["updated_at"])
            values = {"status": "Completed", "completed_at": at}
            task = (await self.editor.save(command, locked, values, action="completed", at=at)).record
            comes = rules.Round(row["repeat_days"], row["repeat_months"], row["day_of_month"])
            due_date = rules.next_due(row["due_date"], comes)
            # An import may have reopened the task after it was completed once; then its successor exists already.
            if due_date is None or task.next_pm_task_id is not None:
                return task
            planned = {name: row[name] for name in ("property_id", *q.PLANNED)}
            successor = planned | {"due_date": due_date, "external_id": None, "previous_id": row["id"]}
            await self.editor.save_new(command, successor, at=at)
            task, _ = await self.editor.rendered(command, row["id"])
            return task

        return await self._change(call, request, pb.CompletePmTaskResponse, complete)

    async def CancelPmTask(self, request: pb.CancelPmTaskRequest, call: Call) -> pb.CancelPmTaskResponse:
        async def cancel(command: Command, locked: LockedTask) -> PmTask:
            if not rules.closes(locked.row["status"], "Cancelled"):
                return locked.record
            at = command.next_instant(locked.row["updated_at"])
            values = {"status": "Cancelled", "cancelled_at": at}
            return (await self.editor.save(command, locked, values, action="cancelled", at=at)).record

        return await self._change(call, request, pb.CancelPmTaskResponse, cancel)

    async def ListPmTasks(self, request: pb.ListPmTasksRequest, call: Call) -> pb.ListPmTasksResponse:
        limit = limit_of(request, ROWS_MAX, ROWS_MAX)
        if request.order not in pb.PmTaskOrder.values():
            raise invalid_request("order must be one of: id, due.", "order", 422)
        filters = _filters(request)
        if request.order == pb.PM_TASK_ORDER_DUE:
            return await self._list_by_due(request, company_id(call), limit, filters)
        rows = await q.tasks_page(self.database, company_id(call), request.after_id, limit + 1, filters)
        answer = pb.ListPmTasksResponse(tasks=self._messages(rows[:limit]))
        if len(rows) > limit:
            answer.next_after_id = answer.tasks[-1].pm_task_id
        return answer

    async def _list_by_due(
        self, request: pb.ListPmTasksRequest, company: int, limit: int, filters: Mapping[str, object]
    ) -> pb.ListPmTasksResponse:
        if request.HasField("after") and request.HasField("before"):
            raise invalid_request("Give after or before, not both.", "before")
        backwards = bool(request.before)
        last = rules.read_cursor(request.after or request.before)
        rows = await q.tasks_by_due(self.database, company, last, limit + 1, filters, backwards=backwards)
        has_more, page = len(rows) > limit, rows[:limit]
        if backwards:
            page.reverse()
        answer = pb.ListPmTasksResponse(tasks=self._messages(page))
        if page and (backwards or has_more):
            answer.next = rules.cursor(answer.tasks[-1].due_date, answer.tasks[-1].pm_task_id)
        if page and (has_more if backwards else bool(request.after)):
            answer.previous = rules.cursor(answer.tasks[0].due_date, answer.tasks[0].pm_task_id)
        return answer

    async def GetPmTask(self, request: pb.GetPmTaskRequest, call: Call) -> pb.GetPmTaskResponse:
        company = company_id(call)
        chain = await q.task_with_chain(self.database, company, request.pm_task_id)
        if chain is None:
            raise _no_such_task()
        (task,) = self._messages([chain.task])
        answer = pb.GetPmTaskResponse(
            task=task, earlier=self._messages(chain.earlier), later=self._messages(chain.later)
        )
        if task.HasField("asset_id"):
            name = await q.asset_name(self.database, company, task.asset_id)
            if name is not None:
                answer.asset_name = name
        return answer

    async def CountPmTasks(self, request: pb.CountPmTasksRequest, call: Call) -> pb.CountPmTasksResponse:
        company = company_id(call)
        timezone = await q.timezone(self.database, company) or "UTC"
        today = local_date(await self.clocks.now(call), timezone)
        of_property = request.property_id if request.HasField("property_id") else None
        week_end = today + datetime.timedelta(days=6)
        counts = await q.due_counts(self.database, company, of_property, today, week_end)
        filters: dict[str, object] = {"open": True}
        if of_property is not None:
            filters["property_id"] = of_property
        following = await q.tasks_by_due(self.database, company, (today, 0), 1, filters, backwards=False)
        answer = pb.CountPmTasksResponse(today=today.isoformat(), **counts._asdict())
        if following:
            answer.next.CopyFrom(self._messages(following)[0])
        return answer

    def _messages(self, rows: Sequence[Record]) -> list[pb.PmTask]:
        return [message(self.renderer.record(row)) for row in rows]

    async def ImportPmTasks(self, request: pb.ImportPmTasksRequest, call: Call) -> pb.ImportPmTasksResponse:
        work = PmTaskImport(self.database, self.replicas, self.catch_up, events=request.events)
        results = await self.importer.run(work.save, inputs.PmTaskRow, request, call, work.prepare)
        return pb.ImportPmTasksResponse(results=results)

    async def _change(
        self,
        call: Call,
        request: Any,
        response: Callable[..., Response],
        work: Callable[[Command, LockedTask], Awaitable[PmTask]],
    ) -> Response:
        """Runs `work` on the locked task and responds with the task that it returns."""

        async def run(command: Command) -> Response:
            locked = await self.editor.lock(command, request.pm_task_id)
            return response(task=message(await work(command, locked)))

        return await self.commands.run(call, request, response, run)  # type: ignore[arg-type]

    async def _find_of(self, company: int, pm_task_id: int, values: Mapping[str, Any]) -> None:
        """Makes sure that the replicas have the places that a change names. Raises Refusal 404."""
        if not any(values.get(name) for name in ("unit_id", "asset_id")):
            return
        property_id = await q.property_of(self.database, company, pm_task_id)
        if property_id is None:
            raise _no_such_task()
        place = (property_id, values.get("unit_id"), values.get("asset_id"))
        await places.find(self.database, self.replicas, company, *place)

    async def _find_assignee(self, company: int, staff_id: int | None) -> None:
        """Makes sure that the replica has the member of staff. Raises Refusal 404."""
        if staff_id is None or await q.is_staff(self.database, company, staff_id):
            return
        await self.replicas.fetch(company, {"staff": staff_id})
        if not await q.is_staff(self.database, company, staff_id):
            message = "The company has no member of staff with that id; check the id."
            raise Refusal(404, "not_found", message, "assignee_id")


def _filters(request: pb.ListPmTasksRequest) -> dict[str, object]:
    """The filters of a list of tasks, by name of `queries.FILTERS`. Raises Refusal for a text that is no date."""
    message: Message = request
    filters: dict[str, object] = {}
    if request.HasField("open"):
        filters["open" if request.open else "closed"] = True
    filters |= {name: getattr(request, name) for name in _EQUAL if message.HasField(name)}
    return filters | {name: rules.read_date(getattr(request, name), name) for name in _DUE if message.HasField(name)}


def _changed(row: Record, values: Mapping[str, Any]) -> dict[str, Any]:
    """The planned columns after the change. A field that is set clears its alternative. Raises Refusal."""
    after: dict[str, Any] = {name: row[name] for name in q.PLANNED} | dict(values)
    for name, other in _INSTEAD.items():
        if values.get(name) is not None and values.get(other) is None:
            after[other] = None
    comes = rules.round_of(after["due_date"], after["repeat_days"], after["repeat_months"])
    if row["repeat_months"] is None or after["due_date"] != row["due_date"]:
        after["day_of_month"] = comes.day_of_month
    elif after["repeat_months"] is None:
        after["day_of_month"] = None
    return after


def _no_such_task() -> Refusal:
    return Refusal(404, "not_found", f"The company has no {CALLED} with that id.", "pm_task_id")
