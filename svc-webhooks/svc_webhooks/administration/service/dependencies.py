"""The dependencies that all RPCs of administrators share."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass
from typing import Any

from chassis.auth import identity
from chassis.auth.identity import may_administer
from chassis.db.database import Database
from chassis.refusals import invalid_request
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import Clock
from chassis.writes.commands import CommandRunner
from svc_webhooks.administration.inputs import Stretch, event_id_of, instant_of
from svc_webhooks.administration.queries import changes as queries
from svc_webhooks.days import NEWEST, OLDEST, first_id_at
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.events.partitions import Partitions
from svc_webhooks.events.queries.feed import id_before
from svc_webhooks.http_client.client import HttpClient
from svc_webhooks.rules.subscriptions import KIND, no_such_subscription
from svc_webhooks.subscriptions.service import SubscriptionsService
from svc_webhooks.vault.keyring import Vault, VaultFault

SUBJECT = KIND


@dataclass(frozen=True, slots=True)
class Dependencies:
    """One per process. vault: None without a keyring."""

    database: Database
    commands: CommandRunner
    vault: Vault | None
    http: HttpClient
    scheduler: Scheduler
    partitions: Partitions
    subscriptions: SubscriptionsService
    clocks: CompanyClocks

    @property
    def rungs(self) -> int:
        """The ladder's length with the first attempt."""
        return self.scheduler.attempts.rungs

    async def clock(self, call: identity.Call, company_id: int) -> Clock:
        """The clock of a company that the caller administers."""
        return await self.clocks.of(call, company_id=company_id)

    async def next_sweep_at(self, call: identity.Call, company_id: int) -> datetime.datetime:
        """When the next sweep attempts what is due in a company."""
        slot = self.scheduler.slot_of(await self.clock(call, company_id))
        return slot + datetime.timedelta(seconds=self.scheduler.period_seconds)

    async def first_id_since(self, call: identity.Call, company_id: int, instant: datetime.datetime) -> uuid.UUID:
        """The lower bound of the ids of what was stored for a company at an instant of its clock or later. Ids have
        the real clock."""
        real = await self.clocks.real_before(call, instant, company_id)
        bound = first_id_at(real)
        if real == instant:
            return bound
        last = await id_before(self.database, company_id, instant)
        return max(bound, uuid.UUID(int=last.int + 1))

    async def stretch(
        self, call: identity.Call, company_id: int, request: Any, last: str = "before_event_id"
    ) -> Stretch:
        """The stretch of a request with `since` and `until`, and the last event of the page before in the field
        `last`. Raises Refusal 400."""
        since, until = OLDEST, NEWEST
        if request.HasField("since"):
            since = await self.first_id_since(call, company_id, instant_of(request.since, "since"))
        if request.HasField("until"):
            until = await self.first_id_since(call, company_id, instant_of(request.until, "until"))
        text = getattr(request, last) if last else ""
        before = event_id_of(text) if text else NEWEST
        if before is None:
            raise invalid_request(f"{last} must be the id of an event.", last)
        return Stretch(since, min(until, before))

    async def owner(self, call: identity.Call, sub_id: int) -> int:
        """The subscription's company. Raises Refusal 404 if there is none that the caller administers."""
        subscription = await queries.company_of(self.database, sub_id)
        if subscription is None or not may_administer(call, subscription.company_id):
            raise no_such_subscription()
        return subscription.company_id

    def opened(self, sub_id: int, stored_secret: queries.SecretInUse) -> str:
        """The signing secret; empty if no key of the ring opens it."""
        try:
            return (
                self.vault.open(sub_id, stored_secret.secret_key_id, stored_secret.secret_sealed) if self.vault else ""
            )
        except VaultFault:
            return ""
