"""One attempt of a claimed delivery: signs, sends, and says what comes next (spec 6.3, 6.4).

A rotation of the secret, a pause and a delete are a hard cut for every attempt that begins after them. An attempt
begins with its claim: the statement that leases a delivery reads the destination and the secret, and the request
follows at once, within milliseconds. Where the process is held up in between, nothing is sent: see `Sender.attempt`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import NamedTuple

import structlog
from asyncpg import Record
from prometheus_client import Counter, Histogram

from chassis.runtime.failpoints import failpoint
from svc_webhooks.dispatch import rules
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.signature import service_signature
from svc_webhooks.http_client.client import Egress, Outcome
from svc_webhooks.vault.keyring import Vault, VaultFault

BEGIN_SECONDS_MAX = 2.0  # between a claim and its request; with the whole attempt, less than a lease

log = structlog.stdlib.get_logger(__name__)
ATTEMPTS = Counter("makeready_webhooks_attempts_total", "Delivery attempts by outcome", ["error"])
SECONDS = Histogram(
    "makeready_webhooks_attempt_seconds", "Time an attempt took", buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
)


class Claimed(NamedTuple):
    """A delivery that is leased. secret: None where it can't be opened; since: the lease began then or later."""

    row: Record
    secret: str | None
    since: float


class Sender:
    """Makes one attempt of a claimed delivery."""

    def __init__(self, egress: Egress, vault: Vault | None, clock: Callable[[], datetime.datetime]) -> None:
        self._egress = egress
        self._vault = vault
        self._clock = clock

    def opened(self, claims: queries.Claims) -> list[Claimed]:
        """Each subscription's secret is opened once, for these rows alone."""
        secrets: dict[int, str | None] = {}
        for row in claims.rows:
            if row["subscription_id"] not in secrets:
                secrets[row["subscription_id"]] = self._open(row)
        return [Claimed(row, secrets[row["subscription_id"]], claims.since) for row in claims.rows]

    async def attempt(
        self, claimed: Claimed, now: datetime.datetime, ladder: rules.Ladder, cause: str
    ) -> rules.Attempt | None:
        """None where the claim is so old that the lease might run out meanwhile and another dispatcher send it too."""
        row = claimed.row
        started_at = self._clock()
        if queries.uptime() - claimed.since > BEGIN_SECONDS_MAX:
            log.warning("claim_too_old", event_id=str(row["event_id"]), subscription_id=row["subscription_id"])
            return None
        outcome = await self._send(claimed, started_at)
        failpoint("delivery-sent")
        ATTEMPTS.labels(outcome.error or "none").inc()
        SECONDS.observe(outcome.duration_milliseconds / 1000)
        # Our own faults take no step of the ladder; the next sweep tries again.
        rung = row["rung"] if outcome.ours else row["rung"] + 1
        state, due_at = rules.SUCCEEDED, None
        if outcome.ours:
            state, due_at = rules.WAITING, rules.due_after(now)
        elif not outcome.succeeded:
            due_at = rules.next_due(now, rung, ladder)
            state = rules.WAITING if due_at else rules.PARKED
        return rules.Attempt(
            event_id=row["event_id"],
            subscription_id=row["subscription_id"],
            fence=row["fence"],
            number=row["attempts"] + 1,
            rung=rung,
            state=state,
            due_at=due_at,
            cause=cause,
            started_at=started_at,
            duration_milliseconds=outcome.duration_milliseconds,
            connect_milliseconds=outcome.connect_milliseconds,
            tls_milliseconds=outcome.tls_milliseconds,
            first_byte_milliseconds=outcome.first_byte_milliseconds,
            address=outcome.address,
            status=outcome.status,
            error=outcome.error,
            response_excerpt=outcome.excerpt,
            ours=outcome.ours,
        )

    def _open(self, row: Record) -> str | None:
        try:
            if self._vault is None:
                raise VaultFault("no keyring")
            return self._vault.open(row["subscription_id"], row["secret_key_id"], row["secret_sealed"])
        except VaultFault as fault:
            log.error("secret_not_opened", subscription_id=row["subscription_id"], reason=str(fault))
            return None

    async def _send(self, claimed: Claimed, started_at: datetime.datetime) -> Outcome:
        row = claimed.row
        if claimed.secret is None:
            return Outcome(None, "vault", b"", 0, ours=True)
        body: bytes = row["body"]
        headers = {
            "Content-Type": "application/json",
            "Service-Signature": service_signature(claimed.secret, int(started_at.timestamp()), body),
            "Service-Attempt": str(row["attempts"] + 1),
        }
        if row["request_id"]:
            headers["X-Request-Id"] = row["request_id"]
        return await self._egress.post(row["destination_url"], body, headers)
