"""Subscriptions, and the events, deliveries and attempts of their feed

Revision ID: 0001
Revises:
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateSequence

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute("CREATE SCHEMA partitions")
    op.execute(CreateSequence(sa.Sequence("subscription_id", data_type=sa.BigInteger)))
    op.create_table(
        "attempt",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column("subscription_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.SmallInteger(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_milliseconds", sa.Integer(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("response_excerpt", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint(
            "error <> '' OR (status IS NOT NULL AND status BETWEEN 200 AND 299)", name="attempt_succeeded"
        ),
        sa.CheckConstraint("number > 0", name="attempt_number"),
        sa.PrimaryKeyConstraint("event_id", "subscription_id", "number"),
        postgresql_partition_by="RANGE (event_id)",
    )
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
    op.create_index(op.f("ix_idempotency_recorded_at"), "idempotency", ["recorded_at"], unique=False)
    op.create_table(
        "inbox",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column(
            "applied_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("event_id"),
    )
    op.create_index(op.f("ix_inbox_applied_at"), "inbox", ["applied_at"], unique=False)
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
            "cardinality(events) > 0 AND events <@ ARRAY["
            "'inspection.stale', 'pm.stale', 'property.notice.published', 'ticket.created', 'ticket.stale', "
            "'ticket.status_changed', 'turn.schedule_changed', 'turn.status_changed', 'turn.task.stale', "
            "'vendor.hold']",
            name="subscription_events",
        ),
        sa.CheckConstraint("health IN ('healthy', 'retrying', 'dead_lettered', 'paused')", name="subscription_health"),
        sa.CheckConstraint("source IN ('api')", name="subscription_source"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("subscription_page", "subscription", ["company_id", "id"], unique=False)
    op.create_table(
        "delivery",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column("subscription_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("rung", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="delivery_due_at"),
        sa.CheckConstraint("(state = 'waiting') = (settled_at IS NULL)", name="delivery_settled_at"),
        sa.CheckConstraint("state = 'waiting' OR leased_until IS NULL", name="delivery_leased_until"),
        sa.CheckConstraint("state IN ('waiting', 'succeeded', 'parked')", name="delivery_state"),
        sa.CheckConstraint("0 <= rung AND rung <= attempts", name="delivery_rung"),
        sa.ForeignKeyConstraint(
            ["subscription_id"],
            ["subscription.id"],
        ),
        sa.PrimaryKeyConstraint("event_id", "subscription_id"),
        postgresql_partition_by="RANGE (event_id)",
    )
    op.create_index(
        "delivery_due",
        "delivery",
        ["subscription_id", "due_at"],
        unique=False,
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index("delivery_of_subscription", "delivery", ["subscription_id", "event_id"], unique=False)
