"""The RPCs by which people add, change and list a company's staff. The fields obey the rules of an import's rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asyncpg import Record, UniqueViolationError

from chassis.auth import identity
from chassis.db.database import Database
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.writes.commands import Command, CommandRunner, fields
from gateway.identity import rules
from gateway.identity.companies import queries as companies
from gateway.identity.companies.rules import no_company
from gateway.identity.staff import queries
from gateway.identity.staff.inputs import MemberFields
from makeready.events.v1.events_pb2 import References
from makeready.identity.v1 import staff_commands_pb2 as pb

PAGE_MAX = 200
_SAID = ("name", "email", "title", "external_id")


class StaffCommandsService:
    """Adds, changes and lists members of staff. Publishes a reference of each, which other contexts keep as a
    replica."""

    def __init__(self, database: Database, commands: CommandRunner) -> None:
        self.database = database
        self.commands = commands

    async def AddStaff(self, request: pb.AddStaffRequest, call: identity.Call) -> pb.AddStaffResponse:
        values = _given(request)

        async def work(command: Command) -> pb.AddStaffResponse:
            if await companies.company(command.connection, command.company_id) is None:
                raise no_company()
            try:
                row = await queries.added_member(command.connection, command.company_id, values, command.now)
            except UniqueViolationError as fault:
                raise _taken(fault) from None
            await command.audit("staff.added", "staff", row["id"], {}, _audited(row))
            await command.publish_references(_reference(row))
            return pb.AddStaffResponse(staff=_shown(row))

        return await self.commands.run(call, request, pb.AddStaffResponse, work)

    async def UpdateStaff(self, request: pb.UpdateStaffRequest, call: identity.Call) -> pb.UpdateStaffResponse:
        values = _given(request)

        async def work(command: Command) -> pb.UpdateStaffResponse:
            before = await queries.member_for_update(command.connection, command.company_id, request.staff_id)
            if before is None:
                raise Refusal(404, "not_found", "The company has no member of staff with that id; check the id.")
            if all(before[name] == value for name, value in values.items()):
                return pb.UpdateStaffResponse(staff=_shown(before))
            try:
                row = await queries.changed_member(command.connection, before, values)
            except UniqueViolationError as fault:
                raise _taken(fault) from None
            await command.audit("staff.updated", "staff", row["id"], _audited(before), _audited(row))
            await command.publish_references(_reference(row))
            return pb.UpdateStaffResponse(staff=_shown(row))

        return await self.commands.run(call, request, pb.UpdateStaffResponse, work)

    async def ListStaff(self, request: pb.ListStaffRequest, call: identity.Call) -> pb.ListStaffResponse:
        limit = request.limit if request.HasField("limit") else PAGE_MAX
        if not 1 <= limit <= PAGE_MAX:
            raise invalid_request(f"limit must be from 1 to {PAGE_MAX}.", "limit")
        found = await queries.staff_page(self.database, identity.company_id(call), request.after_id, limit + 1)
        answer = pb.ListStaffResponse(staff=map(_shown, found[:limit]))
        if len(found) > limit:
            answer.next_after_id = found[limit - 1]["id"]
        return answer


def _given(request: Any) -> dict[str, Any]:
    """The request's fields by name; a cleared field is None. Raises Refusal 400."""
    found = fields(request, *_SAID)
    checked = bodies.check(MemberFields, found)
    values = {name: getattr(checked, name) for name in found}
    if values.get("name", "") is None:
        raise invalid_request("name can't be cleared.", "name")
    if values.get("email") is not None:
        values["email"] = rules.checked(rules.email, values["email"], "email")
    return values


def _taken(fault: UniqueViolationError) -> Exception:
    if fault.constraint_name != "staff_external_id":
        return fault
    return invalid_request("A member of staff with that external_id exists; use another.", "external_id", status=422)


def _audited(row: Record) -> Mapping[str, Any]:
    return {name: row[name] for name in _SAID}


def _reference(row: Record) -> References:
    references = References()
    references.staff.add(**{name: row[name] for name in ("id", "version", "company_id", "name", "external_id")})
    return references


def _shown(row: Record) -> pb.Staff:
    found = pb.Staff(staff_id=row["id"], source=row["source"], **_audited(row))
    found.created_at.FromDatetime(row["created_at"])
    return found
