"""The RPCs that sign in, or confirm, with a passkey."""

from __future__ import annotations

import datetime
import struct

from asyncpg import Record

from chassis.auth.identity import Call
from chassis.refusals import Refusal
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts import rules
from gateway.identity.accounts.sessions.service.attempts import SIGN_INS, check_may_enter
from gateway.identity.accounts.sessions.service.open_sessions import open_session
from gateway.identity.accounts.sessions.service.rpcs import Rpcs
from gateway.identity.accounts.sessions.service.starts import Newcomer
from makeready.identity.v1 import sessions_pb2 as pb

_PASSKEY = "passkey"
# When the ceremony is over, in seconds since 1970, and the session that it is to confirm, 0 for a sign-in. The
# challenge follows.
_CEREMONY = struct.Struct(">QQ")


class PasskeyRpcs(Rpcs):
    """A passkey cannot be guessed, so no attempt is counted and none has to wait."""

    async def StartPasskey(self, request: pb.StartPasskeyRequest, _call: Call) -> pb.StartPasskeyResponse:
        # The challenge is in the text, which a stranger may ask for as often as they like: nothing is stored for it.
        database = self._dependencies.database
        now, session_id = self._dependencies.clock(), 0
        present: list[Record] = []
        if request.session:
            session = await open_session(database, request.session, now)
            session_id = session["session_id"]
            present = await accounts.passkeys(database, session["account_id"])
            if not present:
                raise rules.sign_in_failed()
        challenge, options = self._dependencies.passkeys.options_to_use(present)
        content = _CEREMONY.pack(int((now + rules.CEREMONY).timestamp()), session_id) + challenge
        ceremony = self._dependencies.texts.sign(_PASSKEY, content)
        return pb.StartPasskeyResponse(ceremony=ceremony, options_json=options)

    async def FinishPasskey(self, request: pb.FinishPasskeyRequest, call: Call) -> pb.FinishPasskeyResponse:
        now, passkeys = self._dependencies.clock(), self._dependencies.passkeys
        content = self._dependencies.texts.content(_PASSKEY, request.ceremony) or _CEREMONY.pack(0, 0)
        ends_at, session_id = _CEREMONY.unpack_from(content)
        challenge = content[_CEREMONY.size :]
        if not now.timestamp() < ends_at <= (now + rules.CEREMONY + rules.AHEAD_MAX).timestamp():
            raise rules.sign_in_failed()
        credential_id = passkeys.credential_id(request.credential_json)
        account = None
        try:
            async with self._dependencies.database.transaction() as connection:
                passkey = await accounts.passkey_for_update(connection, credential_id)
                if passkey is None:
                    raise rules.sign_in_failed()
                account = await accounts.account_for_update(connection, passkey["account_id"])
                assert account is not None
                used = passkeys.used(request.credential_json, challenge, passkey, account["handle"])
                if not account["person_active"]:
                    raise rules.sign_in_failed()
                check_may_enter(account)
                over_at = datetime.datetime.fromtimestamp(ends_at, datetime.UTC)
                if not await accounts.uses_challenge(connection, rules.digest(request.ceremony), over_at, session_id):
                    raise rules.sign_in_failed()
                await accounts.passkey_used(connection, passkey["id"], used.sign_count, used.synced, now)
                if session_id:
                    session = await self._starts.confirm_by_passkey(
                        connection, call, account, session_id, request.session
                    )
                else:
                    newcomer = Newcomer(call, request.client, "passkey")
                    session = await self._starts.after_all_factors(connection, newcomer, account)
        except Refusal as refused:
            if refused.code == "sign_in_failed" and account is not None:
                await self._attempts.fail(call, account, request.client, "passkey")
            raise
        SIGN_INS.labels("signed in").inc()
        return pb.FinishPasskeyResponse(session=session)
