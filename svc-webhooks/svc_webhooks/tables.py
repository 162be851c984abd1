"""The tables of the database `webhooks`. Constraints make impossible what the rules forbid.

`event`, `delivery` and `attempt` are partitioned by event id, whose first bits are the time it was made:
retention drops partitions instead of deleting rows. Their partitions lie in the schema `partitions` and are
made by partitions.py; a foreign key among the three, or to `subscription`, would stand in the way of dropping them.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from chassis.messaging.consumer import inbox_table
from chassis.replicas.tables import company_replica
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger
from svc_webhooks import rules

PARTITIONS = "partitions"
PARTITIONED = ("event", "delivery", "attempt")

metadata = MetaData()

idempotency = ledger(metadata)
audit = audit_table(metadata)
inbox = inbox_table(metadata)


def _listed(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


# A replica: rows of the gateway by their own ids. A company that has not arrived yet counts as active.

company = company_replica(metadata)

# What this context owns.

subscription_id = Sequence("subscription_id", metadata=metadata, data_type=BigInteger)

subscription = Table(
    "subscription",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("company_id", BigInteger, nullable=False),
    Column("destination_url", Text, nullable=False),
    Column("events", ARRAY(Text), nullable=False),
    Column("health", Text, nullable=False, server_default=text("'healthy'")),
    Column("failures_in_a_row", Integer, nullable=False, server_default=text("0")),
    Column("paused_at", DateTime(timezone=True), server_default=text("NULL")),
    Column("secret_prefix", Text, nullable=False),
    # The key of the vault's ring that sealed the secret, for rotation; the key itself is never here.
    Column("secret_key_id", Text, nullable=False),
    Column("secret_sealed", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("source", Text, nullable=False),
    CheckConstraint(f"health IN ({_listed(rules.HEALTHS)})", name="subscription_health"),
    CheckConstraint(f"source IN ({_listed(rules.SOURCES)})", name="subscription_source"),
    CheckConstraint(
        f"cardinality(events) > 0 AND events <@ ARRAY[{_listed(rules.EVENTS)}]", name="subscription_events"
    ),
    CheckConstraint("(health = 'paused') = (paused_at IS NOT NULL)", name="subscription_paused_at"),
    CheckConstraint(
        "(failures_in_a_row = 0) = (health IN ('healthy', 'paused'))", name="subscription_failures_in_a_row"
    ),
)
Index("subscription_page", subscription.c.company_id, subscription.c.id)

# Subscriptions that are gone and whose deliveries and attempts are still being deleted.
erasure = Table(
    "erasure",
    metadata,
    Column("subscription_id", BigInteger, primary_key=True, autoincrement=False),
    Column("asked_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
)

event = Table(
    "event",
    metadata,
    Column("event_id", UUID(as_uuid=True), primary_key=True),
    Column("company_id", BigInteger, nullable=False),
    Column("event", Text, nullable=False),
    Column("entity_id", BigInteger, nullable=False),
    Column("occurred_at", DateTime(timezone=True), nullable=False),
    # The request that caused it; empty where none did.
    Column("request_id", Text, nullable=False),
    # The envelope, byte for byte what every attempt sends.
    Column("body", LargeBinary, nullable=False),
    Column("stored_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")),
    postgresql_partition_by="RANGE (event_id)",
)

delivery = Table(
    "delivery",
    metadata,
    Column("event_id", UUID(as_uuid=True), nullable=False),
    # Held to `subscription` by the fan-out, which locks its row, and by `erasure`.
    Column("subscription_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False, server_default=text("'waiting'")),
    Column("due_at", DateTime(timezone=True)),
    # Attempts made, and how many of them were steps of the ladder: our own faults are not.
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("rung", SmallInteger, nullable=False, server_default=text("0")),
    # Raised by every claim: a sender whose lease ran out can't record over the next one.
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("leased_until", DateTime(timezone=True)),
    Column("settled_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("event_id", "subscription_id"),
    CheckConstraint(f"state IN ({_listed(rules.DELIVERY_STATES)})", name="delivery_state"),
    CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="delivery_due_at"),
    CheckConstraint("(state = 'waiting') = (settled_at IS NULL)", name="delivery_settled_at"),
    CheckConstraint("state = 'waiting' OR leased_until IS NULL", name="delivery_leased_until"),
    CheckConstraint("0 <= rung AND rung <= attempts", name="delivery_rung"),
    postgresql_partition_by="RANGE (event_id)",
)
Index(
    "delivery_due",
    delivery.c.subscription_id,
    delivery.c.due_at,
    postgresql_where=text("state = 'waiting'"),
)
Index("delivery_of_subscription", delivery.c.subscription_id, delivery.c.event_id)
Index(
    "delivery_parked",
    delivery.c.subscription_id,
    delivery.c.event_id,
    postgresql_where=text("state = 'parked'"),
)

attempt = Table(
    "attempt",
    metadata,
    Column("event_id", UUID(as_uuid=True), nullable=False),
    Column("subscription_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("cause", Text, nullable=False, server_default=text("'sweep'")),
    Column("started_at", DateTime(timezone=True), nullable=False),
    # Of the whole attempt; until the connection stood, and from then on for TLS (null with a kept connection); from the
    # start to the first byte of the response.
    Column("duration_milliseconds", Integer, nullable=False),
    Column("connect_milliseconds", Integer),
    Column("tls_milliseconds", Integer),
    Column("first_byte_milliseconds", Integer),
    # What was dialled; null where it did not come to that.
    Column("address", Text),
    Column("status", SmallInteger),
    Column("error", Text, nullable=False),
    Column("response_excerpt", LargeBinary, nullable=False),
    # The delivery's, after this attempt.
    Column("state", Text, nullable=False),
    Column("due_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("event_id", "subscription_id", "number"),
    CheckConstraint(f"cause IN ({_listed(rules.ATTEMPT_CAUSES)})", name="attempt_cause"),
    CheckConstraint(f"state IN ({_listed(rules.DELIVERY_STATES)})", name="attempt_state"),
    CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="attempt_due_at"),
    CheckConstraint("number > 0", name="attempt_number"),
    # A 2xx alone is not success: a response that never ended is a timeout.
    CheckConstraint("error <> '' OR (status IS NOT NULL AND status BETWEEN 200 AND 299)", name="attempt_succeeded"),
    postgresql_partition_by="RANGE (event_id)",
)
