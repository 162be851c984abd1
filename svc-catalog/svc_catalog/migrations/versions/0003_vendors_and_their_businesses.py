"""vendors and their businesses

Revision ID: 0003
Revises: 0002
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    for kind in ("business", "vendor"):
        op.execute(CreateSequence(sa.Sequence(f"{kind}_id", data_type=sa.BigInteger)))
    op.create_table(
        "business",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('business_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("legal_name", sa.Text(), nullable=False),
        sa.Column("website", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "legal_name", name="business_legal_name"),
    )
    op.create_table(
        "vendor",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('vendor_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("business_id", sa.BigInteger(), nullable=False),
        sa.Column("nickname", sa.Text(), nullable=True),
        sa.Column("avg_rating", sa.Double(), nullable=True),
        sa.Column("rating_count", sa.Integer(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("property_visibility", sa.Text(), nullable=False),
        sa.Column("onboarded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_compliance_state", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "last_compliance_state IN ('compliant', 'expiring', 'noncompliant', 'missing', 'unknown')",
            name="vendor_last_compliance_state",
        ),
        sa.CheckConstraint(
            "property_visibility IN ('all_properties', 'selected_properties')", name="vendor_property_visibility"
        ),
        sa.CheckConstraint("source IN ('staff', 'import')", name="vendor_source"),
        sa.CheckConstraint("avg_rating BETWEEN 0 AND 100", name="vendor_avg_rating"),
        sa.CheckConstraint("rating_count BETWEEN 0 AND 10000000", name="vendor_rating_count"),
        sa.ForeignKeyConstraint(
            ["company_id", "business_id"],
            ["business.company_id", "business.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="vendor_external_id"),
    )
