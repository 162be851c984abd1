"""The RPCs of identity: companies, their administrators, their keys. The operator's command line calls them."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import asyncpg
from asyncpg import Record

from chassis.auth.identity import ADMINISTRATOR, Call
from chassis.db.database import Connection, Database
from chassis.messaging.outbox import Outbox
from chassis.refusals import Refusal, invalid_request
from chassis.writes.audit import Audit
from gateway.identity import passwords, queries, rules
from makeready.events.v1.events_pb2 import CompanyReference, References
from makeready.identity.v1 import identity_pb2 as pb

Clock = Callable[[], datetime.datetime]
Fields = Mapping[str, Any]
Checked = TypeVar("Checked")

SCOPES = dict(enumerate(rules.SCOPES, start=1))
_SCOPE_NUMBERS = {scope: pb.Scope.ValueType(number) for number, scope in SCOPES.items()}


def _checked(rule: Callable[[str], Checked], value: str) -> Checked:
    try:
        return rule(value)
    except ValueError as error:
        raise invalid_request(str(error)) from None


def no_company() -> Refusal:
    return Refusal(404, "not_found", "No company has that id; list the companies to see their ids.")


def no_key() -> Refusal:
    return Refusal(404, "not_found", "No key has that id; list the company's keys to see their ids.")


def administers(call: Call, company_id: int) -> bool:
    """Whether the caller looks after this company: an administrator after one, the operator after all."""
    return call.identity.kind != ADMINISTRATOR or call.identity.company_id == company_id


class CompaniesService:
    """Companies and their administrators. What other contexts keep of a company goes out as a reference."""

    def __init__(self, database: Database, outbox: Outbox, audit: Audit, clock: Clock) -> None:
        self.database = database
        self.outbox = outbox
        self.audit = audit
        self.clock = clock

    async def CreateCompany(self, request: pb.CreateCompanyRequest, call: Call) -> pb.CreateCompanyResponse:
        name = _checked(rules.name, request.name)
        timezone = _checked(rules.timezone, request.timezone)
        async with self.database.transaction() as connection:
            row = await queries.new_company(connection, name, timezone)
            await self._tell(connection, row, call)
            await self._record(connection, call, "company.created", row["id"], {}, {"name": name, "timezone": timezone})
        self.outbox.wake()
        return pb.CreateCompanyResponse(company=_company(row))

    async def UpdateCompany(self, request: pb.UpdateCompanyRequest, call: Call) -> pb.UpdateCompanyResponse:
        timezone = _checked(rules.timezone, request.timezone) if request.HasField("timezone") else None
        if not administers(call, request.company_id):
            raise no_company()
        if request.HasField("active") and call.identity.kind == ADMINISTRATOR:
            raise Refusal(403, "insufficient_scope", "The operator alone opens and closes a company; leave active out.")
        async with self.database.transaction() as connection:
            row = await queries.company_for_update(connection, request.company_id)
            if row is None:
                raise no_company()
            active: bool = request.active if request.HasField("active") else row["active"]
            wanted: dict[str, Any] = {"active": active, "timezone": timezone or str(row["timezone"])}
            changed = {name: value for name, value in wanted.items() if value != row[name]}
            before = {name: row[name] for name in changed}
            if changed:
                row = await queries.changed_company(connection, row["id"], active, wanted["timezone"])
                await self._tell(connection, row, call)
                await self._record(connection, call, "company.updated", row["id"], before, changed)
                await queries.notify(connection, f"company {row['id']}")
        self.outbox.wake()
        return pb.UpdateCompanyResponse(company=_company(row))

    async def ListCompanies(self, _request: pb.ListCompaniesRequest, _call: Call) -> pb.ListCompaniesResponse:
        return pb.ListCompaniesResponse(companies=map(_company, await queries.companies(self.database)))

    async def CreateAdministrator(
        self, request: pb.CreateAdministratorRequest, call: Call
    ) -> pb.CreateAdministratorResponse:
        email = _checked(rules.email, request.email)
        name = _checked(rules.name, request.name or email.partition("@")[0])
        password = None
        if request.password:
            password = await passwords.hashed(_checked(rules.password, request.password))
        try:
            async with self.database.transaction() as connection:
                if await queries.company(connection, request.company_id) is None:
                    raise no_company()
                found = await queries.new_administrator_id(connection, request.company_id, email, name, password)
                await self.audit.add(
                    connection,
                    call,
                    request.company_id,
                    "administrator.created",
                    "administrator",
                    found,
                    {},
                    {"email": email, "name": name},
                )
        except asyncpg.UniqueViolationError as error:
            if error.constraint_name != "administrator_email":
                raise
            raise invalid_request("An administrator with that email exists; use another email.", status=422) from None
        return pb.CreateAdministratorResponse(administrator_id=found)

    async def _record(
        self, connection: Connection, call: Call, action: str, company_id: int, before: Fields, after: Fields
    ) -> None:
        await self.audit.add(connection, call, company_id, action, "company", company_id, before, after)

    async def _tell(self, connection: Connection, row: Record, call: Call) -> None:
        reference = CompanyReference(
            id=row["id"],
            version=row["version"],
            name=row["name"],
            active=row["active"],
            timezone=row["timezone"],
        )
        event = self.outbox.references(
            References(companies=[reference]),
            company_id=row["id"],
            occurred_at=self.clock(),
            request_id=call.request_id,
        )
        await self.outbox.add(connection, event)


class KeysService:
    """API keys (spec 5). A key is told once, when it is minted; its SHA-256 is stored."""

    def __init__(self, database: Database, audit: Audit) -> None:
        self.database = database
        self.audit = audit

    async def MintKey(self, request: pb.MintKeyRequest, call: Call) -> pb.MintKeyResponse:
        scope = SCOPES.get(request.scope)
        if scope is None:
            raise invalid_request(f"The scope must be one of: {', '.join(rules.SCOPES)}.", status=422)
        name = _checked(rules.name, request.name) if request.name else scope
        email = _checked(rules.email, request.administrator_email) if request.administrator_email else ""
        key = rules.new_key()
        async with self.database.transaction() as connection:
            if not administers(call, request.company_id):
                raise no_company()
            if await queries.company(connection, request.company_id) is None:
                raise no_company()
            administrator_id = call.identity.administrator_id
            if email:
                administrator_id = await queries.administrator_id(connection, request.company_id, email)
                if administrator_id is None:
                    raise Refusal(
                        404, "not_found", "No administrator of that company has that email; create one first."
                    )
            if call.identity.kind == ADMINISTRATOR and administrator_id != call.identity.administrator_id:
                raise invalid_request("An administrator mints keys in their own name; leave the email out.", status=422)
            key_id = await queries.new_key_id(
                connection,
                request.company_id,
                administrator_id=administrator_id,
                name=name,
                prefix=key[: rules.KEY_PREFIX_CHARACTERS],
                digest=hashlib.sha256(key.encode()).digest(),
                scope=scope,
            )
            minted = {"scope": scope, "name": name, "administrator_id": administrator_id}
            await self.audit.add(connection, call, request.company_id, "key.minted", "key", key_id, {}, minted)
        return pb.MintKeyResponse(key_id=key_id, key=key)

    async def RevokeKey(self, request: pb.RevokeKeyRequest, call: Call) -> pb.RevokeKeyResponse:
        async with self.database.transaction() as connection:
            row = await queries.key_for_update(connection, request.key_id)
            if row is None or not administers(call, row["company_id"]):
                raise no_key()
            revoked_at = row["revoked_at"]
            if revoked_at is None:
                revoked_at = await queries.key_revoked_at(connection, row["id"])
                before, after = {"revoked_at": None}, {"revoked_at": revoked_at}
                await self.audit.add(
                    connection, call, row["company_id"], "key.revoked", "key", row["id"], before, after
                )
            # Also where it was revoked before: who repeats the call wants to be sure.
            await queries.notify(connection, f"key {row['id']}")
        return pb.RevokeKeyResponse(key=_key(row, revoked_at))

    async def ListKeys(self, request: pb.ListKeysRequest, call: Call) -> pb.ListKeysResponse:
        if not administers(call, request.company_id):
            raise no_company()
        async with self.database.connection() as connection:
            if await queries.company(connection, request.company_id) is None:
                raise no_company()
            rows = await queries.keys_of_company(connection, request.company_id)
        return pb.ListKeysResponse(keys=[_key(row, row["revoked_at"]) for row in rows])


def _company(row: Record) -> pb.Company:
    found = pb.Company(id=row["id"], name=row["name"], active=row["active"], timezone=row["timezone"])
    found.created_at.FromDatetime(row["created_at"])
    return found


def _key(row: Record, revoked_at: datetime.datetime | None) -> pb.Key:
    found = pb.Key(
        id=row["id"],
        company_id=row["company_id"],
        name=row["name"],
        prefix=row["prefix"],
        scope=_SCOPE_NUMBERS[row["scope"]],
        administrator_email=row["administrator_email"],
    )
    found.created_at.FromDatetime(row["created_at"])
    if revoked_at is not None:
        found.revoked_at.FromDatetime(revoked_at)
    return found
