"""How a session begins: after the first factor, or after all of them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from asyncpg import Record

from chassis.auth.identity import ADMINISTRATOR, Call
from chassis.db.database import Connection
from chassis.refusals import Refusal
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts import rules
from gateway.identity.accounts.attempts import Attempt
from gateway.identity.accounts.sessions import queries
from gateway.identity.accounts.sessions.service.attempts import SIGN_INS, SignInAttempts
from gateway.identity.accounts.sessions.service.dependencies import Dependencies
from gateway.identity.accounts.sessions.service.open_sessions import sandbox_of, session_message
from makeready.identity.v1 import sessions_pb2 as pb


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Who signs in: the console's call, the person's browser, and by what."""

    call: Call
    client: pb.Client
    method: str
    attempt: Attempt | None = None
    """None for what cannot be guessed."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that has just begun, or a step before it."""

    session: pb.NewSession | None = None
    step: str = ""


class SessionStarts:
    """Begins sessions, and renews their texts."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._attempts = SignInAttempts(dependencies)

    async def after_first_factor(self, newcomer: Newcomer, account: Record) -> Opened:
        """A session after the first factor; a step, if the account has a second one.

        account: as it was when the factor was proven. Comparing a password takes up to some seconds: if another one was
        set meanwhile, the factor is worth nothing, and a second one that was added meanwhile is asked for.
        """
        now, opened = self._dependencies.clock(), None
        async with self._dependencies.database.transaction() as connection:
            locked = await accounts.account_for_update(connection, account["account_id"])
            is_as_before = locked is not None and locked["password_changed_at"] == account["password_changed_at"]
            if locked is not None and is_as_before and locked["person_active"]:
                opened = await self._open(connection, newcomer, locked)
        if opened is None:
            await self._attempts.fail(newcomer.call, account, newcomer.client, newcomer.method)
        if opened.session is not None:
            SIGN_INS.labels("signed in").inc()
        elif newcomer.attempt is not None:
            await self._dependencies.attempts.take_back(newcomer.attempt, now)
        return opened

    async def _open(self, connection: Connection, newcomer: Newcomer, account: Record) -> Opened:
        """See `after_first_factor`. account: locked by this transaction."""
        if account["totp_since"] is not None:
            step = rules.new_secret()
            await accounts.new_ceremony(
                connection,
                rules.digest(step),
                "second_factor",
                self._dependencies.clock() + rules.CEREMONY,
                account_id=account["account_id"],
                method=newcomer.method,
            )
            return Opened(step=step)
        if account["kind"] == ADMINISTRATOR and account["second_factor_required"] and account["has_passkey"]:
            raise Refusal(
                403,
                "second_factor_required",
                "The company requires a second factor, and yours is a passkey; sign in with it.",
            )
        return Opened(session=await self.after_all_factors(connection, newcomer, account))

    async def after_all_factors(self, connection: Connection, newcomer: Newcomer, account: Record) -> pb.NewSession:
        """Begins a session. account: locked by this transaction."""
        now, text = self._dependencies.clock(), rules.new_secret()
        client = newcomer.client
        address = _storable(client.address, rules.ADDRESS_CHARACTERS_MAX)
        session_id = await queries.new_session(
            connection,
            account["account_id"],
            rules.digest(text),
            now=now,
            ends_at=rules.ends_at(account["kind"], now),
            method=newcomer.method,
            address=address,
            user_agent=_storable(client.user_agent, rules.USER_AGENT_CHARACTERS_MAX),
        )
        # It locks the account, so of two sign-ins at once the later one counts the other's session.
        await accounts.signed_in(connection, account["account_id"], now)
        audit, call = self._dependencies.audit, newcomer.call
        for displaced in await queries.displace(connection, account["account_id"], session_id, now):
            ended = {"session_id": displaced, "why": f"more than {rules.SESSIONS_MAX} sessions"}
            await audit.add(connection, call, account, "session.ended", ended)
        await self._dependencies.attempts.forget(connection, account["email"], newcomer.attempt)
        after = {"session_id": session_id, "method": newcomer.method, "address": address}
        await audit.add(connection, call, account, "session.started", after)
        new_session = await self._with_text(connection, text, None, now)
        new_session.known = self._dependencies.browsers.text_for(client.known, account, now)
        return new_session

    async def confirm_by_passkey(
        self, connection: Connection, call: Call, account: Record, session_id: int, old_text: str
    ) -> pb.NewSession:
        """Confirms the account's session, of which this was the text. Raises Refusal if it is not the account's."""
        now, text = self._dependencies.clock(), rules.new_secret()
        if not await queries.stepped_up_by_id(connection, account["account_id"], session_id, rules.digest(text), now):
            raise rules.sign_in_failed()
        await self._dependencies.audit.add(connection, call, account, "session.confirmed", {"by": "passkey"})
        sandbox = await sandbox_of(connection, account["account_id"], old_text)
        return await self._with_text(connection, text, sandbox, now)

    async def confirm_by_password(
        self, connection: Connection, call: Call, session: Record, old_text: str, now: datetime.datetime
    ) -> pb.NewSession:
        """Confirms the session with this text. Raises Refusal if it has ended."""
        text = rules.new_secret()
        old_digest = rules.digest(rules.without_sandbox(old_text)[0])
        if not await queries.stepped_up(connection, old_digest, rules.digest(text), now):
            raise rules.no_session()
        await self._dependencies.audit.add(connection, call, session, "session.confirmed", {"by": "password"})
        sandbox = await sandbox_of(connection, session["account_id"], old_text)
        return await self._with_text(connection, text, sandbox, now)

    async def _with_text(
        self, connection: Connection, text: str, sandbox: Record | None, now: datetime.datetime
    ) -> pb.NewSession:
        row = await queries.session_by_digest(connection, rules.digest(text))
        assert row is not None
        return pb.NewSession(
            text=rules.in_sandbox(text, None if sandbox is None else sandbox["id"]),
            session=session_message(row, sandbox, row["last_seen_at"], now),
        )


def _storable(value: str, characters: int) -> str:
    """Text of a browser as it can be stored: NUL cannot."""
    return value.replace("\0", "")[:characters]
