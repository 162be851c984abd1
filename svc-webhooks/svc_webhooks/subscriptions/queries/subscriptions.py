"""The SQL of subscriptions that integrations create and list."""

from __future__ import annotations

from chassis.lists.paging import Pages
from chassis.writes.idempotency import InsertOnce
from svc_webhooks.schema import idempotency
from svc_webhooks.subscriptions.records import SUBSCRIPTION
from svc_webhooks.subscriptions.tables import subscription

SUBSCRIPTIONS_PAGE = Pages(SUBSCRIPTION.select(subscription), subscription.c.company_id, subscription.c.id, {})
CREATE_SUBSCRIPTION = InsertOnce(idempotency, subscription)
