"""The RPCs with which people change how they sign in."""

from __future__ import annotations

import datetime

import structlog
from asyncpg import Record, UniqueViolationError
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.auth.identity import ADMINISTRATOR, Call
from chassis.db.database import Connection, Database
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.instants import Clock
from chassis.writes.audit import Audit
from gateway.identity import rules as identity_rules
from gateway.identity.accounts import people, queries, rules, totp
from gateway.identity.accounts.passkeys import Passkeys
from gateway.identity.accounts.passwords import Passwords
from gateway.identity.accounts.people import AccountAudit, account_of_caller
from gateway.identity.accounts.sessions import queries as sessions
from gateway.identity.accounts.totp import TotpSecrets
from gateway.identity.accounts.turns import Line
from gateway.identity.rules import checked
from makeready.identity.v1 import accounts_pb2 as pb

PASSKEY = "Passkey"

log = structlog.stdlib.get_logger(__name__)


class AccountsService:
    """The caller's own account. What could open it to others asks for a confirmation first (`step_up`)."""

    def __init__(
        self,
        database: Database,
        audit: Audit,
        clock: Clock,
        passwords: Passwords,
        secrets: TotpSecrets,
        passkeys: Passkeys,
    ) -> None:
        self.database = database
        self.audit = AccountAudit(audit)
        self.clock = clock
        self.passwords = passwords
        self.secrets = secrets
        self.passkeys = passkeys

    async def adopt(self) -> None:
        """Makes accounts of the administrators that release 0.2.0 made. It goes on doing so while it is replaced."""
        async with self.database.transaction() as connection:
            adopted = await queries.adopt_administrators(connection)
        if adopted:
            log.info("administrators_adopted", accounts=adopted)

    async def GetAccount(self, _request: pb.GetAccountRequest, call: Call) -> pb.GetAccountResponse:
        account = await account_of_caller(self.database, call)
        async with self.database.connection() as connection:
            recovery_codes_left = await queries.codes_left(connection, account["account_id"])
            passkeys = await queries.passkeys(connection, account["account_id"])
        message = pb.Account(
            email=account["email"],
            name=account["name"],
            has_password=account["has_password"],
            recovery_codes_left=recovery_codes_left,
            passkeys=map(_passkey, passkeys),
            second_factor_required=account["second_factor_required"] and account["kind"] == ADMINISTRATOR,
            password_characters_min=rules.password_characters_min(has_second_factor=account["totp_since"] is not None),
        )
        _set(message.password_changed_at, account["password_changed_at"])
        _set(message.totp_since, account["totp_since"])
        return pb.GetAccountResponse(account=message)

    async def ChangePassword(self, request: pb.ChangePasswordRequest, call: Call) -> pb.ChangePasswordResponse:
        account = await account_of_caller(self.database, call)
        hashed, stands_alone = await self.passwords.new(
            request.password,
            Line(call.identity.actor, is_known=True),
            has_second_factor=account["totp_since"] is not None,
            personal_texts=people.personal_texts_of(account),
        )
        async with self.database.transaction() as connection:
            locked = await self._locked(connection, call)
            if not stands_alone and locked["totp_since"] is None:
                raise _too_short_alone("password")
            await queries.set_password(connection, locked["account_id"], hashed, stands_alone, self.clock())
            ended = await sessions.end_other_sessions(connection, locked["account_id"], call.identity.session_id)
            await queries.end_links(connection, locked["account_id"])
            await queries.end_ceremonies(connection, locked["account_id"], "second_factor", "permit")
            await self._note(connection, call, locked, "account.password_changed", {"sessions_ended": ended})
        return pb.ChangePasswordResponse(sessions_ended=ended)

    # Passkeys

    async def StartAddingPasskey(
        self, _request: pb.StartAddingPasskeyRequest, call: Call
    ) -> pb.StartAddingPasskeyResponse:
        account = await account_of_caller(self.database, call)
        present = await queries.passkeys(self.database, account["account_id"])
        challenge, options = self.passkeys.options_to_add(account, present)
        text = rules.new_secret()
        async with self.database.transaction() as connection:
            await queries.end_ceremonies(connection, account["account_id"], "passkey_new")
            await queries.new_ceremony(
                connection,
                rules.digest(text),
                "passkey_new",
                self.clock() + rules.CEREMONY,
                account_id=account["account_id"],
                data=challenge,
            )
        return pb.StartAddingPasskeyResponse(ceremony=text, options_json=options)

    async def FinishAddingPasskey(
        self, request: pb.FinishAddingPasskeyRequest, call: Call
    ) -> pb.FinishAddingPasskeyResponse:
        name = checked(identity_rules.name, request.name or PASSKEY, "name")
        if len(name) > rules.PASSKEY_NAME_CHARACTERS_MAX:
            raise invalid_request(f"The name must be at most {rules.PASSKEY_NAME_CHARACTERS_MAX} characters.", "name")
        digest = rules.digest(request.ceremony)
        ceremony = await queries.take_ceremony(self.database, digest, self.clock(), "passkey_new")
        try:
            async with self.database.transaction() as connection:
                account = await self._locked(connection, call)
                if ceremony is None or ceremony["account_id"] != account["account_id"]:
                    raise invalid_request("That took too long; start to add the passkey again.", "ceremony", status=422)
                if len(await queries.passkeys(connection, account["account_id"])) >= rules.PASSKEYS_MAX:
                    raise invalid_request(
                        f"An account has at most {rules.PASSKEYS_MAX} passkeys; remove one first.", status=422
                    )
                passkey = self.passkeys.added(request.credential_json, ceremony["data"])
                row = await queries.new_passkey(
                    connection,
                    account["account_id"],
                    credential_id=passkey.credential_id,
                    public_key=passkey.public_key,
                    sign_count=passkey.sign_count,
                    name=name,
                    synced=passkey.synced,
                )
                after = {"passkey_id": row["id"], "name": name}
                await self._note(connection, call, account, "account.passkey_added", after)
        except UniqueViolationError as fault:
            if fault.constraint_name != "passkey_credential":
                raise
            raise invalid_request("That passkey is in use already; make another one.", status=422) from None
        return pb.FinishAddingPasskeyResponse(passkey=_passkey(row))

    async def RemovePasskey(self, request: pb.RemovePasskeyRequest, call: Call) -> pb.RemovePasskeyResponse:
        async with self.database.transaction() as connection:
            account = await self._locked(connection, call)
            present = await queries.passkeys(connection, account["account_id"])
            if [passkey["id"] for passkey in present] == [request.passkey_id] and not account["has_password"]:
                raise invalid_request(
                    "This passkey is the only way to sign in; set a password or add another passkey first.",
                    "passkey_id",
                    status=422,
                )
            name = await queries.remove_passkey(connection, account["account_id"], request.passkey_id)
            if name is None:
                raise Refusal(404, "not_found", "The account has no passkey with that id; it may be removed already.")
            before = {"passkey_id": request.passkey_id, "name": name}
            await self._note(connection, call, account, "account.passkey_removed", {}, before)
        return pb.RemovePasskeyResponse()

    # Authenticator app and recovery codes

    async def EnrolTotp(self, _request: pb.EnrolTotpRequest, call: Call) -> pb.EnrolTotpResponse:
        secret = totp.new_secret()
        async with self.database.transaction() as connection:
            account = await self._locked(connection, call)
            await queries.end_ceremonies(connection, account["account_id"], "totp_new")
            await queries.new_ceremony(
                connection,
                rules.digest(rules.new_secret()),
                "totp_new",
                self.clock() + rules.CEREMONY,
                account_id=account["account_id"],
                data=self.secrets.seal(account["account_id"], secret),
            )
        return pb.EnrolTotpResponse(secret=secret, uri=totp.uri(secret, account["email"]))

    async def ConfirmTotp(self, request: pb.ConfirmTotpRequest, call: Call) -> pb.ConfirmTotpResponse:
        now = self.clock()
        async with self.database.transaction() as connection:
            account = await self._locked(connection, call)
            ceremony = await queries.new_totp(connection, account["account_id"], now)
            if ceremony is None:
                raise invalid_request("That took too long; start to add the app again.", status=422)
            secret = self.secrets.open(account["account_id"], ceremony["data"])
            step = totp.step_of(secret, rules.plain_code(request.code), now, last_used=0)
            if step is None:
                raise invalid_request(
                    "That is not the app's code; enter the newest one, and check the phone's clock.", "code", status=422
                )
            await queries.set_totp(connection, account["account_id"], ceremony["data"], step, now)
            await queries.end_ceremonies(connection, account["account_id"], "totp_new", "second_factor")
            codes = await self._new_codes(connection, account)
            await self._note(connection, call, account, "account.totp_added", {"recovery_codes": len(codes)})
        return pb.ConfirmTotpResponse(recovery_codes=codes)

    async def RemoveTotp(self, _request: pb.RemoveTotpRequest, call: Call) -> pb.RemoveTotpResponse:
        async with self.database.transaction() as connection:
            account = await self._locked(connection, call)
            if account["totp_since"] is None:
                return pb.RemoveTotpResponse()
            if account["has_password"] and not account["password_stands_alone"]:
                raise _too_short_alone()
            await queries.set_totp(connection, account["account_id"], None, 0, None)
            await queries.replace_codes(connection, account["account_id"], [])
            await queries.end_ceremonies(connection, account["account_id"], "second_factor")
            await self._note(connection, call, account, "account.totp_removed", {})
        return pb.RemoveTotpResponse()

    async def MakeRecoveryCodes(
        self, _request: pb.MakeRecoveryCodesRequest, call: Call
    ) -> pb.MakeRecoveryCodesResponse:
        async with self.database.transaction() as connection:
            account = await self._locked(connection, call)
            if account["totp_since"] is None:
                raise invalid_request("Recovery codes stand in for an authenticator app; add one first.", status=422)
            codes = await self._new_codes(connection, account)
            await self._note(connection, call, account, "account.recovery_codes_made", {"recovery_codes": len(codes)})
        return pb.MakeRecoveryCodesResponse(recovery_codes=codes)

    # Sessions

    async def ListSessions(self, _request: pb.ListSessionsRequest, call: Call) -> pb.ListSessionsResponse:
        account, now = await account_of_caller(self.database, call), self.clock()
        rows = await sessions.sessions_of(self.database, account["account_id"])
        answer = pb.ListSessionsResponse()
        for row in rows:
            times = {"last_seen_at": row["last_seen_at"], "ends_at": row["ends_at"]}
            if rules.has_ended(account["kind"], **times, now=now):
                continue
            session = answer.sessions.add(
                session_id=row["id"],
                address=row["address"],
                user_agent=row["user_agent"],
                method=row["method"],
                current=row["id"] == call.identity.session_id,
            )
            for name in ("started_at", "last_seen_at", "ends_at"):
                _set(getattr(session, name), row[name])
        return answer

    async def EndSession(self, request: pb.EndSessionRequest, call: Call) -> pb.EndSessionResponse:
        which = request.WhichOneof("which")
        if which is None or (which == "others" and not request.others):
            raise invalid_request("Name the session to end, or others.", "session_id")
        async with self.database.transaction() as connection:
            account = await self._locked(connection, call)
            if which == "others":
                ended = await sessions.end_other_sessions(connection, account["account_id"], call.identity.session_id)
                after: dict[str, object] = {"sessions_ended": ended}
            else:
                ended = int(await sessions.end_session(connection, account["account_id"], request.session_id))
                after = {"session_id": request.session_id}
            if ended:
                await self._note(connection, call, account, "session.ended", after)
        return pb.EndSessionResponse(sessions_ended=ended)

    async def _locked(self, connection: Connection, call: Call) -> Record:
        account = await account_of_caller(connection, call)
        locked = await queries.account_for_update(connection, account["account_id"])
        if locked is None:
            raise rules.no_account()
        return locked

    async def _new_codes(self, connection: Connection, account: Record) -> list[str]:
        codes = [rules.new_recovery_code() for _ in range(rules.RECOVERY_CODES)]
        digests = [rules.digest(rules.plain_code(code)) for code in codes]
        await queries.replace_codes(connection, account["account_id"], digests)
        return codes

    async def _note(
        self,
        connection: Connection,
        call: Call,
        account: Record,
        action: str,
        after: dict[str, object],
        before: dict[str, object] | None = None,
    ) -> None:
        await self.audit.add(connection, call, account, action, after, before, by_person=False)


def _too_short_alone(field: str = "") -> Refusal:
    return invalid_request(
        f"Without a second factor a password needs {rules.PASSWORD_CHARACTERS_MIN} characters; set a longer one first.",
        field,
        status=422,
    )


def _set(field: Timestamp, value: datetime.datetime | None) -> None:
    if value is not None:
        field.FromDatetime(value)


def _passkey(row: Record) -> pb.Passkey:
    message = pb.Passkey(passkey_id=row["id"], name=row["name"], synced=row["synced"])
    _set(message.created_at, row["created_at"])
    _set(message.last_used_at, row["last_used_at"])
    return message
