"""The RPCs about a session that is open: what it is, its confirmation, its end."""

from __future__ import annotations

import datetime
from contextlib import suppress

from chassis.auth.identity import Call
from chassis.db.database import ClockSkew
from chassis.refusals import Refusal
from gateway.identity.accounts import people, rules
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts.sessions import queries
from gateway.identity.accounts.sessions.service.attempts import SIGN_INS
from gateway.identity.accounts.sessions.service.open_sessions import (
    any_session,
    is_open,
    open_session,
    sandbox_of,
    session_message,
    was_displaced,
)
from gateway.identity.accounts.sessions.service.rpcs import Rpcs
from makeready.identity.v1 import sessions_pb2 as pb


class SessionRpcs(Rpcs):
    """Sessions. Each is a row that every call reads: one that was ended is over at once, whichever gateway is asked."""

    async def GetSession(self, request: pb.GetSessionRequest, _call: Call) -> pb.GetSessionResponse:
        now = self._dependencies.clock()
        row = await any_session(self._dependencies.database, request.session)
        if row is None or not is_open(row, now):
            return pb.GetSessionResponse(displaced=row is not None and was_displaced(row, now))
        try:
            sandbox = await sandbox_of(self._dependencies.database, row["account_id"], request.session)
        except Refusal:
            return pb.GetSessionResponse()
        last_seen_at = row["last_seen_at"]
        if not request.watches and abs(now - last_seen_at) >= rules.SEEN_EVERY:
            with suppress(ClockSkew):  # people go on reading by a gateway whose clock is wrong
                await queries.seen(self._dependencies.database, row["session_id"], now)
                last_seen_at = now
        return pb.GetSessionResponse(session=session_message(row, sandbox, last_seen_at, now))

    async def StepUp(self, request: pb.StepUpRequest, call: Call) -> pb.StepUpResponse:
        database, now = self._dependencies.database, self._dependencies.clock()
        session = await open_session(database, request.session, now)
        account = await accounts.account_by_id(database, session["account_id"])
        if account is None:
            raise rules.no_session()
        attempt = await self._attempts.begin(session["email"], request.client, account)
        if await self._attempts.matches(request.password, account["password"], attempt):
            async with database.transaction() as connection:
                locked = await accounts.account_for_update(connection, account["account_id"])
                if locked is None:
                    raise rules.no_session()
                needs_code = locked["totp_since"] is not None
                # The password that was compared is still the password.
                is_proven = locked["password"] == account["password"] and (
                    not needs_code
                    or await people.uses_code(connection, self._dependencies.totp, locked, request.code, now)
                    is not None
                )
                if is_proven:
                    confirmed = await self._starts.confirm_by_password(connection, call, session, request.session, now)
                    await self._dependencies.attempts.forget(connection, session["email"], attempt)
                    SIGN_INS.labels("confirmed").inc()
                    return pb.StepUpResponse(session=confirmed)
        return await self._attempts.fail(call, account, request.client, "confirmation")

    async def SignOut(self, request: pb.SignOutRequest, call: Call) -> pb.SignOutResponse:
        async with self._dependencies.database.transaction() as connection:
            secret, _ = rules.without_sandbox(request.session)
            ended = await queries.end_session_by_digest(connection, rules.digest(secret))
            if ended is not None:
                account = await accounts.account_by_id(connection, ended["account_id"])
                assert account is not None
                after = {"session_id": ended["id"]}
                await self._dependencies.audit.add(connection, call, account, "session.ended", after)
        return pb.SignOutResponse()

    async def purge(self, now: datetime.datetime) -> None:
        """Deletes what is over. Any number of processes may do so at once."""
        await self._dependencies.database.check_clock()
        await queries.purge(self._dependencies.database, now)
