"""The gateway's tables: companies, administrators, staff, API keys, the audit log and the outbox.

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
    op.execute("CREATE SEQUENCE staff_id AS bigint")
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
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "updated_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("char_length(name) BETWEEN 1 AND 200", name="company_name"),
        sa.PrimaryKeyConstraint("id"),
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
        "outbox",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("claimed_until", sa.DateTime(timezone=True), server_default=sa.text("'-infinity'"), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), server_default=sa.text("NULL"), nullable=True),
        sa.PrimaryKeyConstraint("event_id"),
    )
    op.create_index("outbox_recorded", "outbox", ["recorded_at"])
    op.create_index("outbox_unpublished", "outbox", ["event_id"], postgresql_where=sa.text("published_at IS NULL"))
    op.create_table(
        "outbox_confirmation",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("recorded_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("consumer"),
    )
    op.create_table(
        "administrator",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("password", sa.Text(), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("email = lower(email)", name="administrator_email_lower_case"),
        sa.ForeignKeyConstraint(["company_id"], ["company.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("company_id", "id", name="administrator_of_company"),
        sa.UniqueConstraint("email", name="administrator_email"),
    )
    op.create_table(
        "staff",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('staff_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("source IN ('staff', 'import')", name="staff_source"),
        sa.CheckConstraint("char_length(name) BETWEEN 1 AND 200", name="staff_name"),
        sa.CheckConstraint("email = lower(email)", name="staff_email_lower_case"),
        sa.ForeignKeyConstraint(["company_id"], ["company.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="staff_external_id"),
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("administrator_id", sa.BigInteger(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("scope IN ('read', 'write', 'webhook_only')", name="api_key_scope"),
        sa.CheckConstraint("octet_length(digest) = 32", name="api_key_digest_length"),
        sa.ForeignKeyConstraint(
            ["company_id", "administrator_id"],
            ["administrator.company_id", "administrator.id"],
            name="api_key_administrator_of_the_same_company",
        ),
        sa.ForeignKeyConstraint(["company_id"], ["company.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest", name="api_key_digest"),
    )
    op.create_index("api_key_of_company", "api_key", ["company_id", "id"])
