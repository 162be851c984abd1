"""Inspections have templates: named lists of rows, by type.

Revision ID: 0012_inspections_have_templates
Revises: 0011_imports_are_undone
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0012_inspections_have_templates"
down_revision: str | None = "0011_imports_are_undone"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute("CREATE SEQUENCE inspection_template_id AS bigint")
    op.create_table(
        "inspection_template",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('inspection_template_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("inspection_type", sa.Text(), nullable=True),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("rows", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "NOT is_default OR inspection_type IS NOT NULL", name="inspection_template_default_of_a_type"
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
    )
    op.create_index(
        "inspection_template_default",
        "inspection_template",
        ["company_id", sa.literal_column("lower(inspection_type)")],
        unique=True,
        postgresql_where=sa.text("is_default"),
    )
    op.create_index(
        "inspection_template_named",
        "inspection_template",
        ["company_id", sa.literal_column("lower(name)")],
        unique=True,
    )
