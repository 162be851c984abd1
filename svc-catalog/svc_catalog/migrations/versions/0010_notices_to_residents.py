"""notices to residents

Revision ID: 0010
Revises: 0009
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute(CreateSequence(sa.Sequence("notice_id", data_type=sa.BigInteger)))
    op.create_table(
        "notice",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('notice_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("when", sa.Text(), nullable=False),
        sa.Column("area", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("source IN ('staff', 'import')", name="notice_source"),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="notice_external_id"),
        sa.UniqueConstraint("company_id", "property_id", "id", name="notice_of_property"),
    )
    op.create_table(
        "notice_unit",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("notice_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("unit_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "notice_id"],
            ["notice.company_id", "notice.property_id", "notice.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "unit_id"],
            ["unit.company_id", "unit.property_id", "unit.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "notice_id", "unit_id"),
    )
