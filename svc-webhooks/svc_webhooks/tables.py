"""All tables of the database `webhooks`, in one `metadata`."""

from svc_webhooks.dispatch.tables import answered_receiver, attempt, delivery
from svc_webhooks.events.tables import event
from svc_webhooks.schema import PARTITIONED, PARTITIONS, audit, company, idempotency, inbox, metadata
from svc_webhooks.subscriptions.tables import erasure, subscription, subscription_id

__all__ = [
    "PARTITIONED",
    "PARTITIONS",
    "answered_receiver",
    "attempt",
    "audit",
    "company",
    "delivery",
    "erasure",
    "event",
    "idempotency",
    "inbox",
    "metadata",
    "subscription",
    "subscription_id",
]
