"""Attempts in detail, and histories that outlive their subscription

Revision ID: 0002
Revises: 0001
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

# What the attempts that are there led to: their successor, or where their delivery stands.
OUTCOMES = """
    UPDATE attempt SET state = found.state, due_at = found.due_at
    FROM (
        SELECT made.event_id, made.subscription_id, made.number,
               CASE WHEN made.next_at IS NULL THEN delivery.state ELSE 'waiting' END AS state,
               coalesce(made.next_at, delivery.due_at) AS due_at
        FROM (
            SELECT event_id, subscription_id, number,
                   lead(started_at) OVER (PARTITION BY event_id, subscription_id ORDER BY number) AS next_at
            FROM attempt
        ) made
        JOIN delivery USING (event_id, subscription_id)
    ) found
    WHERE attempt.event_id = found.event_id
      AND attempt.subscription_id = found.subscription_id
      AND attempt.number = found.number
"""


def upgrade() -> None:
    op.create_table(
        "erasure",
        sa.Column("subscription_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("subscription_id"),
    )
    op.add_column("attempt", sa.Column("cause", sa.Text(), server_default=sa.text("'sweep'"), nullable=False))
    op.add_column("attempt", sa.Column("connect_milliseconds", sa.Integer(), nullable=True))
    op.add_column("attempt", sa.Column("tls_milliseconds", sa.Integer(), nullable=True))
    op.add_column("attempt", sa.Column("first_byte_milliseconds", sa.Integer(), nullable=True))
    op.add_column("attempt", sa.Column("address", sa.Text(), nullable=True))
    op.add_column("attempt", sa.Column("state", sa.Text(), nullable=True))
    op.add_column("attempt", sa.Column("due_at", sa.DateTime(timezone=True), nullable=True))
    op.execute(OUTCOMES)
    op.alter_column("attempt", "state", nullable=False)
    op.create_check_constraint("attempt_cause", "attempt", "cause IN ('sweep', 'retry')")
    op.create_check_constraint("attempt_state", "attempt", "state IN ('waiting', 'succeeded', 'parked')")
    op.create_check_constraint("attempt_due_at", "attempt", "(state = 'waiting') = (due_at IS NOT NULL)")
    op.create_index(
        "delivery_parked",
        "delivery",
        ["subscription_id", "event_id"],
        unique=False,
        postgresql_where=sa.text("state = 'parked'"),
    )
    op.drop_constraint("delivery_subscription_id_fkey", "delivery", type_="foreignkey")
