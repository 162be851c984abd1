"""The RPCs that give the console tokens to act as the people who are signed in."""

from __future__ import annotations

from chassis.auth.identity import ADMINISTRATOR, Call
from gateway.identity.accounts import people, rules
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts.sessions.service.open_sessions import open_session, sandbox_of
from gateway.identity.accounts.sessions.service.rpcs import Rpcs
from makeready.identity.v1 import accounts_pb2
from makeready.identity.v1 import sessions_pb2 as pb

_ACCOUNTS_SERVICE: str = accounts_pb2.DESCRIPTOR.services_by_name["AccountsService"].full_name


class TokenRpcs(Rpcs):
    """Tokens of sessions, and of permits: what an administrator started goes on after the session."""

    async def IssueToken(self, request: pb.IssueTokenRequest, _call: Call) -> pb.IssueTokenResponse:
        if request.permit:
            return pb.IssueTokenResponse(token=await self._token_of_permit(request))
        row = await open_session(self._dependencies.database, request.session, self._dependencies.clock())
        who = people.identity_of(
            row,
            sandbox=await sandbox_of(self._dependencies.database, row["account_id"], request.session),
            stepped_up_at=int(row["stepped_up_at"].timestamp()),
            session_id=row["session_id"],
            only_service=_ACCOUNTS_SERVICE if people.second_factor_due(row) else "",
        )
        return pb.IssueTokenResponse(token=self._dependencies.issuer.token(request.audience, who))

    async def MakePermit(self, request: pb.MakePermitRequest, _call: Call) -> pb.MakePermitResponse:
        now = self._dependencies.clock()
        row = await open_session(self._dependencies.database, request.session, now)
        if row["kind"] != ADMINISTRATOR or people.second_factor_due(row):
            raise rules.no_session()
        sandbox = await sandbox_of(self._dependencies.database, row["account_id"], request.session)
        text, expires_at = rules.new_secret(), now + rules.PERMIT
        async with self._dependencies.database.transaction() as connection:  # a clock that is ahead makes no permit
            digest = rules.digest(text)
            await accounts.new_ceremony(connection, digest, "permit", expires_at, account_id=row["account_id"])
        answer = pb.MakePermitResponse(permit=rules.in_sandbox(text, None if sandbox is None else sandbox["id"]))
        answer.expires_at.FromDatetime(expires_at)
        return answer

    async def _token_of_permit(self, request: pb.IssueTokenRequest) -> str:
        """A token for the permit's administrator, as they are now. Raises Refusal."""
        database, now = self._dependencies.database, self._dependencies.clock()
        permit, account = None, None
        if len(request.permit) <= rules.SECRET_CHARACTERS_MAX:
            digest = rules.digest(rules.without_sandbox(request.permit)[0])
            permit = await accounts.ceremony_by_digest(database, digest, now, "permit")
        if permit is not None:
            account = await accounts.account_by_id(database, permit["account_id"])
        if account is None or not (account["person_active"] and account["company_active"]):
            raise rules.no_session()
        only = _ACCOUNTS_SERVICE if people.second_factor_due(account) else ""
        sandbox = await sandbox_of(database, account["account_id"], request.permit)
        who = people.identity_of(account, sandbox=sandbox, only_service=only)
        return self._dependencies.issuer.token(request.audience, who)
