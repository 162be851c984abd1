"""Turns can be planned: a unit has at most one active turn that has begun, and planned ones behind it.

All turns from before have begun.

Revision ID: 0007_turns_are_planned
Revises: 0006_turns_can_be_followed
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007_turns_are_planned"
down_revision: str | None = "0006_turns_can_be_followed"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {"transition": "ACCESS EXCLUSIVE", "unit_status_change": "ACCESS EXCLUSIVE"}

_CHECKS = {
    "transition_begun_before_completed": "has_begun OR status <> 'completed'",
    "transition_planned_for_a_date": "has_begun OR status <> 'active' OR move_in_date IS NOT NULL",
    # The release before raises a turn's version and does not know this column, so it can't write to a planned turn.
    "transition_planned_version": "CASE WHEN has_begun THEN planned_version IS NULL"
    " ELSE planned_version IS NOT DISTINCT FROM version END",
    "transition_began_at": "has_begun OR began_at IS NULL",
}
_PLANNED = sa.text("status = 'active' AND NOT has_begun")


def upgrade() -> None:
    # A constant default rewrites no row.
    op.add_column("transition", sa.Column("has_begun", sa.Boolean(), server_default=sa.text("true"), nullable=False))
    op.add_column("transition", sa.Column("predecessor_id", sa.BigInteger(), nullable=True))
    op.add_column("transition", sa.Column("began_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("transition", sa.Column("planned_version", sa.BigInteger(), nullable=True))
    for name, condition in _CHECKS.items():
        # No stored row has the new columns.
        op.create_check_constraint(name, "transition", condition, postgresql_not_valid=True)
        op.execute(f"ALTER TABLE transition VALIDATE CONSTRAINT {name}")
    # The index of one active turn a unit becomes that of one that has begun. It is there at every instant.
    op.create_index(
        "transition_begun_in_unit",
        "transition",
        ["company_id", "unit_id"],
        unique=True,
        postgresql_where=sa.text("status = 'active' AND has_begun"),
    )
    op.drop_index("transition_active_in_unit", "transition")
    op.execute("ALTER INDEX transition_begun_in_unit RENAME TO transition_active_in_unit")
    op.create_index(
        "transition_successor",
        "transition",
        ["company_id", "predecessor_id"],
        unique=True,
        postgresql_where=sa.text("status = 'active' AND predecessor_id IS NOT NULL"),
    )
    for name, columns in (
        ("transition_planned_in_unit", ["unit_id", "move_in_date", "id"]),
        ("transition_to_begin", ["company_id", "move_in_date", "id"]),
    ):
        op.create_index(name, "transition", columns, postgresql_where=_PLANNED)
    op.drop_constraint("unit_status_change_cause", "unit_status_change", type_="check")
    causes = (
        "'notice', 'move_in', 'board', 'notice_cancelled', 'vacated', 'import', 'turn_cancelled', 'move_in_changed'"
    )
    op.create_check_constraint("unit_status_change_cause", "unit_status_change", f"cause IN ({causes})")
