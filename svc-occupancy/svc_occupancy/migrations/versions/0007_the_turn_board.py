"""the turn board

Revision ID: 0007
Revises: 0006
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute(CreateSequence(sa.Sequence("turn_task_id", data_type=sa.BigInteger)))
    op.create_table(
        "turn_task",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('turn_task_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("transition_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=False),
        sa.Column("task_type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("scheduled_date", sa.Date(), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stale_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("(status = 'cancelled') = (cancelled_at IS NOT NULL)", name="turn_task_cancelled_at"),
        sa.CheckConstraint("(status = 'completed') = (completed_at IS NOT NULL)", name="turn_task_completed_at"),
        sa.CheckConstraint("source IN ('staff', 'import')", name="turn_task_source"),
        sa.CheckConstraint("status IN ('open', 'completed', 'cancelled')", name="turn_task_status"),
        sa.CheckConstraint("char_length(task_type) <= 200", name="turn_task_task_type"),
        sa.CheckConstraint("updated_at >= created_at", name="turn_task_updated_after_created"),
        sa.ForeignKeyConstraint(
            ["company_id", "transition_id"],
            ["transition.company_id", "transition.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
    )
    op.create_index("turn_task_external_id", "turn_task", ["company_id", "external_id"], unique=True)
    op.create_index("turn_task_of_transition", "turn_task", ["company_id", "transition_id", "id"], unique=False)
    op.create_index(
        "turn_task_open_in_unit",
        "turn_task",
        ["company_id", "unit_id", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'open'"),
    )
    op.create_index(
        "turn_task_to_tell_of",
        "turn_task",
        ["company_id", "scheduled_date", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'open' AND stale_at IS NULL"),
    )
    op.add_column("transition", sa.Column("vacated_on", sa.Date(), nullable=True))
    op.create_index(
        "transition_to_vacate",
        "transition",
        ["company_id", "move_out_date", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'active' AND move_out_date IS DISTINCT FROM vacated_on"),
    )
    op.create_index("unit_page", "unit", ["company_id", "id"], unique=False)
    op.create_index("unit_page_of_property", "unit", ["company_id", "property_id", "id"], unique=False)
    # Who lives on in a unit after the date, or what it is since, was said on purpose; of a notice nobody has said more.
    op.execute(
        "UPDATE transition SET vacated_on = move_out_date FROM unit_state"
        " WHERE unit_state.company_id = transition.company_id AND unit_state.unit_id = transition.unit_id"
        " AND status = 'active' AND move_out_date < current_date AND unit_status <> 'Notice'"
    )
