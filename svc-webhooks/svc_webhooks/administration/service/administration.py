"""AdministrationService: its RPCs are in the other modules of this package, by subject."""

from __future__ import annotations

from svc_webhooks.administration.service.attempts import AttemptRpcs
from svc_webhooks.administration.service.events import EventRpcs
from svc_webhooks.administration.service.subscriptions import SubscriptionRpcs


class AdministrationService(SubscriptionRpcs, AttemptRpcs, EventRpcs):
    """Administers a company's subscriptions, deliveries and events."""
