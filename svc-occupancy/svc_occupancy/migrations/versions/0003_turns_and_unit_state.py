"""turns and unit state

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
    op.execute(CreateSequence(sa.Sequence("transition_id", data_type=sa.BigInteger)))
    op.create_table(
        "transition",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('transition_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("move_out_date", sa.Date(), nullable=True),
        sa.Column("move_in_date", sa.Date(), nullable=True),
        sa.Column("projected_ready_on", sa.Date(), nullable=True),
        sa.Column("occupancy_source", sa.Text(), nullable=True),
        sa.Column("occupancy_fed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("source IN ('api', 'staff', 'import')", name="transition_source"),
        sa.CheckConstraint("status IN ('active', 'completed', 'cancelled')", name="transition_status"),
        sa.CheckConstraint("char_length(occupancy_source) BETWEEN 1 AND 40", name="transition_occupancy_source"),
        sa.CheckConstraint(
            "occupancy_fed_at IS NULL OR occupancy_source IS NOT NULL", name="transition_fed_by_somebody"
        ),
        sa.CheckConstraint(
            "projected_ready_on IS NULL OR move_out_date IS NOT NULL", name="transition_ready_after_move_out"
        ),
        sa.CheckConstraint("updated_at >= created_at", name="transition_updated_after_created"),
        sa.ForeignKeyConstraint(
            ["property_id"],
            ["property.id"],
        ),
        sa.ForeignKeyConstraint(
            ["unit_id"],
            ["unit.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="transition_external_id"),
    )
    op.create_index(
        "transition_active_in_unit",
        "transition",
        ["company_id", "unit_id"],
        unique=True,
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_index("transition_page_of_property", "transition", ["company_id", "property_id", "id"], unique=False)
    op.create_index("transition_page_of_status", "transition", ["company_id", "status", "id"], unique=False)
    op.create_index("transition_page_of_unit", "transition", ["company_id", "unit_id", "id"], unique=False)
    op.create_index("transition_updated", "transition", ["company_id", "updated_at"], unique=False)
    op.create_table(
        "unit_state",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("unit_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("unit_status", sa.Text(), nullable=False),
        sa.Column("projected_ready_on", sa.Date(), nullable=True),
        sa.CheckConstraint(
            "unit_status IN ('Occupied', 'Notice', 'Vacant Not Ready', 'Vacant Ready', 'Down')",
            name="unit_state_unit_status",
        ),
        sa.ForeignKeyConstraint(
            ["unit_id"],
            ["unit.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "unit_id"),
    )
