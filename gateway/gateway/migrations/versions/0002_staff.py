"""staff

Revision ID: 0002
Revises: 0001
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute(CreateSequence(sa.Sequence("staff_id", data_type=sa.BigInteger())))
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
        sa.CheckConstraint("source IN ('import')", name="staff_source"),
        sa.CheckConstraint("char_length(name) BETWEEN 1 AND 200", name="staff_name"),
        sa.CheckConstraint("email = lower(email)", name="staff_email_lower_case"),
        sa.ForeignKeyConstraint(
            ["company_id"],
            ["company.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="staff_external_id"),
    )
