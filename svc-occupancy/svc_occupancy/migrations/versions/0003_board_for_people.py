"""The board for people: the changes of units' status, and indexes of units and open tasks by date.

Revision ID: 0003_board_for_people
Revises: 0002_audit_filters
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003_board_for_people"
down_revision: str | None = "0002_audit_filters"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {"turn_task": "ACCESS EXCLUSIVE", "unit_state": "ACCESS EXCLUSIVE"}


def upgrade() -> None:
    op.create_table(
        "unit_status_change",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("unit_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("from_status", sa.Text(), nullable=True),
        sa.Column("to_status", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "cause IN ('notice', 'move_in', 'board', 'notice_cancelled', 'vacated', 'import')",
            name="unit_status_change_cause",
        ),
        sa.CheckConstraint(
            "from_status IN ('Occupied', 'Notice', 'Vacant Not Ready', 'Vacant Ready', 'Down')",
            name="unit_status_change_from_status",
        ),
        sa.CheckConstraint(
            "to_status IN ('Occupied', 'Notice', 'Vacant Not Ready', 'Vacant Ready', 'Down')",
            name="unit_status_change_to_status",
        ),
        sa.PrimaryKeyConstraint("company_id", "unit_id", "version"),
    )
    # A unit stays in its property, and a task in its unit: the place of every stored row is known.
    op.execute("ALTER TABLE unit_state ADD COLUMN property_id bigint")
    op.execute("UPDATE unit_state SET property_id = unit.property_id FROM unit WHERE unit.id = unit_state.unit_id")
    op.execute("ALTER TABLE turn_task ADD COLUMN property_id bigint")
    op.execute(
        "UPDATE turn_task SET property_id = transition.property_id FROM transition"
        " WHERE transition.company_id = turn_task.company_id AND transition.id = turn_task.transition_id"
    )
    for table, date, key, condition, names in (
        (
            "unit_state",
            "projected_ready_on",
            ["unit_status"],
            "unit_status <> 'Occupied'",
            ("board", "board_of_property"),
        ),
        ("turn_task", "scheduled_date", [], "status = 'open'", ("open", "open_in_property")),
    ):
        dated = [*key, sa.literal_column(f"coalesce({date}, 'infinity'::date)")]
        last = "unit_id" if table == "unit_state" else "id"
        for name, place in zip(names, ([], ["property_id"]), strict=True):
            columns = ["company_id", *place, *dated, last]
            op.create_index(f"{table}_{name}", table, columns, postgresql_where=sa.text(condition))
        op.create_index(f"{table}_unplaced", table, [last], postgresql_where=sa.text("property_id IS NULL"))
