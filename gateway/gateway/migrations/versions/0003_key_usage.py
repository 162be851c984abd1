"""Keys that expire and are rotated, their usage, and indexes for the filters of the audit log.

Revision ID: 0003_key_usage
Revises: 0002_accounts
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003_key_usage"
down_revision: str | None = "0002_accounts"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {"api_key": "ACCESS EXCLUSIVE", "audit": "SHARE"}


def upgrade() -> None:
    op.create_table(
        "key_last_use",
        sa.Column("api_key_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("used_for", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("api_key_id"),
    )
    op.create_table(
        "key_usage",
        sa.Column("api_key_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("succeeded", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("refused", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("rate_limited", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("api_key_id", "hour"),
    )
    op.create_index("key_usage_hour", "key_usage", ["hour"])
    op.create_index("key_usage_of_company", "key_usage", ["company_id", "hour"])
    op.create_table(
        "refused_request",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("api_key_id", sa.BigInteger(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("refused_request_of_company", "refused_request", ["company_id", "requested_at", "id"])
    op.create_index("refused_request_of_key", "refused_request", ["company_id", "api_key_id", "requested_at", "id"])
    op.create_index("refused_request_requested_at", "refused_request", ["requested_at"])
    op.create_table(
        "usage_writer",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("part", sa.BigInteger(), nullable=False),
        sa.Column(
            "written_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.add_column("api_key", sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("api_key", sa.Column("replaces", sa.BigInteger(), nullable=True))
    op.create_index(
        "api_key_not_revoked", "api_key", ["company_id", "id"], postgresql_where=sa.text("revoked_at IS NULL")
    )
    op.create_index(
        "api_key_replaces", "api_key", ["replaces"], unique=True, postgresql_where=sa.text("replaces IS NOT NULL")
    )
    op.create_foreign_key("api_key_replaces_a_key", "api_key", "api_key", ["replaces"], ["id"])
    op.create_index("audit_of_actor", "audit", ["company_id", "actor", "id"])
    op.create_index(
        "audit_of_actor_and_kind",
        "audit",
        [sa.literal_column("hashtextextended(subject, hashtextextended(actor, company_id))"), "id"],
    )
    op.create_index("audit_of_request", "audit", ["company_id", "request_id", "id"])
    op.create_index("audit_recorded", "audit", ["company_id", "recorded_at", "id"])
