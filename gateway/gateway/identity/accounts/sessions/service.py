"""The RPCs with which the console signs people in and out."""

from __future__ import annotations

import datetime
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Never

import structlog
from asyncpg import Record
from prometheus_client import Counter

from chassis.auth.identity import ADMINISTRATOR, KINDS, Call, TokenSigner
from chassis.db.database import ClockSkew, Connection, Database
from chassis.refusals import Refusal
from chassis.schedule.instants import Clock
from chassis.writes.audit import Audit
from gateway.identity.accounts import passwords as password_hashes
from gateway.identity.accounts import people, rules
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts.attempts import Attempt, Attempts
from gateway.identity.accounts.known_browsers import KnownBrowsers
from gateway.identity.accounts.passkeys import Passkeys
from gateway.identity.accounts.passwords import Passwords
from gateway.identity.accounts.people import AccountAudit
from gateway.identity.accounts.sessions import queries
from gateway.identity.accounts.signed_texts import SignedTexts
from gateway.identity.accounts.totp import TotpSecrets
from gateway.identity.accounts.turns import Line
from makeready.identity.v1 import accounts_pb2
from makeready.identity.v1 import sessions_pb2 as pb

EMAIL_CHARACTERS_MAX = 200
_ACCOUNTS_SERVICE: str = accounts_pb2.DESCRIPTOR.services_by_name["AccountsService"].full_name
_PASSKEY = "passkey"
# When the ceremony is over, in seconds since 1970, and the session that it is to confirm, 0 for a sign-in. The
# challenge follows.
_CEREMONY = struct.Struct(">QQ")
_PURPOSES = {"invitation": pb.LINK_PURPOSE_INVITATION, "reset": pb.LINK_PURPOSE_RESET}

log = structlog.stdlib.get_logger(__name__)
SIGN_INS = Counter("makeready_sign_ins_total", "Attempts to sign in or to confirm", ["outcome"])


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that has just begun, or a step before it."""

    session: pb.NewSession | None = None
    step: str = ""


class SessionsService:
    """Sessions. Each is a row that every call reads: one that was ended is over at once, whichever gateway is asked."""

    def __init__(
        self,
        database: Database,
        issuer: TokenSigner,
        audit: Audit,
        clock: Clock,
        passwords: Passwords,
        totp: TotpSecrets,
        passkeys: Passkeys,
        texts: SignedTexts,
    ) -> None:
        self.database = database
        self.issuer = issuer
        self.audit = AccountAudit(audit)
        self.clock = clock
        self.passwords = passwords
        self.totp = totp
        self.passkeys = passkeys
        self.texts = texts
        self.attempts = Attempts(database)
        self.browsers = KnownBrowsers(texts)

    async def SignIn(self, request: pb.SignInRequest, call: Call) -> pb.SignInResponse:
        email = request.email.strip().lower()[:EMAIL_CHARACTERS_MAX]
        # NUL can't be stored, so no email contains it.
        account = None if "\0" in email else await accounts.account_by_email(self.database, email)
        if account is not None and not account["person_active"]:
            account = None
        attempt = await self._begin(email, request.client, account)
        stored = None if account is None else account["password"]
        if not await self._matches(request.password, stored, attempt):
            await self._failed(call, account, request.client, "password")
        assert account is not None
        assert stored is not None
        self._check_may_enter(account)
        if password_hashes.is_old(stored):
            stands_alone = len(request.password) >= rules.PASSWORD_CHARACTERS_MIN
            hashed = await self.passwords.hashed(request.password, attempt.line)
            await accounts.rehash(self.database, account["account_id"], stored, hashed, stands_alone)
        opened = await self._open(call, account, request.client, "password", attempt)
        if opened.session is None:
            return pb.SignInResponse(step=opened.step)
        return pb.SignInResponse(session=opened.session)

    async def SecondFactor(self, request: pb.SecondFactorRequest, call: Call) -> pb.SecondFactorResponse:
        now = self.clock()
        digest = rules.digest(request.step)
        step = await accounts.ceremony_by_digest(self.database, digest, now, "second_factor")
        if step is None:
            raise rules.sign_in_failed()
        account = await accounts.account_by_id(self.database, step["account_id"])
        if account is None:
            raise rules.sign_in_failed()
        attempt = await self._begin(account["email"], request.client, account)
        async with self.database.transaction() as connection:
            locked = await accounts.account_for_update(connection, account["account_id"])
            used = None
            if locked is not None and locked["person_active"]:
                used = await people.uses_code(connection, self.totp, locked, request.code, now)
            if used is not None and await accounts.take_ceremony(connection, digest, now, "second_factor"):
                assert locked is not None
                self._check_may_enter(locked)
                method = f"{step['method']} and code"
                session = await self._new(connection, call, locked, request.client, method, attempt)
                left = None
                if used == "recovery":
                    left = await accounts.codes_left(connection, account["account_id"])
                    await self.audit.add(
                        connection, call, locked, "account.recovery_code_used", {"recovery_codes_left": left}
                    )
                SIGN_INS.labels("signed in").inc()
                return pb.SecondFactorResponse(session=session, recovery_codes_left=left)
        return await self._failed(call, account, request.client, "second factor")

    async def StartPasskey(self, request: pb.StartPasskeyRequest, _call: Call) -> pb.StartPasskeyResponse:
        # The challenge is in the text, which a stranger may ask for as often as they like: nothing is stored for it.
        now, session_id = self.clock(), 0
        present: list[Record] = []
        if request.session:
            session = await self._session(request.session, now)
            session_id = session["session_id"]
            present = await accounts.passkeys(self.database, session["account_id"])
            if not present:
                raise rules.sign_in_failed()
        challenge, options = self.passkeys.options_to_use(present)
        content = _CEREMONY.pack(int((now + rules.CEREMONY).timestamp()), session_id) + challenge
        return pb.StartPasskeyResponse(ceremony=self.texts.sign(_PASSKEY, content), options_json=options)

    async def FinishPasskey(self, request: pb.FinishPasskeyRequest, call: Call) -> pb.FinishPasskeyResponse:
        # A passkey cannot be guessed, so no attempt is counted and none has to wait.
        now = self.clock()
        content = self.texts.content(_PASSKEY, request.ceremony) or _CEREMONY.pack(0, 0)
        ends_at, session_id = _CEREMONY.unpack_from(content)
        challenge = content[_CEREMONY.size :]
        if not now.timestamp() < ends_at <= (now + rules.CEREMONY + rules.AHEAD_MAX).timestamp():
            raise rules.sign_in_failed()
        credential_id = self.passkeys.credential_id(request.credential_json)
        account = None
        try:
            async with self.database.transaction() as connection:
                passkey = await accounts.passkey_for_update(connection, credential_id)
                if passkey is None:
                    raise rules.sign_in_failed()
                account = await accounts.account_for_update(connection, passkey["account_id"])
                assert account is not None
                used = self.passkeys.used(request.credential_json, challenge, passkey, account["handle"])
                if not account["person_active"]:
                    raise rules.sign_in_failed()
                self._check_may_enter(account)
                over_at = datetime.datetime.fromtimestamp(ends_at, datetime.UTC)
                if not await accounts.uses_challenge(connection, rules.digest(request.ceremony), over_at, session_id):
                    raise rules.sign_in_failed()
                await accounts.passkey_used(connection, passkey["id"], used.sign_count, used.synced, now)
                if session_id:
                    session = await self._confirmed_by_passkey(connection, call, account, session_id)
                else:
                    session = await self._new(connection, call, account, request.client, "passkey")
        except Refusal as refused:
            if refused.code == "sign_in_failed" and account is not None:
                await self._failed(call, account, request.client, "passkey")
            raise
        SIGN_INS.labels("signed in").inc()
        return pb.FinishPasskeyResponse(session=session)

    async def GetSession(self, request: pb.GetSessionRequest, _call: Call) -> pb.GetSessionResponse:
        now = self.clock()
        row = await self._row(request.session)
        if row is None or not _is_open(row, now):
            return pb.GetSessionResponse(displaced=row is not None and _was_displaced(row, now))
        last_seen_at = row["last_seen_at"]
        if not request.watches and abs(now - last_seen_at) >= rules.SEEN_EVERY:
            with suppress(ClockSkew):  # people go on reading by a gateway whose clock is wrong
                await queries.seen(self.database, row["session_id"], now)
                last_seen_at = now
        return pb.GetSessionResponse(session=_session(row, last_seen_at, now))

    async def StepUp(self, request: pb.StepUpRequest, call: Call) -> pb.StepUpResponse:
        now = self.clock()
        session = await self._session(request.session, now)
        account = await accounts.account_by_id(self.database, session["account_id"])
        if account is None:
            raise rules.no_session()
        attempt = await self._begin(session["email"], request.client, account)
        if await self._matches(request.password, account["password"], attempt):
            async with self.database.transaction() as connection:
                locked = await accounts.account_for_update(connection, account["account_id"])
                if locked is None:
                    raise rules.no_session()
                needs_code = locked["totp_since"] is not None
                # The password that was compared is still the password.
                is_proven = locked["password"] == account["password"] and (
                    not needs_code
                    or await people.uses_code(connection, self.totp, locked, request.code, now) is not None
                )
                if is_proven:
                    text = await self._stepped_up(connection, rules.digest(request.session), now)
                    await self.attempts.forget(connection, session["email"], attempt)
                    await self.audit.add(connection, call, session, "session.confirmed", {"by": "password"})
                    made = await self._with_text(connection, text, now)
                    SIGN_INS.labels("confirmed").inc()
                    return pb.StepUpResponse(session=made)
        return await self._failed(call, account, request.client, "confirmation")

    async def IssueToken(self, request: pb.IssueTokenRequest, _call: Call) -> pb.IssueTokenResponse:
        if request.permit:
            return pb.IssueTokenResponse(token=await self._token_of_permit(request))
        row = await self._session(request.session, self.clock())
        who = people.identity_of(
            row,
            stepped_up_at=int(row["stepped_up_at"].timestamp()),
            session_id=row["session_id"],
            only_service=_ACCOUNTS_SERVICE if people.second_factor_due(row) else "",
        )
        return pb.IssueTokenResponse(token=self.issuer.token(request.audience, who))

    async def MakePermit(self, request: pb.MakePermitRequest, _call: Call) -> pb.MakePermitResponse:
        now = self.clock()
        row = await self._session(request.session, now)
        if row["kind"] != ADMINISTRATOR or people.second_factor_due(row):
            raise rules.no_session()
        text, expires_at = rules.new_secret(), now + rules.PERMIT
        async with self.database.transaction() as connection:  # a clock that is ahead makes no permit
            digest = rules.digest(text)
            await accounts.new_ceremony(connection, digest, "permit", expires_at, account_id=row["account_id"])
        answer = pb.MakePermitResponse(permit=text)
        answer.expires_at.FromDatetime(expires_at)
        return answer

    async def _token_of_permit(self, request: pb.IssueTokenRequest) -> str:
        """A token for the permit's administrator, as they are now. Raises Refusal."""
        now = self.clock()
        permit, account = None, None
        if len(request.permit) <= rules.SECRET_CHARACTERS_MAX:
            permit = await accounts.ceremony_by_digest(self.database, rules.digest(request.permit), now, "permit")
        if permit is not None:
            account = await accounts.account_by_id(self.database, permit["account_id"])
        if account is None or not (account["person_active"] and account["company_active"]):
            raise rules.no_session()
        only = _ACCOUNTS_SERVICE if people.second_factor_due(account) else ""
        who = people.identity_of(account, only_service=only)
        return self.issuer.token(request.audience, who)

    async def SignOut(self, request: pb.SignOutRequest, call: Call) -> pb.SignOutResponse:
        async with self.database.transaction() as connection:
            ended = await queries.end_session_by_digest(connection, rules.digest(request.session))
            if ended is not None:
                account = await accounts.account_by_id(connection, ended["account_id"])
                assert account is not None
                await self.audit.add(connection, call, account, "session.ended", {"session_id": ended["id"]})
        return pb.SignOutResponse()

    async def UseLink(self, request: pb.UseLinkRequest, call: Call) -> pb.UseLinkResponse:
        now, digest = self.clock(), rules.digest(request.link)
        link = await accounts.link_by_digest(self.database, digest, now)
        account = None if link is None else await accounts.account_by_id(self.database, link["account_id"])
        if link is None or account is None or not account["person_active"]:
            raise rules.link_not_valid()
        self._check_may_enter(account)
        has_second_factor = account["totp_since"] is not None and not link["remove_second_factor"]
        answer = pb.UseLinkResponse(
            purpose=_PURPOSES[link["purpose"]],
            name=account["name"],
            email=account["email"],
            company_name=account["company_name"],
            password_characters_min=rules.password_characters_min(has_second_factor=has_second_factor),
        )
        answer.expires_at.FromDatetime(link["expires_at"])
        if not request.HasField("password"):
            return answer
        hashed, stands_alone = await self.passwords.new(
            request.password,
            Line(rules.network(request.client.address)),
            has_second_factor=has_second_factor,
            personal_texts=people.personal_texts_of(account),
        )
        async with self.database.transaction() as connection:
            locked = await accounts.account_for_update(connection, account["account_id"])
            taken = None if locked is None else await accounts.take_link(connection, digest, self.clock())
            if locked is None or taken is None or not locked["person_active"]:
                raise rules.link_not_valid()
            if taken["remove_second_factor"]:
                await accounts.remove_second_factor(connection, locked["account_id"])
            elif not stands_alone and locked["totp_since"] is None:
                raise rules.link_not_valid()
            await accounts.set_password(connection, locked["account_id"], hashed, stands_alone, now)
            ended = await queries.end_other_sessions(connection, locked["account_id"], None)
            await accounts.end_ceremonies(
                connection, locked["account_id"], "second_factor", "totp_new", "passkey_new", "permit"
            )
            await self.attempts.forget(connection, locked["email"])
            after = {"by": taken["purpose"], "sessions_ended": ended}
            if taken["remove_second_factor"]:
                after["second_factor"] = "removed"
            await self.audit.add(connection, call, locked, "account.password_set", after)
        fresh = await accounts.account_by_id(self.database, account["account_id"])
        assert fresh is not None
        opened = await self._open(call, fresh, request.client, "link", None)
        if opened.session is not None:
            answer.session.CopyFrom(opened.session)
        else:
            answer.step = opened.step
        return answer

    async def purge(self, now: datetime.datetime) -> None:
        """Deletes what is over. Any number of processes may do so at once."""
        await self.database.check_clock()
        await queries.purge(self.database, now)

    # How an attempt ends

    async def _begin(self, email: str, client: pb.Client, account: Record | None) -> Attempt:
        """account: whose email it is, if anybody's."""
        now = self.clock()
        browser = None if account is None else self.browsers.browser_of(client.known, account, now)
        try:
            return await self.attempts.begin(email, client.address[: rules.ADDRESS_CHARACTERS_MAX], now, browser)
        except Refusal:
            SIGN_INS.labels("delayed").inc()
            raise

    async def _matches(self, password: str, stored: str | None, attempt: Attempt) -> bool:
        try:
            return await self.passwords.matches(password, stored, attempt.line)
        except Refusal:  # it was not compared
            SIGN_INS.labels("busy").inc()
            await self.attempts.take_back(attempt, self.clock())
            raise

    async def _failed(self, call: Call, account: Record | None, client: pb.Client, at: str) -> Never:
        """Records a failure in the audit log of the person's company; that of an unknown email in the service's log."""
        SIGN_INS.labels("failed").inc()
        address = client.address[: rules.ADDRESS_CHARACTERS_MAX]
        if account is None:
            log.warning("sign_in_failed", at=at, address=address)
        else:
            async with self.database.transaction() as connection:
                after = {"at": at, "address": address}
                await self.audit.add(connection, call, account, "sign_in.failed", after, by_person=False)
        raise rules.sign_in_failed()

    @staticmethod
    def _check_may_enter(account: Record) -> None:
        """Raises Refusal for a person who has proved who they are and may not sign in all the same."""
        if not account["company_active"]:
            raise Refusal(403, "company_inactive", "The company is closed; ask the operator to open it.")

    async def _open(
        self, call: Call, account: Record, client: pb.Client, method: str, attempt: Attempt | None
    ) -> Opened:
        """A session after the first factor; a step, if the account has a second one.

        account: as it was when the factor was proven. Comparing a password takes up to some seconds: if another one was
        set meanwhile, the factor is worth nothing, and a second one that was added meanwhile is asked for.
        """
        now, opened = self.clock(), None
        async with self.database.transaction() as connection:
            locked = await accounts.account_for_update(connection, account["account_id"])
            is_as_before = locked is not None and locked["password_changed_at"] == account["password_changed_at"]
            if locked is not None and is_as_before and locked["person_active"]:
                opened = await self._opened(connection, call, locked, client, method, attempt)
        if opened is None:
            await self._failed(call, account, client, method)
        if opened.session is not None:
            SIGN_INS.labels("signed in").inc()
        elif attempt is not None:
            await self.attempts.take_back(attempt, now)
        return opened

    async def _opened(
        self,
        connection: Connection,
        call: Call,
        account: Record,
        client: pb.Client,
        method: str,
        attempt: Attempt | None,
    ) -> Opened:
        """See `_open`. account: locked by this transaction."""
        if account["totp_since"] is not None:
            step = rules.new_secret()
            await accounts.new_ceremony(
                connection,
                rules.digest(step),
                "second_factor",
                self.clock() + rules.CEREMONY,
                account_id=account["account_id"],
                method=method,
            )
            return Opened(step=step)
        if account["kind"] == ADMINISTRATOR and account["second_factor_required"] and account["has_passkey"]:
            raise Refusal(
                403,
                "second_factor_required",
                "The company requires a second factor, and yours is a passkey; sign in with it.",
            )
        return Opened(session=await self._new(connection, call, account, client, method, attempt))

    async def _new(
        self,
        connection: Connection,
        call: Call,
        account: Record,
        client: pb.Client,
        method: str,
        attempt: Attempt | None = None,
    ) -> pb.NewSession:
        """Begins a session: all factors are proven."""
        now, text = self.clock(), rules.new_secret()
        address = _stored(client.address, rules.ADDRESS_CHARACTERS_MAX)
        session_id = await queries.new_session(
            connection,
            account["account_id"],
            rules.digest(text),
            now=now,
            ends_at=rules.ends_at(account["kind"], now),
            method=method,
            address=address,
            user_agent=_stored(client.user_agent, rules.USER_AGENT_CHARACTERS_MAX),
        )
        # It locks the account, so of two sign-ins at once the later one counts the other's session.
        await accounts.signed_in(connection, account["account_id"], now)
        for displaced in await queries.displace(connection, account["account_id"], session_id, now):
            ended = {"session_id": displaced, "why": f"more than {rules.SESSIONS_MAX} sessions"}
            await self.audit.add(connection, call, account, "session.ended", ended)
        await self.attempts.forget(connection, account["email"], attempt)
        after = {"session_id": session_id, "method": method, "address": address}
        await self.audit.add(connection, call, account, "session.started", after)
        made = await self._with_text(connection, text, now)
        made.known = self.browsers.text_for(client.known, account, now)
        return made

    async def _confirmed_by_passkey(
        self, connection: Connection, call: Call, account: Record, session_id: int
    ) -> pb.NewSession:
        now, text = self.clock(), rules.new_secret()
        if not await queries.stepped_up_by_id(connection, account["account_id"], session_id, rules.digest(text), now):
            raise rules.sign_in_failed()
        await self.audit.add(connection, call, account, "session.confirmed", {"by": "passkey"})
        return await self._with_text(connection, text, now)

    async def _stepped_up(self, connection: Connection, digest: bytes, now: datetime.datetime) -> str:
        text = rules.new_secret()
        if not await queries.stepped_up(connection, digest, rules.digest(text), now):
            raise rules.no_session()
        return text

    async def _with_text(self, connection: Connection, text: str, now: datetime.datetime) -> pb.NewSession:
        row = await queries.session_by_digest(connection, rules.digest(text))
        assert row is not None
        return pb.NewSession(text=text, session=_session(row, row["last_seen_at"], now))

    # Sessions

    async def _row(self, text: str) -> Record | None:
        """The session and its person, over or not."""
        if not text or len(text) > rules.SECRET_CHARACTERS_MAX:
            return None
        return await queries.session_by_digest(self.database, rules.digest(text))

    async def _session(self, text: str, now: datetime.datetime) -> Record:
        row = await self._row(text)
        if row is None or not _is_open(row, now):
            raise rules.no_session()
        return row


def _is_open(row: Record, now: datetime.datetime) -> bool:
    """Whether the session is not over, and its person may still sign in."""
    over = rules.has_ended(row["kind"], last_seen_at=row["last_seen_at"], ends_at=row["ends_at"], now=now)
    return row["person_active"] and row["company_active"] and not over


def _was_displaced(row: Record, now: datetime.datetime) -> bool:
    instants = {name: row[name] for name in ("started_at", "last_seen_at", "ends_at")}
    return rules.was_displaced(row["kind"], **instants, now=now)


def _stored(value: str, characters: int) -> str:
    """Text of a browser as it can be stored: NUL cannot."""
    return value.replace("\0", "")[:characters]


def _session(row: Record, last_seen_at: datetime.datetime, now: datetime.datetime) -> pb.Session:
    found = pb.Session(
        session_id=row["session_id"],
        kind=KINDS[row["kind"]],
        person_id=row["person_id"],
        actor=f"{row['kind']}:{row['person_id']}",
        name=row["name"],
        email=row["email"],
        company_id=row["company_id"],
        company_name=row["company_name"],
        timezone=row["timezone"],
        has_password=row["has_password"],
        has_totp=row["totp_since"] is not None,
        has_passkey=row["has_passkey"],
        second_factor_due=people.second_factor_due(row),
    )
    found.started_at.FromDatetime(row["started_at"])
    found.idle_ends_at.FromDatetime(min(rules.idle_ends_at(row["kind"], last_seen_at), row["ends_at"]))
    found.ends_at.FromDatetime(row["ends_at"])
    if row["stepped_up_at"] - rules.AHEAD_MAX <= now < row["stepped_up_at"] + rules.STEP_UP:
        found.step_up_until.FromDatetime(row["stepped_up_at"] + rules.STEP_UP)
    return found
