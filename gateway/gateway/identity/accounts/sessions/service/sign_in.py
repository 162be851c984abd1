"""The RPCs that sign in with a password, and then with a code."""

from __future__ import annotations

from chassis.auth.identity import Call
from gateway.identity.accounts import passwords, people, rules
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts.sessions.service.attempts import SIGN_INS, check_may_enter
from gateway.identity.accounts.sessions.service.rpcs import Rpcs
from gateway.identity.accounts.sessions.service.starts import Newcomer
from makeready.identity.v1 import sessions_pb2 as pb

EMAIL_CHARACTERS_MAX = 200


class SignInRpcs(Rpcs):
    """Sign-ins of people, whom the console asks for a password."""

    async def SignIn(self, request: pb.SignInRequest, call: Call) -> pb.SignInResponse:
        database = self._dependencies.database
        email = request.email.strip().lower()[:EMAIL_CHARACTERS_MAX]
        # NUL can't be stored, so no email contains it.
        account = None if "\0" in email else await accounts.account_by_email(database, email)
        if account is not None and not account["person_active"]:
            account = None
        attempt = await self._attempts.begin(email, request.client, account)
        stored = None if account is None else account["password"]
        if not await self._attempts.matches(request.password, stored, attempt):
            await self._attempts.fail(call, account, request.client, "password")
        assert account is not None
        assert stored is not None
        check_may_enter(account)
        if passwords.is_old(stored):
            stands_alone = len(request.password) >= rules.PASSWORD_CHARACTERS_MIN
            hashed = await self._dependencies.passwords.hashed(request.password, attempt.line)
            await accounts.rehash(database, account["account_id"], stored, hashed, stands_alone)
        newcomer = Newcomer(call, request.client, "password", attempt)
        opened = await self._starts.after_first_factor(newcomer, account)
        if opened.session is None:
            return pb.SignInResponse(step=opened.step)
        return pb.SignInResponse(session=opened.session)

    async def SecondFactor(self, request: pb.SecondFactorRequest, call: Call) -> pb.SecondFactorResponse:
        database, now = self._dependencies.database, self._dependencies.clock()
        digest = rules.digest(request.step)
        step = await accounts.ceremony_by_digest(database, digest, now, "second_factor")
        if step is None:
            raise rules.sign_in_failed()
        account = await accounts.account_by_id(database, step["account_id"])
        if account is None:
            raise rules.sign_in_failed()
        attempt = await self._attempts.begin(account["email"], request.client, account)
        async with database.transaction() as connection:
            locked = await accounts.account_for_update(connection, account["account_id"])
            used = None
            if locked is not None and locked["person_active"]:
                used = await people.uses_code(connection, self._dependencies.totp, locked, request.code, now)
            if used is not None and await accounts.take_ceremony(connection, digest, now, "second_factor"):
                assert locked is not None
                check_may_enter(locked)
                newcomer = Newcomer(call, request.client, f"{step['method']} and code", attempt)
                session = await self._starts.after_all_factors(connection, newcomer, locked)
                codes_left = None
                if used == "recovery":
                    codes_left = await accounts.codes_left(connection, account["account_id"])
                    after = {"recovery_codes_left": codes_left}
                    await self._dependencies.audit.add(connection, call, locked, "account.recovery_code_used", after)
                SIGN_INS.labels("signed in").inc()
                return pb.SecondFactorResponse(session=session, recovery_codes_left=codes_left)
        return await self._attempts.fail(call, account, request.client, "second factor")
