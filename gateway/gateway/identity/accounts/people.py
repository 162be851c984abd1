"""What the services about accounts and sessions share: the person behind an account, and the proof of a code."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import structlog
from asyncpg import Record

from chassis.auth.identity import ADMINISTRATOR, Call, Identity
from chassis.db.database import Connection, Database
from chassis.writes.audit import Audit
from gateway.identity.accounts import queries, rules, totp
from gateway.identity.accounts.totp import TotpFault, TotpSecrets

ISSUER = "gateway"

log = structlog.stdlib.get_logger(__name__)


def identity_of(
    account: Record,
    *,
    sandbox: Record | None = None,
    stepped_up_at: int = 0,
    session_id: int | None = None,
    only_service: str = "",
) -> Identity:
    """The identity of an account's person.

    account: with the columns of `queries.PERSON`. sandbox: where they work; None: in the company of the account.
    """
    is_administrator = account["kind"] == ADMINISTRATOR
    return Identity(
        account["kind"],
        ISSUER,
        account["company_id"] if sandbox is None else sandbox["id"],
        administrator_id=account["person_id"] if is_administrator else None,
        staff_id=None if is_administrator else account["person_id"],
        stepped_up_at=stepped_up_at,
        session_id=session_id,
        is_sandbox=account["is_sandbox"] or sandbox is not None,
        only_service=only_service,
    )


async def account_of_caller(on: Connection | Database, call: Call) -> Record:
    """The account of the person who calls, which is of another company where they work in a sandbox. Raises Refusal 404
    if they cannot sign in."""
    who = call.identity
    if who.kind == ADMINISTRATOR:
        account = await queries.account_of_administrator(on, who.administrator_id or 0, working_in=who.company_id)
    else:
        account = await queries.account_of(on, who.kind, who.company_id, who.staff_id or 0)
    if account is None:
        raise rules.no_account()
    return account


def personal_texts_of(account: Record) -> tuple[str, ...]:
    """What others know of the person, which therefore is no password."""
    return account["email"], account["name"], account["company_name"]


def second_factor_due(account: Record) -> bool:
    """Whether the company requires a second factor that the account lacks."""
    return (
        account["kind"] == ADMINISTRATOR
        and account["second_factor_required"]
        and account["totp_since"] is None
        and not account["has_passkey"]
    )


async def uses_code(
    connection: Connection, secrets: TotpSecrets, account: Record, code: str, now: datetime.datetime
) -> str | None:
    """Uses a code of the authenticator app ("totp") or a recovery code ("recovery"); None if it is neither.

    account: locked by this transaction. The secret is sealed anew under the ring's first key.
    """
    plain = rules.plain_code(code)
    if account["totp_sealed"] is None or len(plain) > rules.SECRET_CHARACTERS_MAX:
        return None
    if len(plain) == 6:
        try:
            secret = secrets.open(account["account_id"], account["totp_sealed"])
        except TotpFault as fault:  # a recovery code or a passkey still signs in
            log.error("totp_secret_not_opened", account=account["account_id"], reason=str(fault))
            return None
        step = totp.step_of(secret, plain, now, account["totp_step"])
        sealed = secrets.seal(account["account_id"], secret)
        if step is not None and await queries.use_step(connection, account["account_id"], step, sealed):
            return "totp"
        return None
    if await queries.use_code(connection, account["account_id"], rules.digest(plain)):
        return "recovery"
    return None


class AccountAudit:
    """Writes the audit log's entries about accounts, by the person rather than the console."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    async def add(
        self,
        connection: Connection,
        call: Call,
        account: Record,
        action: str,
        after: Mapping[str, object],
        before: Mapping[str, object] | None = None,
        *,
        by_person: bool = True,
    ) -> None:
        """by_person: whether the account's person has proved to be the actor; otherwise the caller is."""
        if by_person:
            call = Call(identity_of(account), call.request_id)
        subject, subject_id = account["kind"], account["person_id"]
        await self._audit.add(connection, call, account["company_id"], action, subject, subject_id, before or {}, after)
