"""The RPCs about API keys. The operator's command line and the console call them."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import secrets

from asyncpg import Record

from chassis.auth.identity import ADMINISTRATOR, Call, may_administer
from chassis.db.database import Connection, Database
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.instants import of_request
from chassis.writes.commands import Command, CommandRunner
from gateway.identity import invalidation
from gateway.identity import rules as identity_rules
from gateway.identity.administrators import queries as administrators
from gateway.identity.companies import queries as companies
from gateway.identity.keys import queries, rules
from gateway.identity.rules import checked, no_company
from makeready.identity.v1 import identity_pb2 as pb

SCOPES = dict(enumerate(rules.SCOPES, start=1))
_SCOPE_NUMBERS = {scope: pb.Scope.ValueType(number) for number, scope in SCOPES.items()}


class KeysService:
    """API keys (spec 5). A key is returned when it is minted; its SHA-256 is stored.

    The stored reply to a mint or a rotation has the key's recipe instead of the key, so that the same request, sent
    again, gets the same key without a stored secret.
    """

    def __init__(self, database: Database, commands: CommandRunner, checks: rules.KeyChecks) -> None:
        self.database = database
        self.commands = commands
        self.checks = checks

    async def MintKey(self, request: pb.MintKeyRequest, call: Call) -> pb.MintKeyResponse:
        scope = SCOPES.get(request.scope)
        if scope is None:
            raise invalid_request(f"The scope must be one of: {', '.join(rules.SCOPES)}.", "scope", status=422)
        name = checked(identity_rules.name, request.name, "name") if request.name else scope
        email = ""
        if request.administrator_email:
            email = checked(identity_rules.email, request.administrator_email, "administrator_email")
        requested_end = of_request(request, "expires_at")
        if not may_administer(call, request.company_id) or request.company_id <= 0:
            raise no_company()

        async def work(command: Command) -> pb.MintKeyResponse:
            connection = command.connection
            company = await companies.company(connection, request.company_id)
            if company is None:
                raise no_company()
            expires_at = rules.end_after_mint(requested_end, command.now)
            administrator_id = await _minter(connection, request.company_id, email, call)
            recipe = self.checks.new_recipe(company["is_sandbox"])
            key_id = await self._new_key(command, recipe, administrator_id, name, scope, expires_at)
            return pb.MintKeyResponse(key_id=key_id, key=_stamped(command.now, recipe))

        once = pb.MintKeyRequest()
        once.CopyFrom(request)
        # Without an idempotency key each request is another one.
        once.idempotency_key = request.idempotency_key or secrets.token_hex(16)
        response = await self.commands.run(_about(call, request.company_id), once, pb.MintKeyResponse, work)
        response.key = self._key_of(response.key)
        return response

    async def RotateKey(self, request: pb.RotateKeyRequest, call: Call) -> pb.RotateKeyResponse:
        rules.check_overlap(request.overlap_days)
        requested_end = of_request(request, "expires_at")
        company_id = (await self._one(request.key_id, call))["company_id"]

        async def work(command: Command) -> pb.RotateKeyResponse:
            connection, now = command.connection, command.now
            await queries.key_for_update(connection, request.key_id)
            # Read under the lock: another rotation may have committed while this one waited for it.
            old = await queries.key(connection, request.key_id)
            assert old is not None, "keys are never deleted"
            rules.check_rotation(old["revoked_at"], old["expires_at"], old["replaced_by"], now)
            administrator_id = old["administrator_id"]
            if call.identity.kind == ADMINISTRATOR:
                administrator_id = call.identity.administrator_id
            recipe = self.checks.new_recipe(old["is_sandbox"])
            expires_at = rules.end_after_rotation(requested_end, old["created_at"], old["expires_at"], now)
            new_id = await self._new_key(
                command, recipe, administrator_id, old["name"], old["scope"], expires_at, replaces=old["id"]
            )
            before: dict[str, object] = {"replaced_by": None}
            after: dict[str, object] = {"replaced_by": new_id}
            if request.overlap_days:
                end = now + datetime.timedelta(days=request.overlap_days)
                if old["expires_at"] is None or end < old["expires_at"]:
                    await queries.set_expiry(connection, old["id"], end)
                    before["expires_at"], after["expires_at"] = old["expires_at"], end
            else:
                before["revoked_at"] = None
                after["revoked_at"] = await queries.key_revoked_at(connection, old["id"])
            await command.audit("key.rotated", "key", old["id"], before, after)
            await invalidation.notify(connection, f"key {old['id']}")
            rows = [await queries.key(connection, key_id) for key_id in (new_id, old["id"])]
            messages = [_key(row) for row in rows if row is not None]
            return pb.RotateKeyResponse(new_key=messages[0], key=_stamped(now, recipe), old_key=messages[1])

        response = await self.commands.run(_about(call, company_id), request, pb.RotateKeyResponse, work)
        response.key = self._key_of(response.key)
        return response

    async def RevokeKey(self, request: pb.RevokeKeyRequest, call: Call) -> pb.RevokeKeyResponse:
        async with self.database.transaction() as connection:
            row = await queries.key_for_update(connection, request.key_id)
            if row is None or not may_administer(call, row["company_id"]):
                raise rules.no_key()
            key = _key(row)
            if row["revoked_at"] is None:
                revoked_at = await queries.key_revoked_at(connection, row["id"])
                key.revoked_at.FromDatetime(revoked_at)
                before, after = {"revoked_at": None}, {"revoked_at": revoked_at}
                await self.commands.audit.add(
                    connection, call, row["company_id"], "key.revoked", "key", row["id"], before, after
                )
            # Also if the key was revoked before: a caller that repeats the call wants to be sure.
            await invalidation.notify(connection, f"key {row['id']}")
        return pb.RevokeKeyResponse(key=key)

    async def TakeOverKeys(self, request: pb.TakeOverKeysRequest, call: Call) -> pb.TakeOverKeysResponse:
        email = ""
        if request.administrator_email:
            email = checked(identity_rules.email, request.administrator_email, "administrator_email")
        company_id, minter_id = await self._whose(request, call)

        async def work(command: Command) -> pb.TakeOverKeysResponse:
            connection = command.connection
            rows = await self._locked(command, request.key_id, minter_id)
            for row in rows:
                rules.check_take_over(row["revoked_at"], row["expires_at"], row["administrator_active"], command.now)
            taker_id = await _taker(connection, company_id, email, call)
            for row in rows:
                await queries.set_administrator(connection, row["id"], taker_id)
                before, after = {"administrator_id": row["administrator_id"]}, {"administrator_id": taker_id}
                await command.audit("key.taken_over", "key", row["id"], before, after)
            # Requests from now on name the new administrator.
            await invalidation.notify(connection, f"company {company_id}")
            taken_over = await queries.keys(connection, [row["id"] for row in rows])
            return pb.TakeOverKeysResponse(keys=map(_key, taken_over))

        return await self.commands.run(_about(call, company_id), request, pb.TakeOverKeysResponse, work)

    async def RevokeKeys(self, request: pb.RevokeKeysRequest, call: Call) -> pb.RevokeKeysResponse:
        company_id, minter_id = await self._whose(request, call)

        async def work(command: Command) -> pb.RevokeKeysResponse:
            connection = command.connection
            rows = await self._locked(command, request.key_id, minter_id)
            for row in rows:
                if row["revoked_at"] is None:
                    before, after = (
                        {"revoked_at": None},
                        {"revoked_at": await queries.key_revoked_at(connection, row["id"])},
                    )
                    await command.audit("key.revoked", "key", row["id"], before, after)
            await invalidation.notify(connection, f"company {company_id}")
            revoked = await queries.keys(connection, [row["id"] for row in rows])
            return pb.RevokeKeysResponse(keys=map(_key, revoked))

        return await self.commands.run(_about(call, company_id), request, pb.RevokeKeysResponse, work)

    async def GetKey(self, request: pb.GetKeyRequest, call: Call) -> pb.GetKeyResponse:
        return pb.GetKeyResponse(key=_key(await self._one(request.key_id, call)))

    async def ListKeys(self, request: pb.ListKeysRequest, call: Call) -> pb.ListKeysResponse:
        limit = request.limit if request.HasField("limit") else rules.KEYS_A_PAGE
        if not 1 <= limit <= rules.KEYS_A_PAGE:
            raise invalid_request(f"limit must be from 1 to {rules.KEYS_A_PAGE}.", "limit")
        async with self.database.connection() as connection:
            await companies.administered_company(connection, request.company_id, call)
            rows = await queries.keys_page(
                connection,
                request.company_id,
                request.after_id,
                limit + 1,
                active_only=request.active_only,
                administrator_id=request.administrator_id if request.HasField("administrator_id") else None,
            )
        answer = pb.ListKeysResponse(keys=map(_key, rows[:limit]))
        if len(rows) > limit:
            answer.next_after_id = rows[limit - 1]["id"]
        return answer

    async def _one(self, key_id: int, call: Call) -> Record:
        """Raises Refusal 404, also for a key of a company that the caller does not administer."""
        async with self.database.connection() as connection:
            row = await queries.key(connection, key_id)
        if row is None or not may_administer(call, row["company_id"]):
            raise rules.no_key()
        return row

    async def _whose(self, request: pb.TakeOverKeysRequest | pb.RevokeKeysRequest, call: Call) -> tuple[int, int]:
        """The company of the keys that the request names, and the administrator; 0 if it names one key. Raises Refusal,
        404 also for those of a company that the caller does not administer."""
        which = request.WhichOneof("keys")
        if which == "key_id":
            return (await self._one(request.key_id, call))["company_id"], 0
        async with self.database.connection() as connection:
            if which == "of_email":
                email = checked(identity_rules.email, request.of_email, "of_email")
                row = await administrators.administrator(connection, email)
            elif which == "of_administrator_id":
                row = await administrators.administrator_by_id(connection, request.of_administrator_id)
            else:
                raise invalid_request("Name a key, or the administrator whose keys they are.", "key_id")
            if row is None:
                raise rules.no_administrator()
            # Keys in a sandbox may be of administrators of the live company.
            company_id = call.identity.company_id if call.identity.kind == ADMINISTRATOR else row["company_id"]
            if await administrators.id_of_administrator(connection, company_id, administrator_id=row["id"]) is None:
                raise rules.no_administrator()
        return company_id, row["id"]

    @staticmethod
    async def _locked(command: Command, key_id: int, administrator_id: int) -> list[Record]:
        """The key, or all working ones of the administrator, ascending by id, locked."""
        ids = [key_id]
        if administrator_id:
            ids = await queries.working_keys_for_update(command.connection, command.company_id, administrator_id)
        else:
            await queries.key_for_update(command.connection, key_id)
        # Read under the lock: another act may have committed while this one waited for it.
        return await queries.keys(command.connection, ids)

    async def _new_key(
        self,
        command: Command,
        recipe: str,
        administrator_id: int | None,
        name: str,
        scope: str,
        expires_at: datetime.datetime | None,
        replaces: int | None = None,
    ) -> int:
        """Stores the key of a new recipe; returns its id."""
        key = self.checks.key_of(recipe)
        assert key is not None, "a new recipe is of a known ring"
        new_key = queries.NewKey(
            company_id=command.company_id,
            administrator_id=administrator_id,
            name=name,
            prefix=rules.visible(key),
            digest=hashlib.sha256(key.encode()).digest(),
            scope=scope,
            expires_at=expires_at,
            replaces=replaces,
        )
        key_id = await queries.new_key_id(command.connection, new_key)
        minted: dict[str, object] = {"scope": scope, "name": name, "administrator_id": administrator_id}
        minted |= {"expires_at": expires_at} if expires_at else {}
        minted |= {"replaces": replaces} if replaces else {}
        await command.audit("key.minted", "key", key_id, {}, minted)
        return key_id

    def _key_of(self, stamped: str) -> str:
        """The key of a stored reply; empty if the reply is too old, or if its ring is not known any longer."""
        stamp, _, recipe = stamped.partition(" ")
        is_fresh = self.commands.clocks.real().timestamp() - int(stamp) < rules.AGAIN.total_seconds()
        return (self.checks.key_of(recipe) or "") if is_fresh else ""


def _stamped(now: datetime.datetime, recipe: str) -> str:
    """What a stored reply has in place of the key: when it was minted, and its recipe."""
    return f"{int(now.timestamp())} {recipe}"


def _about(call: Call, company_id: int) -> Call:
    """The call as one about this company: the operator's token names none."""
    return Call(dataclasses.replace(call.identity, company_id=company_id), call.request_id)


async def _minter(connection: Connection, company_id: int, email: str, call: Call) -> int | None:
    """The administrator on record as the key's minter. Raises Refusal."""
    administrator_id = call.identity.administrator_id
    if email:
        administrator_id = await administrators.id_of_administrator(connection, company_id, email=email)
        if administrator_id is None:
            raise Refusal(404, "not_found", "No administrator of that company has that email; create one first.")
    if call.identity.kind == ADMINISTRATOR and administrator_id != call.identity.administrator_id:
        raise invalid_request(
            "An administrator mints keys and takes them over in their own name; leave the email out.", status=422
        )
    return administrator_id


async def _taker(connection: Connection, company_id: int, email: str, call: Call) -> int:
    """The administrator who takes keys over. Raises Refusal."""
    administrator_id = await _minter(connection, company_id, email, call)
    row = None if administrator_id is None else await administrators.administrator_by_id(connection, administrator_id)
    if row is None:
        raise invalid_request("administrator_email must name who takes the keys over.", "administrator_email")
    if not row["active"]:
        raise invalid_request(
            "Who takes the keys over must not be deactivated; name another one.", "administrator_email", status=422
        )
    return int(row["id"])


def _key(row: Record) -> pb.Key:
    message = pb.Key(
        id=row["id"],
        company_id=row["company_id"],
        name=row["name"],
        prefix=row["prefix"],
        scope=_SCOPE_NUMBERS[row["scope"]],
        administrator_email=row["administrator_email"],
        administrator_id=row["administrator_id"],
        administrator_name=row["administrator_name"],
        administrator_active=row["administrator_active"],
        replaced_by=row["replaced_by"],
        replaces=row["replaces"],
        last_used_address=row["last_used_address"],
        last_used_for=row["last_used_for"],
    )
    for name in ("created_at", "revoked_at", "expires_at", "last_used_at"):
        if row[name] is not None:
            getattr(message, name).FromDatetime(row[name])
    return message
