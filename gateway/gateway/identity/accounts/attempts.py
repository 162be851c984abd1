"""Counts failures to sign in, and makes the next attempt wait.

An attempt counts as a failure before it is checked, in a separate transaction, and is taken back if it succeeds. So a
hundred attempts at once are not checked before the first of them counts, and one that is cut off counts.

An attempt in a browser that is known for its person counts for that browser alone, and waits for no others.
"""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from chassis.db.database import Connection, Database
from chassis.db.statements import TIME, Statement, param
from gateway.identity.accounts import rules
from gateway.identity.accounts.tables import sign_in_delay, sign_in_failure
from gateway.identity.accounts.turns import Line

_email = param("email_digest", sa.LargeBinary)
_network = param("network", sa.Text)
_now = param("now", TIME)
_LOCK_NETWORK = Statement(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(_network, 0))))
# The oldest of the failures that fill the window: when it leaves the window, the next attempt is let in.
_FILLED = Statement(
    sa.select(sign_in_failure.c.failed_at)
    .where(
        sign_in_failure.c.network == _network,
        sign_in_failure.c.failed_at > param("since", TIME),
        sign_in_failure.c.failed_at < param("until", TIME),
    )
    .order_by(sign_in_failure.c.failed_at.desc())
    .offset(rules.NETWORK_FAILURES_MAX - 1)
    .limit(1)
)
_BEGUN = Statement(
    upsert(sign_in_delay).values(email_digest=_email, failures=0, next_at=_now, last_at=_now).on_conflict_do_nothing()
)
_DELAY = Statement(sa.select(sign_in_delay).where(sign_in_delay.c.email_digest == _email).with_for_update())
_COUNT = Statement(
    sa.update(sign_in_delay)
    .where(sign_in_delay.c.email_digest == _email)
    .values(failures=param("new_failures", sa.Integer), next_at=param("new_next_at", TIME), last_at=_now)
)
_NEW_FAILURE = Statement(
    sa.insert(sign_in_failure).values(network=_network, failed_at=_now).returning(sign_in_failure.c.id)
)
_FORGET_FAILURE = Statement(sa.delete(sign_in_failure).where(sign_in_failure.c.id == param("id", sa.BigInteger)))
_FORGET_DELAY = Statement(sa.delete(sign_in_delay).where(sign_in_delay.c.email_digest == _email))
_TAKE_BACK = Statement(
    sa.update(sign_in_delay)
    .where(sign_in_delay.c.email_digest == _email)
    .values(failures=sa.func.greatest(sign_in_delay.c.failures - 1, 0), next_at=_now)
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that counts as a failure until it is taken back."""

    counted_for: bytes
    """The digest of the email, or of the browser that is known."""
    line: Line
    """Where the check of the password waits for its turn."""
    failure_id: int | None
    """Of the network's failures; None: the browser is known."""


def _digest(email: str) -> bytes:
    return hashlib.sha256(email.encode()).digest()


def _digest_of_browser(browser: bytes) -> bytes:
    # No email has a NUL.
    return hashlib.sha256(b"browser\0" + browser).digest()


class Attempts:
    """The attempts of all gateways."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, email: str, address: str, now: datetime.datetime, browser: bytes | None = None) -> Attempt:
        """Counts an attempt for an email, whether it is known or not. Raises Refusal 429 if it has to wait.

        browser: the id of one that is known for the email's person.
        """
        async with self._database.transaction() as connection:
            if browser is not None:
                counted_for = _digest_of_browser(browser)
                await self._count(connection, counted_for, now)
                return Attempt(counted_for, Line(counted_for.hex(), is_known=True), None)
            network = rules.network(address)
            await connection.execute(_LOCK_NETWORK, network=network)
            since, until = now - rules.NETWORK_WINDOW, now + rules.AHEAD_MAX
            filled = await connection.value(_FILLED, network=network, since=since, until=until)
            if filled is not None:
                raise rules.sign_in_delayed(filled + rules.NETWORK_WINDOW - now)
            await self._count(connection, _digest(email), now)
            failure_id = await connection.value(_NEW_FAILURE, network=network, now=now)
            return Attempt(_digest(email), Line(network), failure_id)

    @staticmethod
    async def _count(connection: Connection, counted_for: bytes, now: datetime.datetime) -> None:
        await connection.execute(_BEGUN, email_digest=counted_for, now=now)
        row = await connection.row(_DELAY, email_digest=counted_for)
        assert row is not None
        # Concurrent attempts may arrive here out of the order of their instants. One whose delay is zero is let in.
        is_of_now = row["last_at"] < now + rules.AHEAD_MAX
        if is_of_now and row["next_at"] > now and rules.delay(row["failures"]):
            raise rules.sign_in_delayed(row["next_at"] - now)
        failures = row["failures"] + 1 if now - row["last_at"] < rules.FAILURES_KEPT else 1
        next_at = now + rules.delay(failures)
        await connection.execute(_COUNT, email_digest=counted_for, new_failures=failures, new_next_at=next_at, now=now)

    async def take_back(self, attempt: Attempt, now: datetime.datetime) -> None:
        """The attempt is no failure: it was right, and goes on to its second factor, or nobody could check it. What
        failed before still counts."""
        async with self._database.transaction() as connection:
            await connection.execute(_TAKE_BACK, email_digest=attempt.counted_for, now=now)
            await connection.execute(_FORGET_FAILURE, id=attempt.failure_id)

    @staticmethod
    async def forget(connection: Connection, email: str, attempt: Attempt | None = None) -> None:
        """The person has signed in: nothing that failed before makes them wait."""
        await connection.execute(_FORGET_DELAY, email_digest=_digest(email))
        if attempt is not None:
            await connection.execute(_FORGET_DELAY, email_digest=attempt.counted_for)
            await connection.execute(_FORGET_FAILURE, id=attempt.failure_id)
