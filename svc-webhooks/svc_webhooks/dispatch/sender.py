"""One attempt of a claimed delivery: signs, sends, and decides the next state (spec 6.3, 6.4).

Every attempt that begins after a rotation of the secret, a pause or a delete obeys it. An attempt begins with its
claim: the statement that claims a delivery also reads the destination and the secret, and the request follows within
milliseconds. If the process is delayed in between, it sends nothing: see `Sender.attempt`.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

import structlog
from prometheus_client import Counter, Histogram

from chassis.db.clocks import uptime
from chassis.runtime import traces
from chassis.runtime.failpoints import failpoint
from chassis.schedule.instants import Clock
from svc_webhooks.dispatch.hosts import Admission, Hosts
from svc_webhooks.dispatch.queries.claims import ClaimedDelivery, Claims
from svc_webhooks.dispatch.signature import request_headers, signature_headers, traceparent_of
from svc_webhooks.http_client.client import HttpClient, Outcome
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.vault.keyring import Vault, VaultFault

BEGIN_SECONDS_MAX = 2.0  # from claim to request; together with the whole attempt shorter than a claim

log = structlog.stdlib.get_logger(__name__)
ATTEMPTS = Counter("makeready_webhooks_attempts_total", "Delivery attempts by outcome", ["error"])
SECONDS = Histogram(
    "makeready_webhooks_attempt_seconds", "Time an attempt took", buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
)


class Claimed(NamedTuple):
    """A claimed delivery. secret: None if it can't be opened. since: a lower bound of the claim's start."""

    delivery: ClaimedDelivery
    secret: str | None
    since: float


class Sender:
    """Makes one attempt of a claimed delivery."""

    def __init__(self, http: HttpClient, hosts: Hosts, vault: Vault | None, clock: Clock) -> None:
        self.hosts = hosts
        self._http = http
        self._vault = vault
        self._clock = clock

    def opened(self, claims: Claims) -> list[Claimed]:
        """Adds the secrets. Each subscription's secret is opened once for these rows, and not cached."""
        secrets: dict[int, str | None] = {}
        for row in claims.rows:
            if row.subscription_id not in secrets:
                secrets[row.subscription_id] = self._open(row)
        return [Claimed(row, secrets[row.subscription_id], claims.since) for row in claims.rows]

    def name_of(self, destination_url: str) -> str:
        """The receiver's name: see `HttpClient.name_of`."""
        return self._http.name_of(destination_url)

    async def attempt(
        self,
        claimed: Claimed,
        now: datetime.datetime,
        ladder: rules.Ladder,
        cause: str,
        actor: str,
        admission: Admission,
    ) -> rules.Attempt | None:
        """None if its receiver has no room, or if the claim is so old that it could run out during the attempt
        and another dispatcher send it too. actor: who requested it; empty if the ladder did."""
        delivery = claimed.delivery
        number = delivery.attempts + 1
        with traces.within(traceparent_of(delivery.traceparent, delivery.event_id, delivery.subscription_id, number)):
            return await self._attempt(claimed, now, ladder, cause, actor, admission)

    async def _attempt(
        self,
        claimed: Claimed,
        now: datetime.datetime,
        ladder: rules.Ladder,
        cause: str,
        actor: str,
        admission: Admission,
    ) -> rules.Attempt | None:
        delivery = claimed.delivery
        if not await admission.opens():
            return None
        started_at = self._clock()
        if uptime() - claimed.since > BEGIN_SECONDS_MAX:
            log.warning("claim_too_old", event_id=str(delivery.event_id), subscription_id=delivery.subscription_id)
            return None
        outcome = await self._send(claimed, started_at, admission)
        if not outcome.was_admitted:
            return None
        failpoint("delivery-sent")
        ATTEMPTS.labels(outcome.error or "none").inc()
        SECONDS.observe(outcome.duration_milliseconds / 1000)
        # An internal fault leaves the delivery to its replay; so does an extra attempt that fails.
        is_of_replay = delivery.replay_id is not None and (
            outcome.succeeded or (cause == rules.REPLAY and not outcome.is_internal_fault)
        )
        if cause == rules.REPLAY and not outcome.is_internal_fault:
            after = rules.after_replay(delivery.rung, delivery.resumes_at, succeeded=outcome.succeeded)
        elif cause in (rules.MANUAL, rules.RESEND, rules.TEST):
            after = rules.after_extra_attempt(cause, delivery.rung, delivery.due_at, succeeded=outcome.succeeded)
        else:
            after = rules.after_attempt(
                delivery.rung, now, ladder, succeeded=outcome.succeeded, is_internal_fault=outcome.is_internal_fault
            )
        return rules.Attempt(
            event_id=delivery.event_id,
            subscription_id=delivery.subscription_id,
            fence=delivery.fence,
            state_before=delivery.state,
            number=delivery.attempts + 1,
            rung=after.rung,
            state=after.state,
            due_at=after.due_at,
            cause=cause,
            actor=actor,
            started_at=started_at,
            duration_milliseconds=outcome.duration_milliseconds,
            connect_milliseconds=outcome.connect_milliseconds,
            tls_milliseconds=outcome.tls_milliseconds,
            first_byte_milliseconds=outcome.first_byte_milliseconds,
            address=outcome.address,
            status=outcome.status,
            error=outcome.error,
            response_excerpt=outcome.excerpt,
            is_internal_fault=outcome.is_internal_fault,
            replay_id=delivery.replay_id if is_of_replay else None,
            replay_after=None if is_of_replay else delivery.replay_id,
            resumes_after=None if is_of_replay else delivery.resumes_at,
            answered=admission.answered() if outcome.succeeded else (),
        )

    def _open(self, row: ClaimedDelivery) -> str | None:
        try:
            if self._vault is None:
                raise VaultFault("no keyring")
            return self._vault.open(row.subscription_id, row.secret_key_id, row.secret_sealed)
        except VaultFault as fault:
            log.error("secret_not_opened", subscription_id=row.subscription_id, reason=str(fault))
            return None

    async def _send(self, claimed: Claimed, started_at: datetime.datetime, admission: Admission) -> Outcome:
        delivery = claimed.delivery
        if claimed.secret is None:
            return Outcome(None, "vault", b"", 0, is_internal_fault=True)
        at = int(started_at.timestamp())
        signatures = signature_headers(claimed.secret, str(delivery.event_id), at, delivery.body)
        headers = request_headers(
            signatures, delivery.attempts + 1, delivery.request_id, traces.current(), delivery.replay_id
        )
        return await self._http.post(
            delivery.destination_url, delivery.body, headers, party=delivery.company_id, gate=admission
        )
