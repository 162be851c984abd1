"""Attempts of deliveries: claimed under a lease, sent, and recorded if the fence allows it."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping

from prometheus_client import Counter

from chassis.db.database import Database
from chassis.runtime.failpoints import failpoint
from svc_webhooks.dispatch import rules
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.recorder import Recorder
from svc_webhooks.dispatch.sender import Claimed, Sender
from svc_webhooks.http_client.client import DEADLINE_SECONDS

LEASE_SECONDS = int(DEADLINE_SECONDS) + 5  # covers the wait before the attempt, the attempt and its recording

LOST = Counter("makeready_webhooks_claims_lost_total", "Claims that another dispatcher may have or has", ["before"])


class Attempts:
    """One per process."""

    def __init__(self, database: Database, sender: Sender, ladder: rules.Ladder) -> None:
        self._database = database
        self._sender = sender
        self._ladder = ladder
        self._recorder = Recorder(database)

    async def claim_due(self, wanted: Mapping[int, int], now: datetime.datetime) -> list[Claimed]:
        """Leases deliveries due as of `now`, up to `wanted` of each subscription. Raises DatabaseUnavailable."""
        return self._sender.opened(await queries.claimed_deliveries(self._database, wanted, now, LEASE_SECONDS))

    async def claim_one(self, event_id: uuid.UUID, subscription_id: int) -> Claimed | None:
        """Leases a waiting delivery, due or not; None if it can't be sent now. Raises DatabaseUnavailable."""
        claims = await queries.claimed_delivery(self._database, event_id, subscription_id, LEASE_SECONDS)
        return next(iter(self._sender.opened(claims)), None)

    async def make(self, claimed: Claimed, now: datetime.datetime, cause: str | None = None) -> rules.Attempt | None:
        """Sends and records a claimed delivery. None if it was not sent, or if it was deleted or claimed anew
        meanwhile.

        cause: what started the attempt; by default derived from the delivery's rung. Raises DatabaseUnavailable.
        """
        failpoint("delivery-claimed")
        cause = cause or rules.cause_of_due(claimed.delivery.rung, self._ladder)
        attempt = await self._sender.attempt(claimed, now, self._ladder, cause)
        if attempt is None:
            LOST.labels("sending").inc()
        elif not await self._recorder.record(attempt):
            LOST.labels("recording").inc()
            return None
        return attempt

    async def finish(self) -> None:
        """Waits a moment for attempts that are being recorded."""
        await self._recorder.finish()
