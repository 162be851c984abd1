"""The SQL of subscriptions that integrations create and list."""

from __future__ import annotations

from sqlalchemy import select, type_coerce
from sqlalchemy.types import NullType

from chassis.lists.paging import Pages
from chassis.writes.idempotency import InsertOnce
from svc_webhooks.schema import idempotency
from svc_webhooks.subscriptions.tables import subscription

SHOWN = (
    subscription.c.id,
    subscription.c.destination_url,
    type_coerce(subscription.c.events, NullType()).label("events"),  # asyncpg's own list is what is wanted
    subscription.c.health,
    subscription.c.secret_prefix,
    subscription.c.created_at,
    subscription.c.source,
)

SUBSCRIPTIONS_PAGE = Pages(select(*SHOWN), subscription.c.company_id, subscription.c.id, {})
CREATE_SUBSCRIPTION = InsertOnce(idempotency, subscription)
