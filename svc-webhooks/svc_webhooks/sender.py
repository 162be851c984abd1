"""One attempt of a claimed delivery: opens the secret, signs, sends, and says what comes next (spec 6.3, 6.4)."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import structlog
from asyncpg import Record
from prometheus_client import Counter, Histogram

from chassis.killpoints import killed_here
from svc_webhooks import queries_sweep as queries
from svc_webhooks import rules
from svc_webhooks.egress import Egress, Outcome
from svc_webhooks.signature import service_signature
from svc_webhooks.vault import Vault, VaultFault

log = structlog.stdlib.get_logger(__name__)
ATTEMPTS = Counter("makeready_webhooks_attempts_total", "Delivery attempts by outcome", ["error"])
SECONDS = Histogram(
    "makeready_webhooks_attempt_seconds", "Time an attempt took", buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
)


class Sender:
    """Makes one attempt of a claimed delivery."""

    def __init__(self, egress: Egress, vault: Vault | None, clock: Callable[[], datetime.datetime]) -> None:
        self._egress = egress
        self._vault = vault
        self._clock = clock

    async def attempt(
        self, row: Record, now: datetime.datetime, ladder: rules.Ladder, period_seconds: int, cause: str
    ) -> queries.Attempt:
        started_at = self._clock()
        outcome = await self._send(row, started_at)
        killed_here("delivery-sent")
        ATTEMPTS.labels(outcome.error or "none").inc()
        SECONDS.observe(outcome.duration_milliseconds / 1000)
        # Our own faults take no step of the ladder; the next sweep tries again.
        rung = row["rung"] if outcome.ours else row["rung"] + 1
        state, due_at = rules.SUCCEEDED, None
        if outcome.ours:
            state, due_at = rules.WAITING, now + datetime.timedelta(seconds=period_seconds)
        elif not outcome.succeeded:
            due_at = rules.next_due(now, rung, ladder)
            state = rules.WAITING if due_at else rules.PARKED
        return queries.Attempt(
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

    async def _send(self, row: Record, started_at: datetime.datetime) -> Outcome:
        try:
            if self._vault is None:
                raise VaultFault("no keyring")
            secret = self._vault.open(row["subscription_id"], row["secret_key_id"], row["secret_sealed"])
        except VaultFault as fault:
            log.error("secret_not_opened", subscription_id=row["subscription_id"], reason=str(fault))
            return Outcome(None, "vault", b"", 0, ours=True)
        body: bytes = row["body"]
        headers = {
            "Content-Type": "application/json",
            "Service-Signature": service_signature(secret, int(started_at.timestamp()), body),
            "Service-Attempt": str(row["attempts"] + 1),
        }
        if row["request_id"]:
            headers["X-Request-Id"] = row["request_id"]
        try:
            return await self._egress.post(row["destination_url"], body, headers)
        except Exception:
            log.exception("egress_fault", subscription_id=row["subscription_id"])
            return Outcome(None, "internal", b"", 0, ours=True)
