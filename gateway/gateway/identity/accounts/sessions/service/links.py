"""The RPC that sets a password by a link: an invitation or a reset."""

from __future__ import annotations

import datetime

from asyncpg import Record

from chassis.auth.identity import Call
from gateway.identity.accounts import people, rules
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts.sessions import queries
from gateway.identity.accounts.sessions.service.attempts import check_may_enter
from gateway.identity.accounts.sessions.service.rpcs import Rpcs
from gateway.identity.accounts.sessions.service.starts import Newcomer
from gateway.identity.accounts.turns import Line
from makeready.identity.v1 import sessions_pb2 as pb

_PURPOSES = {"invitation": pb.LINK_PURPOSE_INVITATION, "reset": pb.LINK_PURPOSE_RESET}


class LinkRpcs(Rpcs):
    """A link opens nothing after its first use."""

    async def UseLink(self, request: pb.UseLinkRequest, call: Call) -> pb.UseLinkResponse:
        database, now = self._dependencies.database, self._dependencies.clock()
        link = await accounts.link_by_digest(database, rules.digest(request.link), now)
        account = None if link is None else await accounts.account_by_id(database, link["account_id"])
        if link is None or account is None or not account["person_active"]:
            raise rules.link_not_valid()
        check_may_enter(account)
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
        await self._set_password(request, call, account, now, has_second_factor=has_second_factor)
        fresh = await accounts.account_by_id(database, account["account_id"])
        assert fresh is not None
        opened = await self._starts.after_first_factor(Newcomer(call, request.client, "link"), fresh)
        if opened.session is not None:
            answer.session.CopyFrom(opened.session)
        else:
            answer.step = opened.step
        return answer

    async def _set_password(
        self,
        request: pb.UseLinkRequest,
        call: Call,
        account: Record,
        now: datetime.datetime,
        *,
        has_second_factor: bool,
    ) -> None:
        """Uses the link up. Raises Refusal if it has been used meanwhile, and for a password that is too weak."""
        hashed, stands_alone = await self._dependencies.passwords.new(
            request.password,
            Line(rules.network(request.client.address)),
            has_second_factor=has_second_factor,
            personal_texts=people.personal_texts_of(account),
        )
        digest = rules.digest(request.link)
        async with self._dependencies.database.transaction() as connection:
            locked = await accounts.account_for_update(connection, account["account_id"])
            taken = None
            if locked is not None:
                taken = await accounts.take_link(connection, digest, self._dependencies.clock())
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
            await self._dependencies.attempts.forget(connection, locked["email"])
            after = {"by": taken["purpose"], "sessions_ended": ended}
            if taken["remove_second_factor"]:
                after["second_factor"] = "removed"
            await self._dependencies.audit.add(connection, call, locked, "account.password_set", after)
