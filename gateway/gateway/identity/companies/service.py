"""The RPCs about companies and the creation of their administrators. The operator's command line calls them."""

from __future__ import annotations

from collections.abc import Mapping

import asyncpg
from asyncpg import Record

from chassis.auth.identity import ADMINISTRATOR, Call, may_administer
from chassis.db.database import Connection, Database
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.instants import Clock
from chassis.writes.commands import Command, CommandRunner
from gateway.identity import invalidation, rules
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts.passwords import Passwords
from gateway.identity.accounts.turns import Line
from gateway.identity.administrators import queries as administrators
from gateway.identity.companies import queries
from gateway.identity.companies.references import company_reference
from gateway.identity.companies.rules import (
    COPY,
    DEMO,
    EMPTY,
    SANDBOXES_MAX,
    check_content,
    check_is_sandbox,
    check_new_sandbox,
    check_owner,
    external_id_taken,
    has_external_id,
)
from gateway.identity.companies.rules import external_id as external_id_rule
from gateway.identity.companies.rules import timezone as timezone_rule
from gateway.identity.rules import checked, no_company
from makeready.identity.v1 import identity_pb2 as pb

Fields = Mapping[str, object]

_CONTENTS = {pb.SANDBOX_CONTENT_EMPTY: EMPTY, pb.SANDBOX_CONTENT_COPY: COPY, pb.SANDBOX_CONTENT_DEMO: DEMO}


class CompaniesService:
    """Companies and their administrators. Publishes a reference of each company, which other contexts keep as a
    replica."""

    def __init__(self, database: Database, commands: CommandRunner, clock: Clock, passwords: Passwords) -> None:
        self.database = database
        self.commands = commands
        self.outbox, self.audit = commands.outbox, commands.audit
        self.clock = clock
        self.passwords = passwords

    async def CreateCompany(self, request: pb.CreateCompanyRequest, call: Call) -> pb.CreateCompanyResponse:
        name = checked(rules.name, request.name)
        timezone = checked(timezone_rule, request.timezone)
        external_id = checked(external_id_rule, request.external_id, "external_id") if request.external_id else None
        sandbox_of = request.sandbox_of if request.HasField("sandbox_of") else None
        if sandbox_of is not None and not request.is_sandbox:
            raise invalid_request(
                "Only a sandbox is of another company; leave sandbox_of out.", "sandbox_of", status=422
            )
        content = _CONTENTS.get(request.content, EMPTY)
        new = queries.NewCompany(name, timezone, external_id, request.is_sandbox, sandbox_of, content)
        if call.identity.kind == ADMINISTRATOR:
            check_new_sandbox(request.is_sandbox, external_id)
            if sandbox_of not in (None, call.identity.company_id):
                raise no_company()
            new = new._replace(sandbox_of=call.identity.company_id)

            async def work(command: Command) -> pb.CreateCompanyResponse:
                row = await self._created(command.connection, new, call, is_zoned=bool(request.timezone))
                await command.audit("sandbox.created", "company", row["id"], {}, {"name": name})
                return pb.CreateCompanyResponse(company=_company(row))

            return await self.commands.run(call, request, pb.CreateCompanyResponse, work)
        async with self.database.transaction() as connection:
            row = await self._created(connection, new, call, is_zoned=bool(request.timezone))
        self.outbox.wake()
        return pb.CreateCompanyResponse(company=_company(row))

    async def _created(self, connection: Connection, new: queries.NewCompany, call: Call, *, is_zoned: bool) -> Record:
        """The new company, or the one that has its external id. is_zoned: whether its timezone was named."""
        check_content(new.content, new.is_sandbox, new.sandbox_of is not None)
        live = None
        if new.sandbox_of is not None:
            # Locked, so that two sandboxes that are made at once count each other.
            live = await queries.company_for_update(connection, new.sandbox_of)
            if live is None:
                raise no_company()
            if not is_zoned:
                new = new._replace(timezone=live["timezone"])
        row = await queries.new_company(connection, new)
        if row is None:
            assert new.external_id is not None, "a company without an external id conflicts with none"
            return await queries.company_by_external_id(connection, new.external_id)
        if live is not None:
            check_owner(live["is_sandbox"], await queries.count_sandboxes(connection, live["id"]))
        await self.outbox.add(connection, company_reference(self.outbox, row, self.clock(), call.request_id))
        created: dict[str, object] = {"name": new.name, "timezone": new.timezone}
        created |= {"external_id": new.external_id} if new.external_id else {}
        if new.is_sandbox:
            created |= {"is_sandbox": True, "sandbox_of": new.sandbox_of, "content": new.content}
        await self._audit(connection, call, "company.created", row["id"], {}, created)
        return row

    async def UpdateCompany(self, request: pb.UpdateCompanyRequest, call: Call) -> pb.UpdateCompanyResponse:
        timezone = checked(timezone_rule, request.timezone, "timezone") if request.HasField("timezone") else None
        name = checked(rules.name, request.name, "name") if request.HasField("name") else None
        external_id = None
        if request.HasField("external_id"):
            external_id = checked(external_id_rule, request.external_id, "external_id")
        if not may_administer(call, request.company_id):
            raise no_company()
        if call.identity.kind == ADMINISTRATOR:
            if request.HasField("active"):
                raise Refusal(
                    403, "insufficient_scope", "The operator alone opens and closes a company; leave active out."
                )
            if external_id is not None:
                raise Refusal(403, "insufficient_scope", "The operator alone gives an external_id; leave it out.")
        try:
            row = await self._updated(request, name, timezone, external_id, call)
        except asyncpg.UniqueViolationError as error:
            if error.constraint_name != "company_external_id":
                raise
            raise external_id_taken() from None
        self.outbox.wake()
        return pb.UpdateCompanyResponse(company=_company(row))

    async def _updated(
        self,
        request: pb.UpdateCompanyRequest,
        name: str | None,
        timezone: str | None,
        external_id: str | None,
        call: Call,
    ) -> Record:
        async with self.database.transaction() as connection:
            row = await queries.company_for_update(connection, request.company_id)
            if row is None or row["ended_at"] is not None:
                raise no_company()
            required = row["second_factor_required"]
            if request.HasField("second_factor_required"):
                required = request.second_factor_required
            settings = queries.CompanySettings(
                name=name or row["name"],
                active=request.active if request.HasField("active") else row["active"],
                timezone=timezone or row["timezone"],
                second_factor_required=required,
                external_id=external_id or row["external_id"],
            )
            if row["external_id"] not in (None, settings.external_id):
                raise has_external_id()
            changed = {field: value for field, value in settings._asdict().items() if value != row[field]}
            before = {field: row[field] for field in changed}
            if changed:
                row = await queries.changed_company(connection, row["id"], settings)
                await self.outbox.add(connection, company_reference(self.outbox, row, self.clock(), call.request_id))
                await self._audit(connection, call, "company.updated", row["id"], before, changed)
                await invalidation.notify(connection, f"company {row['id']}")
        return row

    async def EndSandbox(self, request: pb.EndSandboxRequest, call: Call) -> pb.EndSandboxResponse:
        async with self.database.transaction() as connection:
            row = await queries.company_for_update(connection, request.company_id)
            if row is None or not _may_end(call, row):
                raise no_company()
            check_is_sandbox(row["is_sandbox"])
            if row["ended_at"] is None:
                before = {"active": row["active"], "external_id": row["external_id"]}
                row = await queries.ended_company(connection, row["id"])
                await self.outbox.add(connection, company_reference(self.outbox, row, self.clock(), call.request_id))
                # In the log of the live company: that of the sandbox is deleted with it.
                after = {"active": False, "external_id": None, "ended_at": row["ended_at"]}
                logged_in = row["sandbox_of"] or row["id"]
                await self.audit.add(connection, call, logged_in, "sandbox.ended", "company", row["id"], before, after)
                await invalidation.notify(connection, f"company {row['id']}")
        self.outbox.wake()
        return pb.EndSandboxResponse(company=_company(row))

    async def ListSandboxesToPurge(
        self, _request: pb.ListSandboxesToPurgeRequest, _call: Call
    ) -> pb.ListSandboxesToPurgeResponse:
        rows = await queries.sandboxes_to_purge(self.database)
        return pb.ListSandboxesToPurgeResponse(company_ids=[row["id"] for row in rows])

    async def ReportSandboxPurge(
        self, request: pb.ReportSandboxPurgeRequest, _call: Call
    ) -> pb.ReportSandboxPurgeResponse:
        await queries.note_console_purge(self.database, request.company_id, request.left)
        return pb.ReportSandboxPurgeResponse()

    async def GetCompany(self, request: pb.GetCompanyRequest, call: Call) -> pb.GetCompanyResponse:
        if not may_administer(call, request.company_id):
            raise no_company()
        async with self.database.connection() as connection:
            row = await queries.company_even_ended(connection, request.company_id)
        if row is None:
            raise no_company()
        return pb.GetCompanyResponse(company=_company(row))

    async def ListSandboxes(self, _request: pb.ListSandboxesRequest, call: Call) -> pb.ListSandboxesResponse:
        async with self.database.connection() as connection:
            # Their own company, also while they work in a sandbox of it.
            administrator = await administrators.administrator_by_id(connection, call.identity.administrator_id or 0)
            if administrator is None:
                raise no_company()
            rows = await queries.sandboxes(connection, administrator["company_id"])
        return pb.ListSandboxesResponse(sandboxes=map(_company, rows), sandboxes_max=SANDBOXES_MAX)

    async def ListCompanies(self, _request: pb.ListCompaniesRequest, _call: Call) -> pb.ListCompaniesResponse:
        return pb.ListCompaniesResponse(companies=map(_company, await queries.companies(self.database)))

    async def CreateAdministrator(
        self, request: pb.CreateAdministratorRequest, call: Call
    ) -> pb.CreateAdministratorResponse:
        email = checked(rules.email, request.email)
        name = checked(rules.name, request.name or email.partition("@")[0])
        password = None
        if request.password:
            password, _ = await self.passwords.new(
                request.password,
                Line(call.identity.actor, is_known=True),
                has_second_factor=False,
                personal_texts=(email, name),
                status=400,
            )
        try:
            async with self.database.transaction() as connection:
                administrator_id = await administrators.new_administrator_id(
                    connection, request.company_id, email, name
                )
                if administrator_id is None:
                    raise no_company()
                await accounts.new_account(
                    connection,
                    request.company_id,
                    email,
                    administrator_id=administrator_id,
                    password=password,
                    stands_alone=password is not None,
                    now=self.clock(),
                )
                await self.audit.add(
                    connection,
                    call,
                    request.company_id,
                    "administrator.created",
                    "administrator",
                    administrator_id,
                    {},
                    {"email": email, "name": name},
                )
        except asyncpg.UniqueViolationError as error:
            if error.constraint_name not in ("administrator_email", "account_email"):
                raise
            raise invalid_request("An administrator with that email exists; use another email.", status=422) from None
        return pb.CreateAdministratorResponse(administrator_id=administrator_id)

    async def _audit(
        self, connection: Connection, call: Call, action: str, company_id: int, before: Fields, after: Fields
    ) -> None:
        await self.audit.add(connection, call, company_id, action, "company", company_id, before, after)


def _may_end(call: Call, row: Record) -> bool:
    """Administrators end the sandboxes of their own company, also from within."""
    return may_administer(call, row["id"]) or call.identity.company_id == row["sandbox_of"]


def _company(row: Record) -> pb.Company:
    message = pb.Company(
        id=row["id"],
        name=row["name"],
        active=row["active"],
        timezone=row["timezone"],
        second_factor_required=row["second_factor_required"],
        external_id=row["external_id"] or "",
        is_sandbox=row["is_sandbox"],
        sandbox_of=row["sandbox_of"],
    )
    message.clock_offset.FromTimedelta(row["clock_offset"])
    if row["is_sandbox"]:
        message.content = next(value for value, content in _CONTENTS.items() if content == row["content"])
    if row["filled_at"] is not None:
        message.filled_at.FromDatetime(row["filled_at"])
    if row["ended_at"] is not None:
        message.ended_at.FromDatetime(row["ended_at"])
    if row["purged_at"] is not None:
        message.purged_at.FromDatetime(row["purged_at"])
    message.created_at.FromDatetime(row["created_at"])
    return message
