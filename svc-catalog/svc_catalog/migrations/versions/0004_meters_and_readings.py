"""meters and readings

Revision ID: 0004
Revises: 0003
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    for kind in ("meter", "reading"):
        op.execute(CreateSequence(sa.Sequence(f"{kind}_id", data_type=sa.BigInteger)))
    op.create_table(
        "meter",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('meter_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("utility_type", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=True),
        sa.Column("meter_number", sa.Text(), nullable=True),
        sa.Column("unit_of_measure", sa.Text(), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("(scope = 'unit') = (unit_id IS NOT NULL)", name="meter_of_a_unit_names_it"),
        sa.CheckConstraint("scope IN ('master', 'common_area', 'unit')", name="meter_scope"),
        sa.CheckConstraint("source IN ('staff', 'import')", name="meter_source"),
        sa.CheckConstraint(
            "utility_type IN ('electric', 'gas', 'water', 'sewer', 'trash', 'other')", name="meter_utility_type"
        ),
        sa.CheckConstraint("updated_at >= created_at", name="meter_updated_after_created"),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "unit_id"],
            ["unit.company_id", "unit.property_id", "unit.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="meter_external_id"),
    )
    op.create_index("meter_page_of_property", "meter", ["company_id", "property_id", "id"], unique=False)
    op.create_index("meter_page_of_unit", "meter", ["company_id", "unit_id", "id"], unique=False)
    op.create_index("meter_updated", "meter", ["company_id", "updated_at"], unique=False)
    op.create_table(
        "reading",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("meter_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('reading_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("period_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("period_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("consumption", sa.Double(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("is_estimated", sa.Boolean(), nullable=False),
        sa.Column("unit_of_measure", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("source IN ('staff', 'import')", name="reading_source"),
        sa.CheckConstraint("consumption BETWEEN -1000000000000000 AND 1000000000000000", name="reading_consumption"),
        sa.CheckConstraint("cost BETWEEN -1000000000000000 AND 1000000000000000", name="reading_cost"),
        sa.CheckConstraint("period_end >= period_start", name="reading_ends_after_it_starts"),
        sa.ForeignKeyConstraint(
            ["company_id", "meter_id"],
            ["meter.company_id", "meter.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "meter_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="reading_external_id"),
    )
