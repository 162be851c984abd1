"""The RPCs about administrators, and the one that makes links for all who sign in."""

from __future__ import annotations

from asyncpg import Record, UniqueViolationError

from chassis.auth import identity
from chassis.auth.identity import ADMINISTRATOR, OPERATOR, STAFF, Call
from chassis.db.database import Connection, Database
from chassis.refusals import Refusal, invalid_request
from chassis.writes.commands import Command, CommandRunner
from gateway.identity import rules
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts.links import Links
from gateway.identity.accounts.rules import email_taken, no_account
from gateway.identity.accounts.sessions import queries as sessions
from gateway.identity.administrators import queries
from gateway.identity.rules import checked, no_company
from makeready.identity.v1 import administrators_pb2 as pb
from makeready.identity.v1.sessions_pb2 import Link

_TAKEN = ("administrator_email", "account_email")


class AdministratorsService:
    """Administrators. Each has an account, by which they sign in."""

    def __init__(self, database: Database, commands: CommandRunner, links: Links) -> None:
        self.database = database
        self.commands = commands
        self.links = links

    async def ListAdministrators(
        self, _request: pb.ListAdministratorsRequest, call: Call
    ) -> pb.ListAdministratorsResponse:
        rows = await queries.administrators(self.database, identity.company_id(call))
        return pb.ListAdministratorsResponse(administrators=map(_shown, rows))

    async def InviteAdministrator(
        self, request: pb.InviteAdministratorRequest, call: Call
    ) -> pb.InviteAdministratorResponse:
        email = checked(rules.email, request.email, "email")
        name = checked(rules.name, request.name, "name")

        async def work(command: Command) -> pb.InviteAdministratorResponse:
            try:
                administrator_id = await queries.new_administrator_id(
                    command.connection, command.company_id, email, name
                )
                if administrator_id is None:
                    raise no_company()
                await accounts.new_account(
                    command.connection, command.company_id, email, administrator_id=administrator_id
                )
            except UniqueViolationError as fault:
                raise _taken(fault) from None
            values = {"email": email, "name": name}
            await command.audit("administrator.invited", "administrator", administrator_id, {}, values)
            return pb.InviteAdministratorResponse(administrator=await self._one(command, administrator_id))

        response = await self.commands.run(call, request, pb.InviteAdministratorResponse, work)
        # The stored reply has no link, which is a secret: each request makes a new one, and the last one is good.
        who = response.administrator.administrator_id
        async with self.database.transaction() as connection:
            account = await accounts.account_of(connection, ADMINISTRATOR, identity.company_id(call), who)
            response.link.CopyFrom(await self._link(connection, call, account))
        return response

    async def UpdateAdministrator(
        self, request: pb.UpdateAdministratorRequest, call: Call
    ) -> pb.UpdateAdministratorResponse:
        new = {}
        if request.HasField("name"):
            new["name"] = checked(rules.name, request.name, "name")
        if request.HasField("email"):
            new["email"] = checked(rules.email, request.email, "email")

        async def work(command: Command) -> pb.UpdateAdministratorResponse:
            before = await self._locked(command, request.administrator_id)
            changed = {name: value for name, value in new.items() if value != before[name]}
            if changed:
                try:
                    await queries.change_administrator(
                        command.connection, before["id"], changed.get("name", before["name"]), new.get("email")
                    )
                    account = await accounts.account_of(
                        command.connection, ADMINISTRATOR, command.company_id, before["id"]
                    )
                    if "email" in changed and account is not None:
                        await accounts.set_email(command.connection, account["account_id"], changed["email"])
                except UniqueViolationError as fault:
                    raise _taken(fault) from None
                was = {name: before[name] for name in changed}
                await command.audit("administrator.updated", "administrator", before["id"], was, changed)
            return pb.UpdateAdministratorResponse(administrator=await self._one(command, before["id"]))

        return await self.commands.run(call, request, pb.UpdateAdministratorResponse, work)

    async def DeactivateAdministrator(
        self, request: pb.DeactivateAdministratorRequest, call: Call
    ) -> pb.DeactivateAdministratorResponse:
        if request.administrator_id == call.identity.administrator_id:
            raise invalid_request(
                "An administrator cannot deactivate the own account; ask a colleague.", "administrator_id", status=422
            )

        async def work(command: Command) -> pb.DeactivateAdministratorResponse:
            await self._set_active(command, request.administrator_id, False)
            return pb.DeactivateAdministratorResponse(administrator=await self._one(command, request.administrator_id))

        return await self.commands.run(call, request, pb.DeactivateAdministratorResponse, work)

    async def ReactivateAdministrator(
        self, request: pb.ReactivateAdministratorRequest, call: Call
    ) -> pb.ReactivateAdministratorResponse:
        async def work(command: Command) -> pb.ReactivateAdministratorResponse:
            await self._set_active(command, request.administrator_id, True)
            return pb.ReactivateAdministratorResponse(administrator=await self._one(command, request.administrator_id))

        return await self.commands.run(call, request, pb.ReactivateAdministratorResponse, work)

    async def MakeLink(self, request: pb.MakeLinkRequest, call: Call) -> pb.MakeLinkResponse:
        which = request.WhichOneof("person")
        async with self.database.transaction() as connection:
            if which == "email":
                email = checked(rules.email, request.email, "email")
                account = await accounts.account_by_email(connection, email)
            elif which is not None:
                kind = ADMINISTRATOR if which == "administrator_id" else STAFF
                person_id: int = getattr(request, which)
                account = await accounts.account_of(connection, kind, identity.company_id(call), person_id)
            else:
                raise invalid_request("Name the person whose link it is: email, administrator_id or staff_id.", "email")
            # The operator's token may name no company; a person's always does.
            caller_company_id = call.identity.company_id
            if (
                account is not None
                and account["company_id"] != caller_company_id
                and not (call.identity.kind == OPERATOR and not caller_company_id)
            ):
                account = None
            link = await self._link(connection, call, account, remove_second_factor=request.remove_second_factor)
        return pb.MakeLinkResponse(link=link)

    async def _link(
        self, connection: Connection, call: Call, account: Record | None, *, remove_second_factor: bool = False
    ) -> Link:
        if account is None:
            raise no_account()
        if not account["person_active"]:
            raise Refusal(422, "invalid_request", "This person has been deactivated; reactivate them first.")
        return await self.links.make(connection, call, account, remove_second_factor=remove_second_factor)

    async def _locked(self, command: Command, administrator_id: int) -> Record:
        row = await queries.administrator_for_update(command.connection, command.company_id, administrator_id)
        if row is None:
            raise Refusal(404, "not_found", "The company has no administrator with that id; check the id.")
        return row

    async def _set_active(self, command: Command, administrator_id: int, active: bool) -> None:
        before = await self._locked(command, administrator_id)
        if before["active"] == active:
            return
        await queries.set_active(command.connection, administrator_id, active)
        account = await accounts.account_of(command.connection, ADMINISTRATOR, command.company_id, administrator_id)
        if not active and account is not None:
            await sessions.end_other_sessions(command.connection, account["account_id"], None)
            await accounts.end_links(command.connection, account["account_id"])
        action = "administrator.reactivated" if active else "administrator.deactivated"
        was, now = {"active": not active}, {"active": active}
        await command.audit(action, "administrator", administrator_id, was, now)

    @staticmethod
    async def _one(command: Command, administrator_id: int) -> pb.Administrator:
        rows = await queries.administrators(command.connection, command.company_id)
        return next(_shown(row) for row in rows if row["id"] == administrator_id)


def _taken(fault: UniqueViolationError) -> Exception:
    return email_taken() if fault.constraint_name in _TAKEN else fault


def _shown(row: Record) -> pb.Administrator:
    message = pb.Administrator(
        administrator_id=row["id"],
        name=row["name"],
        email=row["email"],
        active=row["active"],
        has_password=row["has_password"],
        has_totp=row["has_totp"],
        passkeys=row["passkeys"],
    )
    message.created_at.FromDatetime(row["created_at"])
    if row["last_sign_in_at"] is not None:
        message.last_sign_in_at.FromDatetime(row["last_sign_in_at"])
    return message
