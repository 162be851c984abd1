"""All tables of the database `webhooks`, in one `metadata`."""

from svc_webhooks.schema import PARTITIONED, audit, company, idempotency, inbox, metadata
from svc_webhooks.tables.deliveries import answered_receiver, attempt, delivery, replay, replay_id
from svc_webhooks.tables.events import event, feed, feed_entry
from svc_webhooks.tables.subscriptions import erasure, subscription, subscription_id

__all__ = [
    "PARTITIONED",
    "answered_receiver",
    "attempt",
    "audit",
    "company",
    "delivery",
    "erasure",
    "event",
    "feed",
    "feed_entry",
    "idempotency",
    "inbox",
    "metadata",
    "replay",
    "replay_id",
    "subscription",
    "subscription_id",
]
