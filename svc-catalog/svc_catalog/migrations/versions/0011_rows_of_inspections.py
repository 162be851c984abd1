"""rows of inspections

Revision ID: 0011
Revises: 0010
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("inspection_row_id", data_type=sa.BigInteger)))
    op.create_table(
        "inspection_row",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("inspection_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('inspection_row_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("category", sa.Text(), nullable=True),
        sa.Column("priority", sa.Text(), nullable=True),
        sa.Column("asset_id", sa.BigInteger(), nullable=True),
        sa.Column("photo_url", sa.Text(), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("result <> 'failed' OR failed_at IS NOT NULL", name="inspection_row_failed_at"),
        sa.CheckConstraint("result IN ('passed', 'failed')", name="inspection_row_result"),
        sa.ForeignKeyConstraint(["company_id", "asset_id"], ["asset.company_id", "asset.id"]),
        sa.ForeignKeyConstraint(["company_id", "inspection_id"], ["inspection.company_id", "inspection.id"]),
        sa.PrimaryKeyConstraint("company_id", "inspection_id", "id"),
        sa.UniqueConstraint("company_id", "inspection_id", "position", name="inspection_row_position"),
    )
    op.add_column("inspection", sa.Column("stale_announced_at", sa.DateTime(timezone=True), nullable=True))
    # What is overdue already was so before anybody could be told: as with an import, it counts as announced.
    op.execute(
        "UPDATE inspection SET stale_announced_at = now()"
        " WHERE status IN ('Scheduled', 'In Progress') AND scheduled_date < current_date"
    )
    op.create_index(
        "inspection_stale",
        "inspection",
        ["company_id", "scheduled_date"],
        unique=False,
        postgresql_where=sa.text(
            "(kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL)"
            " AND status IN ('Scheduled', 'In Progress') AND stale_announced_at IS NULL AND scheduled_date IS NOT NULL"
        ),
    )
