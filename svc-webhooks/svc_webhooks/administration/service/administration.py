"""AdministrationService: its RPCs stand in the modules beside this one, by subject."""

from __future__ import annotations

from svc_webhooks.administration.service.attempts import AttemptRpcs
from svc_webhooks.administration.service.events import EventRpcs
from svc_webhooks.administration.service.subscriptions import SubscriptionRpcs


class AdministrationService(SubscriptionRpcs, AttemptRpcs, EventRpcs):
    """Administers a company's subscriptions, deliveries and events."""
