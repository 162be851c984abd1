"""Reports have figures by month and day, and what each completed inspection adds to them.

Revision ID: 0013_inspections_have_reports
Revises: 0012_inspections_have_templates
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0013_inspections_have_reports"
down_revision: str | None = "0012_inspections_have_templates"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "report_fact",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("record_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("company_id", "kind", "record_id"),
    )
    op.create_table(
        "report_figure",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("grain", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Text(), nullable=False),
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("measure", sa.Text(), nullable=False),
        sa.Column("starts_on", sa.Date(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("histogram", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("company_id", "grain", "dimension", "property_id", "measure", "starts_on", "value"),
    )
