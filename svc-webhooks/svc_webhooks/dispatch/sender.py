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
from chassis.schedule.clocks import CompanyClocks
from svc_webhooks.dispatch.hosts import Admission, Hosts
from svc_webhooks.dispatch.queries.claims import ClaimedDelivery, Claims
from svc_webhooks.dispatch.queries.recording import Attempt
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

    def __init__(
        self,
        http: HttpClient,
        hosts: Hosts,
        vault: Vault | None,
        clocks: CompanyClocks,
        *,
        local_destinations: bool = False,
    ) -> None:
        """With `local_destinations`, deliveries of sandboxes may go to local receivers: see `parse`."""
        self.hosts = hosts
        self._local_destinations = local_destinations
        self._http = http
        self._vault = vault
        self._clocks = clocks

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
    ) -> Attempt | None:
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
    ) -> Attempt | None:
        delivery = claimed.delivery
        if not await admission.opens():
            return None
        signed_at = self._clocks.real()  # receivers compare it with their own clock
        started_at = signed_at + (delivery.clock_offset or datetime.timedelta())
        if uptime() - claimed.since > BEGIN_SECONDS_MAX:
            log.warning("claim_too_old", event_id=str(delivery.event_id), subscription_id=delivery.subscription_id)
            return None
        outcome = await self._send(claimed, int(signed_at.timestamp()), admission)
        if not outcome.was_admitted:
            return None
        failpoint("delivery-sent")
        ATTEMPTS.labels(outcome.error or "none").inc()
        SECONDS.observe(outcome.duration_milliseconds / 1000)
        after = rules.after(
            delivery, cause, now, ladder, succeeded=outcome.succeeded, is_internal_fault=outcome.is_internal_fault
        )
        answered = admission.answered() if outcome.succeeded else ()
        return Attempt(delivery, cause, actor, started_at, outcome, after, answered)

    def _open(self, row: ClaimedDelivery) -> str | None:
        try:
            if self._vault is None:
                raise VaultFault("no keyring")
            return self._vault.open(row.subscription_id, row.secret_key_id, row.secret_sealed)
        except VaultFault as fault:
            log.error("secret_not_opened", subscription_id=row.subscription_id, reason=str(fault))
            return None

    async def _send(self, claimed: Claimed, at: int, admission: Admission) -> Outcome:
        delivery = claimed.delivery
        if claimed.secret is None:
            return Outcome(None, "vault", b"", 0, is_internal_fault=True)
        signatures = signature_headers(claimed.secret, str(delivery.event_id), at, delivery.body)
        headers = request_headers(
            signatures, delivery.attempts + 1, delivery.request_id, traces.current(), delivery.replay_id
        )
        return await self._http.post(
            delivery.destination_url,
            delivery.body,
            headers,
            party=delivery.company_id,
            gate=admission,
            seconds_max=admission.seconds_max,
            may_be_local=self._local_destinations and delivery.clock_offset is not None,
        )
