"""The RPCs by which people add, change and list a company's staff. The fields obey the rules of an import's rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asyncpg import Record, UniqueViolationError

from chassis.auth import identity
from chassis.auth.identity import STAFF
from chassis.db.database import Database
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.writes.commands import Command, CommandRunner, fields
from gateway.identity import rules
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts.links import Links
from gateway.identity.accounts.rules import email_taken, no_account
from gateway.identity.accounts.sessions import queries as sessions
from gateway.identity.companies import queries as companies
from gateway.identity.rules import no_company
from gateway.identity.staff import queries
from gateway.identity.staff.inputs import MemberFields
from makeready.events.v1.events_pb2 import References
from makeready.identity.v1 import staff_commands_pb2 as pb

PAGE_MAX = 200
WORDS_MAX = 200
_SAID = ("name", "email", "title", "external_id")


class StaffCommandsService:
    """Adds, changes and lists members of staff. Publishes a reference of each, which other contexts keep as a
    replica."""

    def __init__(self, database: Database, commands: CommandRunner, links: Links) -> None:
        self.database = database
        self.commands = commands
        self.links = links

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
            return pb.AddStaffResponse(staff=await self._shown(command, row["id"]))

        return await self.commands.run(call, request, pb.AddStaffResponse, work)

    async def UpdateStaff(self, request: pb.UpdateStaffRequest, call: identity.Call) -> pb.UpdateStaffResponse:
        values = _given(request)

        async def work(command: Command) -> pb.UpdateStaffResponse:
            before = await self._locked(command, request.staff_id)
            if all(before[name] == value for name, value in values.items()):
                return pb.UpdateStaffResponse(staff=await self._shown(command, before["id"]))
            try:
                row = await queries.changed_member(command.connection, before, values)
                if row["email"] != before["email"]:
                    await self._change_account(command, row)
            except UniqueViolationError as fault:
                raise _taken(fault) from None
            await command.audit("staff.updated", "staff", row["id"], _audited(before), _audited(row))
            await command.publish_references(_reference(row))
            return pb.UpdateStaffResponse(staff=await self._shown(command, row["id"]))

        return await self.commands.run(call, request, pb.UpdateStaffResponse, work)

    async def GetStaff(self, request: pb.GetStaffRequest, call: identity.Call) -> pb.GetStaffResponse:
        row = await queries.member(self.database, identity.company_id(call), request.staff_id)
        if row is None:
            raise _no_member()
        return pb.GetStaffResponse(staff=_shown(row))

    async def InviteStaff(self, request: pb.InviteStaffRequest, call: identity.Call) -> pb.InviteStaffResponse:
        async def work(command: Command) -> pb.InviteStaffResponse:
            row = await self._locked(command, request.staff_id)
            if not row["active"]:
                raise invalid_request("This member of staff has ended; take them back first.", "staff_id", status=422)
            if row["email"] is None:
                raise invalid_request(
                    "This member of staff has no e-mail, by which people sign in; add one first.", "email", status=422
                )
            if await accounts.account_of(command.connection, STAFF, command.company_id, row["id"]) is None:
                try:
                    await accounts.new_account(command.connection, command.company_id, row["email"], staff_id=row["id"])
                except UniqueViolationError as fault:
                    raise _taken(fault) from None
                await command.audit("staff.invited", "staff", row["id"], {}, {"email": row["email"]})
            return pb.InviteStaffResponse(staff=await self._shown(command, row["id"]))

        response = await self.commands.run(call, request, pb.InviteStaffResponse, work)
        # The stored reply has no link, which is a secret: each request makes a new one, and the last one is good.
        async with self.database.transaction() as connection:
            account = await accounts.account_of(connection, STAFF, identity.company_id(call), request.staff_id)
            if account is None or not account["person_active"]:
                raise no_account()
            response.link.CopyFrom(await self.links.make(connection, call, account))
        return response

    async def EndStaff(self, request: pb.EndStaffRequest, call: identity.Call) -> pb.EndStaffResponse:
        async def work(command: Command) -> pb.EndStaffResponse:
            return pb.EndStaffResponse(staff=await self._set_active(command, request.staff_id, False))

        return await self.commands.run(call, request, pb.EndStaffResponse, work)

    async def ReinstateStaff(self, request: pb.ReinstateStaffRequest, call: identity.Call) -> pb.ReinstateStaffResponse:
        async def work(command: Command) -> pb.ReinstateStaffResponse:
            return pb.ReinstateStaffResponse(staff=await self._set_active(command, request.staff_id, True))

        return await self.commands.run(call, request, pb.ReinstateStaffResponse, work)

    async def _locked(self, command: Command, staff_id: int) -> Record:
        row = await queries.member_for_update(command.connection, command.company_id, staff_id)
        if row is None:
            raise _no_member()
        return row

    async def _shown(self, command: Command, staff_id: int) -> pb.Staff:
        row = await queries.member(command.connection, command.company_id, staff_id)
        assert row is not None
        return _shown(row)

    async def _set_active(self, command: Command, staff_id: int, active: bool) -> pb.Staff:
        before = await self._locked(command, staff_id)
        if before["active"] != active:
            await queries.set_active(command.connection, command.company_id, staff_id, active)
            account = await accounts.account_of(command.connection, STAFF, command.company_id, staff_id)
            if not active and account is not None:
                await sessions.end_other_sessions(command.connection, account["account_id"], None)
                await accounts.end_links(command.connection, account["account_id"])
            action = "staff.reinstated" if active else "staff.ended"
            await command.audit(action, "staff", staff_id, {"active": not active}, {"active": active})
        return await self._shown(command, staff_id)

    async def _change_account(self, command: Command, row: Record) -> None:
        """The e-mail of the record is the one that signs in; without one the account is gone."""
        account = await accounts.account_of(command.connection, STAFF, command.company_id, row["id"])
        if account is None:
            return
        if row["email"] is not None:
            await accounts.set_email(command.connection, account["account_id"], row["email"])
            return
        await accounts.delete_account(command.connection, account["account_id"])
        await command.audit("account.removed", "staff", row["id"], {"email": account["email"]}, {})

    async def ListStaff(self, request: pb.ListStaffRequest, call: identity.Call) -> pb.ListStaffResponse:
        limit = request.limit if request.HasField("limit") else PAGE_MAX
        if not 1 <= limit <= PAGE_MAX:
            raise invalid_request(f"limit must be from 1 to {PAGE_MAX}.", "limit")
        if "\0" in request.words or len(request.words) > WORDS_MAX:
            raise invalid_request(
                f"words must have {WORDS_MAX} characters at most, and not the character NUL.", "words"
            )
        rows = await queries.staff_page(
            self.database,
            identity.company_id(call),
            request.after_id,
            limit + 1,
            request.words.split(),
            request.active if request.HasField("active") else None,
        )
        answer = pb.ListStaffResponse(staff=map(_shown, rows[:limit]))
        if len(rows) > limit:
            answer.next_after_id = rows[limit - 1]["id"]
        return answer


def _given(request: Any) -> dict[str, Any]:
    """The request's fields by name; a cleared field is None. Raises Refusal 400."""
    sent_fields = fields(request, *_SAID)
    checked = bodies.check(MemberFields, sent_fields)
    values = {name: getattr(checked, name) for name in sent_fields}
    if values.get("name", "") is None:
        raise invalid_request("name can't be cleared.", "name")
    if values.get("email") is not None:
        values["email"] = rules.checked(rules.email, values["email"], "email")
    return values


def _no_member() -> Refusal:
    return Refusal(404, "not_found", "The company has no member of staff with that id; check the id.")


def _taken(fault: UniqueViolationError) -> Exception:
    if fault.constraint_name == "account_email":
        return email_taken()
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
    message = pb.Staff(
        staff_id=row["id"],
        source=row["source"],
        active=row["active"],
        invited=row["account_id"] is not None,
        **_audited(row),
    )
    message.created_at.FromDatetime(row["created_at"])
    if row["last_sign_in_at"] is not None:
        message.last_sign_in_at.FromDatetime(row["last_sign_in_at"])
    return message
