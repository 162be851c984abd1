"""Tables of deliveries and their attempts, partitioned by day: see schema.py. Constraints enforce the rules."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)

from svc_webhooks.dispatch import rules
from svc_webhooks.schema import BY_EVENT_ID, Instant, Uuid, listed, metadata

delivery = Table(
    "delivery",
    metadata,
    Column("event_id", Uuid, nullable=False),
    # No foreign key: the fan-out, which locks the subscription's row, and `erasure` maintain the reference.
    Column("subscription_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False, server_default=text("'waiting'")),
    Column("due_at", Instant),
    # attempts: all that were made. rung: those that were steps of the ladder; internal faults are not.
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("rung", SmallInteger, nullable=False, server_default=text("0")),
    # Every claim increments it, so a sender whose lease ran out can't record over the next one.
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("leased_until", Instant),
    Column("settled_at", Instant),
    PrimaryKeyConstraint("event_id", "subscription_id"),
    CheckConstraint(f"state IN ({listed(rules.DELIVERY_STATES)})", name="delivery_state"),
    CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="delivery_due_at"),
    CheckConstraint("(state = 'waiting') = (settled_at IS NULL)", name="delivery_settled_at"),
    CheckConstraint("state = 'waiting' OR leased_until IS NULL", name="delivery_leased_until"),
    CheckConstraint("0 <= rung AND rung <= attempts", name="delivery_rung"),
    postgresql_partition_by=BY_EVENT_ID,
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
    Column("event_id", Uuid, nullable=False),
    Column("subscription_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("cause", Text, nullable=False, server_default=text("'sweep'")),
    Column("started_at", Instant, nullable=False),
    # duration: of the whole attempt. connect: until the connection stood. tls: from then until TLS was agreed upon.
    # Both are null for a reused connection. first_byte: from the start to the first byte of the response.
    Column("duration_milliseconds", Integer, nullable=False),
    Column("connect_milliseconds", Integer),
    Column("tls_milliseconds", Integer),
    Column("first_byte_milliseconds", Integer),
    # The dialled address; null if no address was dialled.
    Column("address", Text),
    Column("status", SmallInteger),
    Column("error", Text, nullable=False),
    Column("response_excerpt", LargeBinary, nullable=False),
    # The delivery's state and due time after this attempt.
    Column("state", Text, nullable=False),
    Column("due_at", Instant),
    PrimaryKeyConstraint("event_id", "subscription_id", "number"),
    CheckConstraint(f"cause IN ({listed(rules.ATTEMPT_CAUSES)})", name="attempt_cause"),
    CheckConstraint(f"state IN ({listed(rules.DELIVERY_STATES)})", name="attempt_state"),
    CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="attempt_due_at"),
    CheckConstraint("number > 0", name="attempt_number"),
    # A 2xx status alone is no success: a response that never ends is a timeout.
    CheckConstraint("error <> '' OR (status IS NOT NULL AND status BETWEEN 200 AND 299)", name="attempt_succeeded"),
    postgresql_partition_by=BY_EVENT_ID,
)

# Host names and addresses that have answered 2xx, ever: those that have not may not want any deliveries. Never deleted.
answered_receiver = Table(
    "answered_receiver",
    metadata,
    Column("receiver", Text, primary_key=True),
    Column("answered_at", Instant, nullable=False, server_default=text("clock_timestamp()")),
)
