"""The log of requests by day, in place of the refused requests.

Revision ID: 0007_request_log
Revises: 0006_idempotency_notes
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007_request_log"
down_revision: str | None = "0006_idempotency_notes"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # The days of `request` are made here as they come (`chassis/db/partitions.py`).
    op.execute("CREATE SCHEMA partitions")
    op.create_table(
        "request",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("api_key_id", sa.BigInteger(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("request_body", sa.Text()),
        sa.Column("response_body", sa.Text()),
        sa.PrimaryKeyConstraint("company_id", "id"),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_index("request_of_key", "request", ["company_id", "api_key_id", "id"])
    op.create_index("request_refused", "request", ["company_id", "id"], postgresql_where=sa.text("status >= 400"))
    op.create_index("request_request_id", "request", ["request_id"])
    op.create_table(
        "request_end",
        sa.Column("is_only", sa.Boolean(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("is_only", name="request_end_is_only"),
        sa.PrimaryKeyConstraint("is_only"),
    )
    op.drop_table("refused_request")
