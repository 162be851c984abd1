"""The RPCs of the back office about inspections: identity, rule, statement, record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asyncpg import Record

from chassis.auth import identity
from chassis.db.database import Database
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.instants import local_date
from chassis.writes.commands import Command, CommandRunner, fields
from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready.common.v1.documents_pb2 import Document
from svc_catalog.companies import timezone_of
from svc_catalog.editing import Desk, Kept, Locked, no_such
from svc_catalog.inspections import inputs as records
from svc_catalog.inspections import queries as q
from svc_catalog.inspections import rules
from svc_catalog.inspections.events import row_failed
from svc_catalog.inspections.records import InspectionLinks
from svc_catalog.inspections.staff import Staff, is_staff
from svc_catalog.inspections.tables import SERVED, inspection
from svc_catalog.places import tables as t

_ROW_FIELDS = ("note", "category", "priority", "asset_id", "photo_url")
_BLANK = dict.fromkeys(_ROW_FIELDS)


class InspectionCommandsService:
    """Plans, changes, starts and completes inspections, and tells what their rows came to."""

    def __init__(self, database: Database, commands: CommandRunner, staff: Staff, links: InspectionLinks) -> None:
        self._database = database
        self._commands = commands
        self._staff = staff
        columns = q.INSPECTIONS.changeable
        self._kept = Kept(inspection, *columns, also=(SERVED,))
        self._desk = Desk("inspection", self._kept, q.served_inspection, links.inspection)
        self._properties, self._units, self._assets = Kept(t.property_), Kept(t.unit), Kept(t.asset)

    async def ScheduleInspection(
        self, request: pb.ScheduleInspectionRequest, call: identity.Call
    ) -> pb.ScheduleInspectionResponse:
        found = fields(request, "property_id", "row", *records.FIELDS) | {"row": list(request.row)}
        new = bodies.check(records.NewInspection, found)
        values = {name: getattr(new, name) for name in ("property_id", *records.FIELDS)}
        await self._fetch_assignee(call, values)

        async def work(command: Command) -> pb.ScheduleInspectionResponse:
            if await self._properties.as_it_is(command.connection, command.company_id, new.property_id) is None:
                raise no_such("property")
            await self._check_names(command, values, new.property_id)
            numbers = await q.take_numbers(command.connection, command.company_id, {new.property_id: 1})
            own = values | {
                "inspection_number": numbers[new.property_id],
                "is_compliance_inspection": bool(new.is_compliance_inspection),
                "status": rules.DEFAULT_STATUS,
                "kind": rules.DEFAULT_KIND,
            }
            document = await self._desk.add(command, own, "scheduled")
            await q.add_rows(command.connection, command.company_id, document.entity_id, new.row)
            return pb.ScheduleInspectionResponse(document=document)

        return await self._commands.run(call, request, pb.ScheduleInspectionResponse, work)

    async def UpdateInspection(
        self, request: pb.UpdateInspectionRequest, call: identity.Call
    ) -> pb.UpdateInspectionResponse:
        found = fields(request, *records.FIELDS)
        for name, value in found.items():
            if value is None and name not in records.CLEARABLE:
                raise invalid_request(f"clear may name {', '.join(sorted(records.CLEARABLE))} only.", "clear")
        change = bodies.check(records.InspectionChange, found)
        values = {name: getattr(change, name) for name in found}
        await self._fetch_assignee(call, values)

        async def work(command: Command) -> pb.UpdateInspectionResponse:
            locked = await self._desk.lock(command, request.inspection_id)
            await self._check_names(command, values, locked.row["property_id"])
            return pb.UpdateInspectionResponse(document=await self._desk.change(command, locked, values))

        return await self._commands.run(call, request, pb.UpdateInspectionResponse, work)

    async def StartInspection(
        self, request: pb.StartInspectionRequest, call: identity.Call
    ) -> pb.StartInspectionResponse:
        async def work(command: Command) -> pb.StartInspectionResponse:
            locked = await self._desk.lock(command, request.inspection_id)
            return pb.StartInspectionResponse(document=await self._start(command, locked))

        return await self._commands.run(call, request, pb.StartInspectionResponse, work)

    async def ListInspectionRows(
        self, request: pb.ListInspectionRowsRequest, call: identity.Call
    ) -> pb.ListInspectionRowsResponse:
        company_id = identity.company_id(call)
        if await q.served_inspection(self._database, company_id, request.inspection_id) is None:
            raise no_such("inspection")
        rows = await q.checklist(self._database, company_id, request.inspection_id)
        return pb.ListInspectionRowsResponse(rows=[_row(dict(row)) for row in rows])

    async def PassInspectionRow(
        self, request: pb.PassInspectionRowRequest, call: identity.Call
    ) -> pb.PassInspectionRowResponse:
        async def work(command: Command) -> pb.PassInspectionRowResponse:
            locked, row = await self._row(command, request.inspection_id, request.row_id)
            found = dict(row) | _BLANK | {"result": "passed"}
            await self._find(command, locked, row, found)
            return pb.PassInspectionRowResponse(row=_row(found))

        return await self._commands.run(call, request, pb.PassInspectionRowResponse, work)

    async def FailInspectionRow(
        self, request: pb.FailInspectionRowRequest, call: identity.Call
    ) -> pb.FailInspectionRowResponse:
        failure = bodies.check(records.Failure, fields(request, *_ROW_FIELDS))
        rules.check_photo(failure.photo_url)

        async def work(command: Command) -> pb.FailInspectionRowResponse:
            locked, row = await self._row(command, request.inspection_id, request.row_id)
            await self._check_asset(command, failure.asset_id, locked.row["property_id"])
            found = dict(row) | {name: getattr(failure, name) for name in _ROW_FIELDS}
            found |= {
                "result": "failed",
                "category": failure.category or rules.DEFAULT_CATEGORY,
                "priority": failure.priority or rules.DEFAULT_PRIORITY,
                "failed_at": row["failed_at"] or command.now,
            }
            await self._find(command, locked, row, found)
            if row["failed_at"] is None:
                cause = self._commands.outbox.cause(await row_failed(command, dict(locked.row), found))
                await self._commands.outbox.add(command.connection, cause)
            return pb.FailInspectionRowResponse(row=_row(found))

        return await self._commands.run(call, request, pb.FailInspectionRowResponse, work)

    async def CompleteInspection(
        self, request: pb.CompleteInspectionRequest, call: identity.Call
    ) -> pb.CompleteInspectionResponse:
        given = bodies.check(records.Completion, fields(request, "completed_date")).completed_date

        async def work(command: Command) -> pb.CompleteInspectionResponse:
            locked = await self._desk.lock(command, request.inspection_id)
            status = locked.row["status"]
            if rules.is_same_completion(status, locked.row["completed_date"], given):
                return pb.CompleteInspectionResponse(document=locked.document)
            rows = await q.checklist(command.connection, command.company_id, request.inspection_id)
            results = [row["result"] for row in rows]
            rules.check_completes(status, results)
            values = {
                "status": "Completed",
                "result": rules.outcome(results),
                "completed_date": given
                or local_date(command.now, await timezone_of(command.connection, command.company_id)),
            }
            return pb.CompleteInspectionResponse(
                document=await self._desk.change(command, locked, values, action="completed")
            )

        return await self._commands.run(call, request, pb.CompleteInspectionResponse, work)

    async def _start(self, command: Command, locked: Locked) -> Document:
        status = rules.started(locked.row["status"])
        return await self._desk.change(command, locked, {"status": status}, action="started")

    async def _row(self, command: Command, inspection_id: int, row_id: int) -> tuple[Locked, Record]:
        """An inspection, which is locked, and one of its rows. Raises Refusal 404."""
        locked = await self._desk.lock(command, inspection_id)
        for row in await q.checklist(command.connection, command.company_id, inspection_id):
            if row["id"] == row_id:
                return locked, row
        raise Refusal(404, "not_found", "The inspection has no row with that id; check the id.")

    async def _find(self, command: Command, locked: Locked, row: Record, found: Mapping[str, Any]) -> None:
        """Keeps what somebody found of a row, and starts the inspection where nobody has. Raises Refusal 422."""
        await self._start(command, locked)
        if all(row[name] == found[name] for name in ("result", *_ROW_FIELDS)):
            return
        inspection_id = locked.row["id"]
        await q.save_row(command.connection, command.company_id, inspection_id, row["id"], dict(found))
        before, after = ({name: side[name] for name in ("result", *_ROW_FIELDS)} for side in (row, found))
        action = f"inspection.row_{found['result']}"
        await command.audit(action, "inspection", inspection_id, before, after | {"row_id": row["id"]})

    async def _fetch_assignee(self, call: identity.Call, values: Mapping[str, Any]) -> None:
        if values.get("assignee_id") is not None:
            await self._staff.fetch_one(identity.company_id(call), values["assignee_id"])

    async def _check_names(self, command: Command, values: Mapping[str, Any], property_id: int) -> None:
        """That the unit and the assignee are there. Raises Refusal 404, and 422 for a unit of another property."""
        if values.get("unit_id") is not None:
            unit = await self._units.as_it_is(command.connection, command.company_id, values["unit_id"])
            if unit is None:
                raise no_such("unit")
            if unit["property_id"] != property_id:
                raise invalid_request("The unit lies in another property.", "unit_id", 422)
        staff_id = values.get("assignee_id")
        if staff_id is not None and not await is_staff(command.connection, command.company_id, staff_id):
            raise no_such("member of staff")

    async def _check_asset(self, command: Command, asset_id: int | None, property_id: int) -> None:
        """That the asset is there. Raises Refusal 404, and 422 for one of another property."""
        if asset_id is None:
            return
        asset = await self._assets.as_it_is(command.connection, command.company_id, asset_id)
        if asset is None:
            raise no_such("asset")
        if asset["property_id"] != property_id:
            raise invalid_request("The asset stands in another property.", "asset_id", 422)


def _row(row: Mapping[str, Any]) -> pb.InspectionRow:
    told = pb.InspectionRow(row_id=row["id"], position=row["position"], label=row["label"])
    for name in ("result", *_ROW_FIELDS):
        if row[name] is not None:
            setattr(told, name, row[name])
    return told
