"""Makes the links with which people set their passwords: invitations and resets. Their digests alone are stored."""

from __future__ import annotations

from asyncpg import Record

from chassis.auth.identity import Call
from chassis.db.database import Connection
from chassis.schedule.instants import Clock
from gateway.identity.accounts import queries, rules
from gateway.identity.accounts.people import AccountAudit
from makeready.identity.v1 import sessions_pb2 as pb

INVITATIONS, RESETS = "/invitations/", "/reset/"


class Links:
    """Makes links to the console."""

    def __init__(self, console_url: str, audit: AccountAudit, clock: Clock) -> None:
        self._console_url = console_url.rstrip("/")
        self._audit = audit
        self._clock = clock

    async def make(
        self, connection: Connection, call: Call, account: Record, *, remove_second_factor: bool = False
    ) -> pb.Link:
        """Makes the account's link, in place of the last one: an invitation until it has a password or a passkey."""
        text, now = rules.new_secret(), self._clock()
        is_new = not (account["has_password"] or account["has_passkey"])
        purpose, path, lives = (
            ("invitation", INVITATIONS, rules.INVITATION) if is_new else ("reset", RESETS, rules.RESET)
        )
        await queries.replace_link(
            connection, account["account_id"], rules.digest(text), purpose, remove_second_factor, now + lives
        )
        after = {"purpose": purpose, "expires_at": now + lives}
        if remove_second_factor:
            after["remove_second_factor"] = True
        await self._audit.add(connection, call, account, "link.made", after, by_person=False)
        link = pb.Link(
            purpose=pb.LINK_PURPOSE_INVITATION if is_new else pb.LINK_PURPOSE_RESET,
            url=f"{self._console_url}{path}{text}",
            email=account["email"],
        )
        link.expires_at.FromDatetime(now + lives)
        return link
