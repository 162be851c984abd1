"""The RPCs of preventive-maintenance tasks."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from asyncpg import Record, UniqueViolationError
from google.protobuf.message import Message

from chassis.auth.identity import Call, company_id
from chassis.db.database import Connection, Database
from chassis.imports.importer import Importer
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.writes.commands import Command, CommandRunner, fields
from makeready.tickets.v1 import pm_tasks_pb2 as pb
from svc_tickets import queries_pm as q
from svc_tickets import records_pm, rules_pm
from svc_tickets.imports_pm import CatchUp, PmTaskImport
from svc_tickets.owners import Owners
from svc_tickets.queries_places import place

ROWS_MAX = 1000
_PM_TASK = "pm_task"
_REQUIRED = ("task_name", "due_date")
# What is no longer what it was where the other is given.
_INSTEAD = {
    "unit_id": "area",
    "area": "unit_id",
    "repeat_days": "repeat_months",
    "repeat_months": "repeat_days",
}

Response = TypeVar("Response", bound=Message)


class PmTasksService:
    """Adds, changes, completes, cancels, lists and imports preventive-maintenance tasks."""

    def __init__(
        self,
        commands: CommandRunner,
        database: Database,
        owners: Owners,
        links: records_pm.PmTaskLinks,
        catch_up: CatchUp,
        clock: Callable[[], datetime.datetime],
    ) -> None:
        """catch_up: takes in what other contexts have told; asked where a company's timezone is not here yet."""
        self.commands = commands
        self.database = database
        self.owners = owners
        self.links = links
        self.catch_up = catch_up
        self.importer = Importer(database, commands.outbox, clock)

    async def AddPmTask(self, request: pb.AddPmTaskRequest, call: Call) -> pb.AddPmTaskResponse:
        wanted = bodies.check(records_pm.PmTaskNew, fields(request, *records_pm.PmTaskNew.__struct_fields__))
        rules_pm.check_place(wanted.unit_id, wanted.area)
        comes = rules_pm.round_of(wanted.due_date, wanted.repeat_days, wanted.repeat_months)
        await self._find(company_id(call), wanted.property_id, wanted.unit_id, wanted.asset_id)

        async def work(command: Command) -> pb.AddPmTaskResponse:
            values = msgspec.structs.asdict(wanted) | {"day_of_month": comes.day_of_month}
            return pb.AddPmTaskResponse(task=self.links.task(await self._add(command, values, command.now)))

        return await self.commands.run(call, request, pb.AddPmTaskResponse, work)

    async def UpdatePmTask(self, request: pb.UpdatePmTaskRequest, call: Call) -> pb.UpdatePmTaskResponse:
        names = fields(request, *records_pm.PmTaskChange.__struct_fields__)
        wanted = bodies.check(records_pm.PmTaskChange, names)
        given = {name: getattr(wanted, name) for name in names}
        for name in _REQUIRED:
            if name in given and given[name] is None:
                raise invalid_request(f"{name} can't be cleared.", name)
        rules_pm.check_place(wanted.unit_id, wanted.area)
        await self._find_of(company_id(call), request.pm_task_id, given)

        async def change(command: Command, row: Record) -> None:
            rules_pm.check_open(row["status"])
            after = _changed(row, given)
            fault = await self._fault(
                command.connection, command.company_id, row["property_id"], given.get("unit_id"), given.get("asset_id")
            )
            if fault is not None:  # its property changed since
                raise fault
            if any(after[name] != row[name] for name in after):
                await self._save(command, "changed", row, after, command.next_instant(row["updated_at"]))

        return await self._change(call, request, pb.UpdatePmTaskResponse, change)

    async def CompletePmTask(self, request: pb.CompletePmTaskRequest, call: Call) -> pb.CompletePmTaskResponse:
        async def complete(command: Command, row: Record) -> None:
            if not rules_pm.closes(row["status"], "Completed"):
                return
            at = command.next_instant(row["updated_at"])
            await self._save(command, "completed", row, {"status": "Completed", "completed_at": at}, at)
            comes = rules_pm.Round(row["repeat_days"], row["repeat_months"], row["day_of_month"])
            due_date = rules_pm.next_due(row["due_date"], comes)
            # A file may have opened it again; what came after it the first time goes on by itself.
            if due_date is not None and row["next_id"] is None:
                successor = dict(row) | {"due_date": due_date, "external_id": None, "previous_id": row["id"]}
                await self._add(command, successor, at)

        return await self._change(call, request, pb.CompletePmTaskResponse, complete)

    async def CancelPmTask(self, request: pb.CancelPmTaskRequest, call: Call) -> pb.CancelPmTaskResponse:
        async def cancel(command: Command, row: Record) -> None:
            if rules_pm.closes(row["status"], "Cancelled"):
                at = command.next_instant(row["updated_at"])
                await self._save(command, "cancelled", row, {"status": "Cancelled", "cancelled_at": at}, at)

        return await self._change(call, request, pb.CancelPmTaskResponse, cancel)

    async def ListPmTasks(self, request: pb.ListPmTasksRequest, call: Call) -> pb.ListPmTasksResponse:
        limit = request.limit if request.HasField("limit") else ROWS_MAX
        if not 1 <= limit <= ROWS_MAX:
            raise invalid_request(f"limit must be from 1 to {ROWS_MAX}.", "limit")
        rows = await q.tasks_page(
            self.database,
            company_id(call),
            request.after_id,
            limit + 1,
            request.open if request.HasField("open") else None,
            request.property_id if request.HasField("property_id") else None,
        )
        answer = pb.ListPmTasksResponse(tasks=map(self.links.task, rows[:limit]))
        if len(rows) > limit:
            answer.next_after_id = rows[limit - 1]["id"]
        return answer

    async def ImportPmTasks(self, request: pb.ImportPmTasksRequest, call: Call) -> pb.ImportPmTasksResponse:
        work = PmTaskImport(self.database, self.owners, self.catch_up, events=request.events)
        results = await self.importer.run(work.save, records_pm.PmTaskRow, request, call, work.prepare)
        return pb.ImportPmTasksResponse(results=results)

    async def _change(
        self,
        call: Call,
        request: Any,
        response: Callable[..., Response],
        work: Callable[[Command, Record], Awaitable[None]],
    ) -> Response:
        """Does the work with the task as it is under its lock, and tells what became of it."""

        async def run(command: Command) -> Response:
            row = await q.task_for_update(command.connection, command.company_id, request.pm_task_id)
            if row is None:
                raise _no_such()
            await work(command, row)
            changed = await q.task(command.connection, command.company_id, request.pm_task_id)
            assert changed is not None
            return response(task=self.links.task(changed))

        return await self.commands.run(call, request, response, run)  # type: ignore[arg-type]

    async def _add(self, command: Command, values: Mapping[str, Any], at: datetime.datetime) -> Record:
        """The row of a new open task."""
        planned = {name: values[name] for name in ("property_id", *q.PLANNED)}
        new = planned | {
            "previous_id": values.get("previous_id"),
            "created_at": at,
            "updated_at": at,
            "source": "staff",
        }
        with _external_id_is_free():
            pm_task_id = await q.insert_task(command.connection, command.company_id, new)
        said = {name: value for name, value in planned.items() if value is not None}
        await command.audit("pm_task.added", _PM_TASK, pm_task_id, {}, said)
        row = await q.task(command.connection, command.company_id, pm_task_id)
        assert row is not None
        return row

    async def _save(
        self, command: Command, action: str, row: Record, after: Mapping[str, Any], at: datetime.datetime
    ) -> None:
        """after: the columns that change."""
        stamped = {"version": row["version"] + 1, "updated_at": at}
        with _external_id_is_free():
            await q.save_task(command.connection, command.company_id, row["id"], {**row, **after, **stamped})
        before = {name: row[name] for name in after}
        await command.audit(f"pm_task.{action}", _PM_TASK, row["id"], before, after)

    async def _find_of(self, company: int, pm_task_id: int, given: Mapping[str, Any]) -> None:
        """Finds the places that a change of a task names. Raises Refusal 404."""
        if not any(given.get(name) for name in ("unit_id", "asset_id")):
            return
        async with self.database.connection() as connection:
            row = await q.task(connection, company, pm_task_id)
        if row is None:
            raise _no_such()
        await self._find(company, row["property_id"], given.get("unit_id"), given.get("asset_id"))

    async def _find(self, company: int, property_id: int, unit_id: int | None, asset_id: int | None) -> None:
        """Sees that the places are there, and asks their owner once for what the replicas lack. Raises Refusal 404."""
        fault = await self._fault(self.database, company, property_id, unit_id, asset_id)
        if fault is not None:
            await self.owners.fetch(
                company, property_ids=[property_id], unit_ids=[unit_id or 0], asset_ids=[asset_id or 0]
            )
            fault = await self._fault(self.database, company, property_id, unit_id, asset_id)
        if fault is not None:
            raise fault

    async def _fault(
        self, source: Database | Connection, company: int, property_id: int, unit_id: int | None, asset_id: int | None
    ) -> Refusal | None:
        """What is the matter with the places."""
        found = await place(source, company, property_id, unit_id or 0, asset_id or 0)
        if found is None:
            return Refusal(404, "not_found", "The company has no property with that id.", "property_id")
        for kind, wanted in (("unit", unit_id), ("asset", asset_id)):
            if wanted is not None and found[f"{kind}_id"] is None:
                return Refusal(
                    404, "not_found", f"The property has no {kind} with that id; check both ids.", f"{kind}_id"
                )
        return None


def _changed(row: Record, given: Mapping[str, Any]) -> dict[str, Any]:
    """The planned columns as they will be. What is given takes the place of what it does not go with. Raises
    Refusal."""
    after: dict[str, Any] = {name: row[name] for name in q.PLANNED} | dict(given)
    for name, other in _INSTEAD.items():
        if given.get(name) is not None and given.get(other) is None:
            after[other] = None
    comes = rules_pm.round_of(after["due_date"], after["repeat_days"], after["repeat_months"])
    if row["repeat_months"] is None or after["due_date"] != row["due_date"]:
        after["day_of_month"] = comes.day_of_month
    elif after["repeat_months"] is None:
        after["day_of_month"] = None
    return after


def _no_such() -> Refusal:
    return Refusal(404, "not_found", "The company has no preventive-maintenance task with that id.", "pm_task_id")


@contextlib.contextmanager
def _external_id_is_free() -> Iterator[None]:
    try:
        yield
    except UniqueViolationError as fault:
        if fault.constraint_name != "pm_task_external_id":
            raise
        raise invalid_request(
            "A preventive-maintenance task with that external_id exists; use another.", "external_id", 422
        ) from None
