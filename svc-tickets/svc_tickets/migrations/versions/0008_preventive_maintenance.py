"""preventive maintenance

Revision ID: 0008
Revises: 0007
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute(CreateSequence(sa.Sequence("pm_task_id", data_type=sa.BigInteger)))
    op.create_table(
        "pm_task",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('pm_task_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("task_name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'Open'"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=True),
        sa.Column("area", sa.Text(), nullable=True),
        sa.Column("asset_id", sa.BigInteger(), nullable=True),
        sa.Column("due_date", sa.Date(), nullable=False),
        sa.Column("repeat_days", sa.Integer(), nullable=True),
        sa.Column("repeat_months", sa.Integer(), nullable=True),
        sa.Column("day_of_month", sa.Integer(), nullable=True),
        sa.Column("previous_id", sa.BigInteger(), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stale_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("(status = 'Cancelled') = (cancelled_at IS NOT NULL)", name="pm_task_cancelled_at"),
        sa.CheckConstraint("(status = 'Completed') = (completed_at IS NOT NULL)", name="pm_task_completed_at"),
        sa.CheckConstraint("source IN ('staff', 'import')", name="pm_task_source"),
        sa.CheckConstraint("status IN ('Open', 'Completed', 'Cancelled')", name="pm_task_status"),
        sa.CheckConstraint("(repeat_months IS NULL) = (day_of_month IS NULL)", name="pm_task_day_of_month"),
        sa.CheckConstraint("repeat_days IS NULL OR repeat_months IS NULL", name="pm_task_repeat"),
        sa.CheckConstraint("unit_id IS NULL OR area IS NULL", name="pm_task_place"),
        sa.CheckConstraint("updated_at >= created_at", name="pm_task_updated_after_created"),
        sa.ForeignKeyConstraint(
            ["asset_id"],
            ["asset.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "previous_id"], ["pm_task.company_id", "pm_task.id"], name="pm_task_after"
        ),
        sa.ForeignKeyConstraint(
            ["property_id"],
            ["property.id"],
        ),
        sa.ForeignKeyConstraint(
            ["unit_id"],
            ["unit.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="pm_task_external_id"),
        sa.UniqueConstraint("company_id", "previous_id", name="pm_task_previous"),
    )
    op.create_index(
        "pm_task_due",
        "pm_task",
        ["company_id", "due_date"],
        unique=False,
        postgresql_where=sa.text("status = 'Open' AND stale_at IS NULL"),
    )
    op.create_index("pm_task_of_property", "pm_task", ["company_id", "property_id", "id"], unique=False)
    op.create_index(
        "pm_task_open", "pm_task", ["company_id", "id"], unique=False, postgresql_where=sa.text("status = 'Open'")
    )
