"""holds of vendors

Revision ID: 0009
Revises: 0008
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("vendor", sa.Column("on_hold", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("vendor", sa.Column("hold_reason", sa.Text(), nullable=True))
    op.add_column("vendor", sa.Column("held_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "vendor", sa.Column("insurance_tracked", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.add_column("vendor", sa.Column("insurance_expires_on", sa.Date(), nullable=True))
    op.add_column("vendor", sa.Column("lapse_held_for", sa.Date(), nullable=True))
    op.add_column("vendor", sa.Column("compliance_due_on", sa.Date(), nullable=True))
    op.create_check_constraint("vendor_hold_has_a_reason", "vendor", "on_hold = (hold_reason IS NOT NULL)")
    op.create_check_constraint("vendor_hold_has_an_instant", "vendor", "NOT on_hold OR held_at IS NOT NULL")
    op.create_check_constraint(
        "vendor_insurance_is_tracked",
        "vendor",
        "insurance_tracked OR num_nonnulls(insurance_expires_on, lapse_held_for, compliance_due_on) = 0",
    )
    op.create_index(
        "vendor_compliance_due",
        "vendor",
        ["company_id", "compliance_due_on", "id"],
        unique=False,
        postgresql_where=sa.text("compliance_due_on IS NOT NULL"),
    )
    op.create_index("vendor_on_hold", "vendor", ["company_id", "id"], unique=False, postgresql_where=sa.text("on_hold"))
