"""Attempts of deliveries: claimed, sent, and recorded if the fence allows it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import uuid
from collections.abc import Mapping

from prometheus_client import Counter

from chassis.db.database import Database, DatabaseUnavailable
from chassis.runtime.failpoints import failpoint
from svc_webhooks.dispatch.hosts import Admission
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.queries.recording import Attempt
from svc_webhooks.dispatch.recorder import LINGER_SECONDS, Recorder
from svc_webhooks.dispatch.sender import Claimed, Sender
from svc_webhooks.http_client.client import DEADLINE_SECONDS
from svc_webhooks.rules import deliveries as rules

CLAIM_SECONDS = int(DEADLINE_SECONDS) + 5  # covers the wait before the attempt, the attempt and its recording
SLOW_AFTER_SECONDS = 2.0  # an attempt that lasts longer gives its part of the capacity back and continues

LOST = Counter("makeready_webhooks_claims_lost_total", "Claims that another dispatcher may have or has", ["before"])


class Attempts:
    """One per process."""

    def __init__(self, database: Database, sender: Sender, ladder: rules.Ladder) -> None:
        self._database = database
        self._sender = sender
        self._ladder = ladder
        self._recorder = Recorder(database)
        self.hosts = sender.hosts
        self.name_of = sender.name_of
        self._given_up: list[queries.ClaimedDelivery] = []
        self._giving_up: asyncio.Task[None] | None = None

    @property
    def rungs(self) -> int:
        """The ladder's length with the first attempt."""
        return len(self._ladder) + 1

    async def claim_due(self, deliveries_max: Mapping[int, int], now: datetime.datetime) -> list[Claimed]:
        """Claims deliveries due as of `now`, by subscription as many as `deliveries_max` says. Raises
        DatabaseUnavailable."""
        return self._sender.opened(await queries.claimed_deliveries(self._database, deliveries_max, now, CLAIM_SECONDS))

    async def claim_one(self, event_id: uuid.UUID, subscription_id: int) -> Claimed | None:
        """Claims a waiting delivery, due or not; None if it can't be sent now. Raises DatabaseUnavailable."""
        claims = await queries.claimed_delivery(self._database, event_id, subscription_id, CLAIM_SECONDS)
        return next(iter(self._sender.opened(claims)), None)

    async def claim_settled(
        self, event_id: uuid.UUID, subscription_id: int, state: str, attempts: int
    ) -> Claimed | None:
        """Claims a delivery that has succeeded, or a test; None if it can't be sent now. Raises DatabaseUnavailable."""
        claims = await queries.claimed_settled(
            self._database, event_id, subscription_id, state, attempts, CLAIM_SECONDS
        )
        return next(iter(self._sender.opened(claims)), None)

    async def make(
        self,
        claimed: Claimed,
        now: datetime.datetime,
        admission: Admission,
        cause: str | None = None,
        actor: str = "",
        *,
        since: datetime.datetime | None = None,
    ) -> Attempt | None:
        """Sends and records a claimed delivery. None if it was not sent, or if it was deleted or claimed anew
        meanwhile.

        admission: ended here. If it was refused, the delivery goes on waiting as if it had not been claimed. cause:
        what started the attempt; by default derived from the delivery's replay and rung. actor: who requested it; by
        default the one who requested that the delivery waits again. since: when the sweep that makes the attempt began;
        None outside a sweep. Raises DatabaseUnavailable.
        """
        failpoint("delivery-claimed")
        if claimed.delivery.replay_id is not None:
            cause = cause or rules.REPLAY
        cause = cause or rules.cause_of_due(claimed.delivery.rung, self._ladder)
        actor = actor or claimed.delivery.requested_by or ""
        try:
            attempt = await self._sender.attempt(claimed, now, self._ladder, cause, actor, admission)
        finally:
            admission.end()
        if attempt is None and admission.refused_by:
            self.hosts.remember(self.name_of(claimed.delivery.destination_url), admission.refused_by)
            await self._give_up(claimed.delivery)
        elif attempt is None:
            LOST.labels("sending").inc()
        else:
            if since is not None:
                attempt = attempt._replace(sweep=rules.SweepOfAttempt(now, since))
            is_recorded = await self._recorder.record(attempt, claimed.delivery.company_id)
            self.hosts.answered(attempt.answered)
            if not is_recorded:
                LOST.labels("recording").inc()
                attempt = None
        return attempt

    async def make_now(self, claimed: Claimed, real: datetime.datetime, cause: str, actor: str = "") -> Attempt | None:
        """`make` outside a sweep, at an instant of the real clock."""
        now = real + (claimed.delivery.clock_offset or datetime.timedelta())
        admission = self.hosts.admission(self.name_of(claimed.delivery.destination_url), claimed.delivery.company_id)
        timer = asyncio.get_running_loop().call_later(SLOW_AFTER_SECONDS, admission.give_back)
        try:
            return await self.make(claimed, now, admission, cause, actor)
        finally:
            timer.cancel()

    async def _give_up(self, delivery: queries.ClaimedDelivery) -> None:
        """With all that are given up at this moment. A claim that can't be given up runs out."""
        self._given_up.append(delivery)
        if self._giving_up is None:
            self._giving_up = asyncio.create_task(self._give_up_all())
        await asyncio.shield(self._giving_up)

    async def _give_up_all(self) -> None:
        await asyncio.sleep(LINGER_SECONDS)
        given_up, self._given_up, self._giving_up = self._given_up, [], None
        with contextlib.suppress(DatabaseUnavailable):
            await queries.claims_given_up(self._database, given_up)

    async def finish(self) -> None:
        """Waits a moment for attempts that are being recorded."""
        await self._recorder.finish()
