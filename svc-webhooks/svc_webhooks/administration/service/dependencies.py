"""The dependencies that all RPCs of administrators share."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from chassis.auth import identity
from chassis.auth.identity import may_administer
from chassis.db.database import Database
from chassis.schedule.instants import Clock, slot_of
from chassis.writes.commands import CommandRunner
from svc_webhooks.administration.queries import changes as queries
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.events.partitions import Partitions
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
    clock: Clock

    @property
    def rungs(self) -> int:
        """The ladder's length with the first attempt."""
        return self.scheduler.attempts.rungs

    @property
    def next_sweep_at(self) -> datetime.datetime:
        """When the next sweep attempts what is due."""
        period = self.scheduler.period_seconds
        return slot_of(self.clock(), period) + datetime.timedelta(seconds=period)

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
