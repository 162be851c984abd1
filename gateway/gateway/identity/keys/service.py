"""The RPCs about API keys. The operator's command line calls them."""

from __future__ import annotations

import datetime
import hashlib

from asyncpg import Record

from chassis.auth.identity import ADMINISTRATOR, Call, may_administer
from chassis.db.database import Database
from chassis.refusals import Refusal, invalid_request
from chassis.writes.audit import Audit
from gateway.identity import invalidation
from gateway.identity import rules as identity_rules
from gateway.identity.administrators import queries as administrators
from gateway.identity.companies import queries as companies
from gateway.identity.companies.rules import no_company
from gateway.identity.keys import queries, rules
from gateway.identity.rules import checked
from makeready.identity.v1 import identity_pb2 as pb

SCOPES = dict(enumerate(rules.SCOPES, start=1))
_SCOPE_NUMBERS = {scope: pb.Scope.ValueType(number) for number, scope in SCOPES.items()}


class KeysService:
    """API keys (spec 5). A key is returned once, when it is minted; its SHA-256 is stored."""

    def __init__(self, database: Database, audit: Audit, checks: rules.KeyChecks) -> None:
        self.database = database
        self.audit = audit
        self.checks = checks

    async def MintKey(self, request: pb.MintKeyRequest, call: Call) -> pb.MintKeyResponse:
        scope = SCOPES.get(request.scope)
        if scope is None:
            raise invalid_request(f"The scope must be one of: {', '.join(rules.SCOPES)}.", status=422)
        name = checked(identity_rules.name, request.name) if request.name else scope
        email = checked(identity_rules.email, request.administrator_email) if request.administrator_email else ""
        key = self.checks.new_key()
        async with self.database.transaction() as connection:
            if not may_administer(call, request.company_id):
                raise no_company()
            if await companies.company(connection, request.company_id) is None:
                raise no_company()
            administrator_id = call.identity.administrator_id
            if email:
                administrator_id = await administrators.administrator_id(connection, request.company_id, email)
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
                prefix=rules.visible(key),
                digest=hashlib.sha256(key.encode()).digest(),
                scope=scope,
            )
            minted = {"scope": scope, "name": name, "administrator_id": administrator_id}
            await self.audit.add(connection, call, request.company_id, "key.minted", "key", key_id, {}, minted)
        return pb.MintKeyResponse(key_id=key_id, key=key)

    async def RevokeKey(self, request: pb.RevokeKeyRequest, call: Call) -> pb.RevokeKeyResponse:
        async with self.database.transaction() as connection:
            row = await queries.key_for_update(connection, request.key_id)
            if row is None or not may_administer(call, row["company_id"]):
                raise rules.no_key()
            revoked_at = row["revoked_at"]
            if revoked_at is None:
                revoked_at = await queries.key_revoked_at(connection, row["id"])
                before, after = {"revoked_at": None}, {"revoked_at": revoked_at}
                await self.audit.add(
                    connection, call, row["company_id"], "key.revoked", "key", row["id"], before, after
                )
            # Also if the key was revoked before: a caller that repeats the call wants to be sure.
            await invalidation.notify(connection, f"key {row['id']}")
        return pb.RevokeKeyResponse(key=_key(row, revoked_at))

    async def ListKeys(self, request: pb.ListKeysRequest, call: Call) -> pb.ListKeysResponse:
        if not may_administer(call, request.company_id):
            raise no_company()
        async with self.database.connection() as connection:
            if await companies.company(connection, request.company_id) is None:
                raise no_company()
            rows = await queries.keys_of_company(connection, request.company_id)
        return pb.ListKeysResponse(keys=[_key(row, row["revoked_at"]) for row in rows])


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
