"""The tables of svc-webhooks: subscriptions, and the events, deliveries and attempts of their feed.

Revision ID: 0001_initial
Revises:
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0001_initial"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # The days of event, delivery and attempt are made here as they come (`svc_webhooks/partitions.py`).
    op.execute("CREATE SCHEMA partitions")
    op.execute("CREATE SEQUENCE subscription_id AS bigint")
    op.create_table(
        "attempt",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column("subscription_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("cause", sa.Text(), server_default=sa.text("'sweep'"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_milliseconds", sa.Integer(), nullable=False),
        sa.Column("connect_milliseconds", sa.Integer(), nullable=True),
        sa.Column("tls_milliseconds", sa.Integer(), nullable=True),
        sa.Column("first_byte_milliseconds", sa.Integer(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("response_excerpt", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="attempt_due_at"),
        sa.CheckConstraint("cause IN ('sweep', 'retry')", name="attempt_cause"),
        sa.CheckConstraint(
            "error <> '' OR (status IS NOT NULL AND status BETWEEN 200 AND 299)", name="attempt_succeeded"
        ),
        sa.CheckConstraint("state IN ('waiting', 'succeeded', 'parked')", name="attempt_state"),
        sa.CheckConstraint("number > 0", name="attempt_number"),
        sa.PrimaryKeyConstraint("event_id", "subscription_id", "number"),
        postgresql_partition_by="RANGE (event_id)",
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("before", postgresql.JSONB(), nullable=False),
        sa.Column("after", postgresql.JSONB(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("audit_of_company", "audit", ["company_id", "id"])
    op.create_index("audit_of_kind", "audit", ["company_id", "subject", "id"])
    op.create_index("audit_of_subject", "audit", ["company_id", "subject", "subject_id", "id"])
    op.create_table(
        "company",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("active", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("timezone", sa.Text(), server_default=sa.text("'UTC'"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "delivery",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column("subscription_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("rung", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="delivery_due_at"),
        sa.CheckConstraint("(state = 'waiting') = (settled_at IS NULL)", name="delivery_settled_at"),
        sa.CheckConstraint("state = 'waiting' OR leased_until IS NULL", name="delivery_leased_until"),
        sa.CheckConstraint("state IN ('waiting', 'succeeded', 'parked')", name="delivery_state"),
        sa.CheckConstraint("0 <= rung AND rung <= attempts", name="delivery_rung"),
        sa.PrimaryKeyConstraint("event_id", "subscription_id"),
        postgresql_partition_by="RANGE (event_id)",
    )
    op.create_index(
        "delivery_due", "delivery", ["subscription_id", "due_at"], postgresql_where=sa.text("state = 'waiting'")
    )
    op.create_index("delivery_of_subscription", "delivery", ["subscription_id", "event_id"])
    op.create_index(
        "delivery_parked", "delivery", ["subscription_id", "event_id"], postgresql_where=sa.text("state = 'parked'")
    )
    op.create_table(
        "erasure",
        sa.Column("subscription_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("subscription_id"),
    )
    op.create_table(
        "event",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("entity_id", sa.BigInteger(), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("stored_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("event_id"),
        postgresql_partition_by="RANGE (event_id)",
    )
    op.create_table(
        "idempotency",
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("api_key_id", sa.BigInteger(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("reply", sa.LargeBinary(), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("company_id", "api_key_id", "idempotency_key", name="idempotency_claim"),
    )
    op.create_index("ix_idempotency_recorded_at", "idempotency", ["recorded_at"])
    op.create_table(
        "inbox",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column(
            "applied_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("event_id"),
    )
    op.create_index("ix_inbox_applied_at", "inbox", ["applied_at"])
    op.create_table(
        "reconciled",
        sa.Column("producer", sa.Text(), nullable=False),
        sa.Column("recorded_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("producer"),
    )
    op.create_table(
        "subscription",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("destination_url", sa.Text(), nullable=False),
        sa.Column("events", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("health", sa.Text(), server_default=sa.text("'healthy'"), nullable=False),
        sa.Column("failures_in_a_row", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), server_default=sa.text("NULL"), nullable=True),
        sa.Column("secret_prefix", sa.Text(), nullable=False),
        sa.Column("secret_key_id", sa.Text(), nullable=False),
        sa.Column("secret_sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "(failures_in_a_row = 0) = (health IN ('healthy', 'paused'))", name="subscription_failures_in_a_row"
        ),
        sa.CheckConstraint("(health = 'paused') = (paused_at IS NOT NULL)", name="subscription_paused_at"),
        sa.CheckConstraint(
            "cardinality(events) > 0 AND events <@ ARRAY['inspection.stale', 'pm.stale', 'property.notice.published', 'ticket.created', 'ticket.stale', 'ticket.status_changed', 'turn.schedule_changed', 'turn.status_changed', 'turn.task.stale', 'vendor.hold']",
            name="subscription_events",
        ),
        sa.CheckConstraint("health IN ('healthy', 'retrying', 'dead_lettered', 'paused')", name="subscription_health"),
        sa.CheckConstraint("source IN ('api')", name="subscription_source"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("subscription_page", "subscription", ["company_id", "id"])
