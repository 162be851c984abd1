"""How an attempt to sign in or to confirm is counted, and how it fails."""

from __future__ import annotations

from typing import Never

import structlog
from asyncpg import Record
from prometheus_client import Counter

from chassis.auth.identity import Call
from chassis.refusals import Refusal
from gateway.identity.accounts import rules
from gateway.identity.accounts.attempts import Attempt
from gateway.identity.accounts.sessions.service.dependencies import Dependencies
from makeready.identity.v1 import sessions_pb2 as pb

log = structlog.stdlib.get_logger(__name__)
SIGN_INS = Counter("makeready_sign_ins_total", "Attempts to sign in or to confirm", ["outcome"])


def check_may_enter(account: Record) -> None:
    """Raises Refusal for a person who has proved who they are and may not sign in all the same."""
    if not account["company_active"]:
        raise Refusal(403, "company_inactive", "The company is closed; ask the operator to open it.")


class SignInAttempts:
    """Begins and ends the attempts."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    async def begin(self, email: str, client: pb.Client, account: Record | None) -> Attempt:
        """Counts an attempt. account: whose email it is, if anybody's. Raises Refusal if the attempt has to wait."""
        now = self._dependencies.clock()
        browsers = self._dependencies.browsers
        browser = None if account is None else browsers.browser_of(client.known, account, now)
        address = client.address[: rules.ADDRESS_CHARACTERS_MAX]
        try:
            return await self._dependencies.attempts.begin(email, address, now, browser)
        except Refusal:
            SIGN_INS.labels("delayed").inc()
            raise

    async def matches(self, password: str, stored: str | None, attempt: Attempt) -> bool:
        """Whether the password is the stored one. Raises Refusal if too many wait to be compared."""
        try:
            return await self._dependencies.passwords.matches(password, stored, attempt.line)
        except Refusal:  # it was not compared
            SIGN_INS.labels("busy").inc()
            await self._dependencies.attempts.take_back(attempt, self._dependencies.clock())
            raise

    async def fail(self, call: Call, account: Record | None, client: pb.Client, at: str) -> Never:
        """Records a failure in the audit log of the person's company; that of an unknown email in the service's log."""
        SIGN_INS.labels("failed").inc()
        address = client.address[: rules.ADDRESS_CHARACTERS_MAX]
        if account is None:
            log.warning("sign_in_failed", at=at, address=address)
        else:
            async with self._dependencies.database.transaction() as connection:
                after = {"at": at, "address": address}
                await self._dependencies.audit.add(connection, call, account, "sign_in.failed", after, by_person=False)
        raise rules.sign_in_failed()
