"""The RPCs by which people schedule, change, start, complete and cancel inspections, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chassis.auth import identity
from chassis.db.database import Database
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.instants import local_date
from chassis.writes.commands import Command, CommandRunner, fields
from chassis.writes.editing import EditableTable, LockedRecord, RecordEditor, no_such
from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready.common.v1.documents_pb2 import Document
from svc_catalog.companies import timezone_of
from svc_catalog.inspection_templates import queries as templates
from svc_catalog.inspection_templates.tables import StoredTemplate
from svc_catalog.inspections import inputs, rules
from svc_catalog.inspections import queries as q
from svc_catalog.inspections.events import inspection_row_failed
from svc_catalog.inspections.records import INSPECTION, Inspection
from svc_catalog.inspections.search_queries import inspected
from svc_catalog.inspections.staff import Staff, is_staff
from svc_catalog.inspections.tables import FOR_PEOPLE, inspection
from svc_catalog.places.lookups import find_asset, find_property, find_unit

# The fields of a failure.
_FAILURE = ("note", "category", "priority", "asset_id")


class InspectionCommandsService:
    """Schedules, changes, starts, completes and cancels inspections, and records the result of each row."""

    def __init__(self, database: Database, commands: CommandRunner, staff: Staff, links_url: str) -> None:
        self._database = database
        self._commands = commands
        self._staff = staff
        self._inspections = RecordEditor(
            "inspection",
            EditableTable(inspection, *q.INSPECTIONS.changeable, also=(FOR_PEOPLE,)),
            q.ONE_FOR_PEOPLE,
            INSPECTION.renderer(links_url),
        )

    async def ScheduleInspection(
        self, request: pb.ScheduleInspectionRequest, call: identity.Call
    ) -> pb.ScheduleInspectionResponse:
        names = inputs.InspectionChange.__struct_fields__
        body = fields(request, "property_id", "row", "template_id", *names) | {"row": list(request.row)}
        new = bodies.check(inputs.NewInspection, body)
        values = {name: getattr(new, name) for name in ("property_id", *names)}
        await self._fetch_assignee(call, values)

        async def work(command: Command) -> pb.ScheduleInspectionResponse:
            await find_property(command, new.property_id)
            await self._check_names(command, values, new.property_id)
            template = None if new.row else await _template(command, new)
            labels = new.row if template is None else template.rows
            if template is not None and new.inspection_type is None:
                values["inspection_type"] = template.inspection_type
            numbers = await q.take_numbers(command.connection, command.company_id, {new.property_id: 1})
            columns = values | {
                "inspection_number": numbers[new.property_id],
                "is_compliance_inspection": bool(new.is_compliance_inspection),
                "status": rules.DEFAULT_STATUS,
                "kind": rules.DEFAULT_KIND,
            }
            document = await self._inspections.add(command, columns, "scheduled")
            await q.add_rows(command.connection, command.company_id, document.entity_id, labels)
            return pb.ScheduleInspectionResponse(document=document)

        return await self._commands.run(call, request, pb.ScheduleInspectionResponse, work)

    async def UpdateInspection(
        self, request: pb.UpdateInspectionRequest, call: identity.Call
    ) -> pb.UpdateInspectionResponse:
        values = inputs.INSPECTION_FIELDS.of(request)
        await self._fetch_assignee(call, values)

        async def work(command: Command) -> pb.UpdateInspectionResponse:
            locked = await self._lock(command, request.inspection_id)
            for name, seen in _seen_plan(request).items():
                if name in values:
                    rules.check_plan_seen(name, seen, locked.row[name], values[name])
            await self._check_names(command, values, locked.row["property_id"])
            return pb.UpdateInspectionResponse(document=await self._inspections.change(command, locked, values))

        return await self._commands.run(call, request, pb.UpdateInspectionResponse, work)

    async def StartInspection(
        self, request: pb.StartInspectionRequest, call: identity.Call
    ) -> pb.StartInspectionResponse:
        async def work(command: Command) -> pb.StartInspectionResponse:
            locked = await self._lock(command, request.inspection_id)
            return pb.StartInspectionResponse(document=await self._start(command, locked))

        return await self._commands.run(call, request, pb.StartInspectionResponse, work)

    async def ListInspectionRows(
        self, request: pb.ListInspectionRowsRequest, call: identity.Call
    ) -> pb.ListInspectionRowsResponse:
        company_id = identity.company_id(call)
        served = await self._database.row(q.ONE_FOR_PEOPLE, company_id=company_id, entity_id=request.inspection_id)
        if served is None:
            raise no_such("inspection")
        rows = await q.checklist(self._database, company_id, request.inspection_id)
        answer = pb.ListInspectionRowsResponse(rows=map(_message, rows))
        entries = await inspected(self._database, company_id, request.inspection_id)
        for stored, row in zip(rows, answer.rows, strict=True):
            if stored.failed_at is not None:
                row.failed_at.FromDatetime(stored.failed_at)
            if row.HasField("result") and (entry := entries.get(row.row_id)):
                row.inspected_at.FromDatetime(entry["recorded_at"])
                row.inspected_by = entry["actor"]
        return answer

    async def PassInspectionRow(
        self, request: pb.PassInspectionRowRequest, call: identity.Call
    ) -> pb.PassInspectionRowResponse:
        async def work(command: Command) -> pb.PassInspectionRowResponse:
            locked, row = await self._row(command, request.inspection_id, request.row_id)
            rules.check_seen(_seen(request), row.result, "passed")
            passed = row._replace(result="passed", note=None, category=None, priority=None, asset_id=None)
            await self._save_row(command, locked, row, passed)
            return pb.PassInspectionRowResponse(row=_message(passed))

        return await self._commands.run(call, request, pb.PassInspectionRowResponse, work)

    async def FailInspectionRow(
        self, request: pb.FailInspectionRowRequest, call: identity.Call
    ) -> pb.FailInspectionRowResponse:
        failure = bodies.check(inputs.Failure, fields(request, *_FAILURE, "photo_url"))
        rules.check_photo_url(failure.photo_url)

        async def work(command: Command) -> pb.FailInspectionRowResponse:
            locked, row = await self._row(command, request.inspection_id, request.row_id)
            rules.check_seen(_seen(request), row.result, "failed")
            await self._check_asset(command, failure.asset_id, locked.row["property_id"])
            failed = row._replace(
                result="failed",
                note=failure.note,
                category=failure.category or rules.DEFAULT_CATEGORY,
                priority=failure.priority or rules.DEFAULT_PRIORITY,
                asset_id=failure.asset_id,
                photo_url=failure.photo_url or row.photo_url,
                failed_at=row.failed_at or command.now,
            )
            await self._save_row(command, locked, row, failed)
            if row.failed_at is None:
                event = await inspection_row_failed(command, dict(locked.row), failed)
                await self._commands.outbox.add(command.connection, self._commands.outbox.cause(event))
            return pb.FailInspectionRowResponse(row=_message(failed))

        return await self._commands.run(call, request, pb.FailInspectionRowResponse, work)

    async def SetInspectionRowPhoto(
        self, request: pb.SetInspectionRowPhotoRequest, call: identity.Call
    ) -> pb.SetInspectionRowPhotoResponse:
        photo_url = bodies.check(inputs.RowPhoto, fields(request, "photo_url")).photo_url
        rules.check_photo_url(photo_url)

        async def work(command: Command) -> pb.SetInspectionRowPhotoResponse:
            locked, row = await self._row(command, request.inspection_id, request.row_id)
            response = pb.SetInspectionRowPhotoResponse(previous_photo_url=row.photo_url)
            if photo_url != row.photo_url:
                rules.check_open(locked.row["status"])
                rules.check_photo_changes(row.photo_url, row.failed_at)
                after = row._replace(photo_url=photo_url)
                await q.save_row(command.connection, command.company_id, request.inspection_id, after)
                sides = [{"row_id": side.id, "photo_url": side.photo_url} for side in (row, after)]
                await command.audit("inspection.row_photo_set", "inspection", request.inspection_id, *sides)
                row = after
            response.row.CopyFrom(_message(row))
            return response

        return await self._commands.run(call, request, pb.SetInspectionRowPhotoResponse, work)

    async def CompleteInspection(
        self, request: pb.CompleteInspectionRequest, call: identity.Call
    ) -> pb.CompleteInspectionResponse:
        completed_date = bodies.check(inputs.Completion, fields(request, "completed_date")).completed_date

        async def work(command: Command) -> pb.CompleteInspectionResponse:
            locked = await self._lock(command, request.inspection_id)
            status = locked.row["status"]
            if rules.is_same_completion(status, locked.row["completed_date"], completed_date):
                return pb.CompleteInspectionResponse(document=locked.document)
            rows = await q.checklist(command.connection, command.company_id, request.inspection_id)
            results = [row.result for row in rows]
            rules.check_completes(status, results)
            values = {
                "status": "Completed",
                "result": rules.outcome(results),
                "completed_date": completed_date
                or local_date(command.now, await timezone_of(command.connection, command.company_id)),
            }
            return pb.CompleteInspectionResponse(
                document=await self._inspections.change(command, locked, values, action="completed")
            )

        return await self._commands.run(call, request, pb.CompleteInspectionResponse, work)

    async def CancelInspection(
        self, request: pb.CancelInspectionRequest, call: identity.Call
    ) -> pb.CancelInspectionResponse:
        cancellation = bodies.check(inputs.Cancellation, fields(request, "reason"))
        reason = (cancellation.reason or "").strip() or None

        async def work(command: Command) -> pb.CancelInspectionResponse:
            locked = await self._inspections.lock(command, request.inspection_id)
            response = pb.CancelInspectionResponse(inspection_id=request.inspection_id)
            if locked.row["kind"] == rules.CANCELLED:
                response.cancelled_at.FromDatetime(locked.row["cancelled_at"])
                return response
            rules.check_open(locked.row["status"])
            values = {
                "kind": rules.CANCELLED,
                "cancelled_at": command.now,
                "cancelled_by": command.call.identity.actor,
                "cancel_reason": reason,
            }
            audited_values = {"status": "Cancelled", "reason": reason}
            await self._inspections.change(command, locked, values, action="cancelled", also=audited_values)
            response.cancelled_at.FromDatetime(command.now)
            return response

        return await self._commands.run(call, request, pb.CancelInspectionResponse, work)

    async def AddInspectionRow(
        self, request: pb.AddInspectionRowRequest, call: identity.Call
    ) -> pb.AddInspectionRowResponse:
        label = bodies.check(inputs.NewRow, fields(request, "label")).label

        async def work(command: Command) -> pb.AddInspectionRowResponse:
            locked = await self._lock(command, request.inspection_id)
            rules.check_open(locked.row["status"])
            rows = await q.checklist(command.connection, command.company_id, request.inspection_id)
            rules.check_has_room(len(rows))
            row_id = await q.add_row(command.connection, command.company_id, request.inspection_id, label)
            after = {"row_id": row_id, "label": label}
            await command.audit("inspection.row_added", "inspection", request.inspection_id, {}, after)
            return pb.AddInspectionRowResponse(row=pb.InspectionRow(row_id=row_id, position=len(rows) + 1, label=label))

        return await self._commands.run(call, request, pb.AddInspectionRowResponse, work)

    async def RemoveInspectionRow(
        self, request: pb.RemoveInspectionRowRequest, call: identity.Call
    ) -> pb.RemoveInspectionRowResponse:
        async def work(command: Command) -> pb.RemoveInspectionRowResponse:
            locked, row = await self._row(command, request.inspection_id, request.row_id)
            rules.check_open(locked.row["status"])
            rules.check_removable(row.result, row.failed_at)
            await q.remove_row(command.connection, command.company_id, request.inspection_id, row.id)
            before = {"row_id": row.id, "label": row.label}
            await command.audit("inspection.row_removed", "inspection", request.inspection_id, before, {})
            return pb.RemoveInspectionRowResponse(photo_url=row.photo_url)

        return await self._commands.run(call, request, pb.RemoveInspectionRowResponse, work)

    async def _lock(self, command: Command, inspection_id: int) -> LockedRecord[Inspection]:
        """The inspection, locked for a change. Raises Refusal 404, or 422 if it is cancelled."""
        locked = await self._inspections.lock(command, inspection_id)
        rules.check_not_cancelled(locked.row["kind"])
        return locked

    async def _start(self, command: Command, locked: LockedRecord[Inspection]) -> Document:
        status = rules.started(locked.row["status"])
        return await self._inspections.change(command, locked, {"status": status}, action="started")

    async def _row(
        self, command: Command, inspection_id: int, row_id: int
    ) -> tuple[LockedRecord[Inspection], q.ChecklistRow]:
        """Locks an inspection and returns it with one of its rows. Raises Refusal 404, or 422 if it is cancelled."""
        locked = await self._lock(command, inspection_id)
        for row in await q.checklist(command.connection, command.company_id, inspection_id):
            if row.id == row_id:
                return locked, row
        raise Refusal(404, "not_found", "The inspection has no row with that id; check the id.")

    async def _save_row(
        self, command: Command, locked: LockedRecord[Inspection], before: q.ChecklistRow, after: q.ChecklistRow
    ) -> None:
        """Stores the result of a row; starts the inspection if it is still Scheduled. Raises Refusal 422."""
        await self._start(command, locked)
        sides = [{name: getattr(side, name) for name in ("result", *_FAILURE)} for side in (before, after)]
        if sides[0] == sides[1]:
            return
        inspection_id = locked.row["id"]
        await q.save_row(command.connection, command.company_id, inspection_id, after)
        action = f"inspection.row_{after.result}"
        await command.audit(action, "inspection", inspection_id, sides[0], sides[1] | {"row_id": before.id})

    async def _fetch_assignee(self, call: identity.Call, values: Mapping[str, Any]) -> None:
        if values.get("assignee_id") is not None:
            await self._staff.fetch_one(identity.company_id(call), values["assignee_id"])

    async def _check_names(self, command: Command, values: Mapping[str, Any], property_id: int) -> None:
        """Raises Refusal 404 if the unit or the assignee does not exist, 422 if the unit is in another property."""
        if values.get("unit_id") is not None:
            unit = await find_unit(command, values["unit_id"])
            if unit["property_id"] != property_id:
                raise invalid_request("The unit lies in another property.", "unit_id", 422)
        staff_id = values.get("assignee_id")
        if staff_id is not None and not await is_staff(command.connection, command.company_id, staff_id):
            raise no_such("member of staff")

    async def _check_asset(self, command: Command, asset_id: int | None, property_id: int) -> None:
        """Raises Refusal 404 if the asset does not exist, 422 if it is in another property."""
        if asset_id is None:
            return
        asset = await find_asset(command, asset_id)
        if asset["property_id"] != property_id:
            raise invalid_request("The asset stands in another property.", "asset_id", 422)


def _seen_plan(request: pb.UpdateInspectionRequest) -> Mapping[str, str]:
    """What the person saw of an inspection's plan; without what the request does not say."""
    seen = {}
    if request.HasField("from_assignee_id"):
        seen["assignee_id"] = str(request.from_assignee_id or "")
    if request.HasField("from_scheduled_date"):
        seen["scheduled_date"] = request.from_scheduled_date
    return seen


async def _template(command: Command, new: inputs.NewInspection) -> StoredTemplate | None:
    """The template whose rows a new inspection has: the one that is named, or the default one of its type."""
    if new.template_id is not None:
        template = await templates.template(command.connection, command.company_id, new.template_id)
        if template is None:
            raise Refusal(404, "not_found", "The company has no template with that id; check the id.", "template_id")
        return template
    if new.inspection_type is None:
        return None
    return await templates.default_of(command.connection, command.company_id, new.inspection_type)


def _seen(request: pb.PassInspectionRowRequest | pb.FailInspectionRowRequest) -> str | None:
    return request.seen_result if request.HasField("seen_result") else None


def _message(row: q.ChecklistRow) -> pb.InspectionRow:
    message = pb.InspectionRow(row_id=row.id, position=row.position, label=row.label)
    for name in ("result", *_FAILURE, "photo_url"):
        value = getattr(row, name)
        if value is not None:
            setattr(message, name, value)
    return message
