"""Make-ready tasks have an assignee, a vendor and an order; templates of tasks.

Revision ID: 0012_tasks_are_assigned
Revises: 0011_imports_are_undone
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0012_tasks_are_assigned"
down_revision: str | None = "0011_imports_are_undone"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {"unit": "ACCESS EXCLUSIVE", "turn_task": "ACCESS EXCLUSIVE", "property": "SHARE ROW EXCLUSIVE"}


def upgrade() -> None:
    op.add_column("unit", sa.Column("floorplan", sa.Text(), nullable=True))
    for name in ("staff", "vendor"):
        on_hold = [sa.Column("on_hold", sa.Boolean(), server_default=sa.text("false"), nullable=False)]
        op.create_table(
            name,
            sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
            sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
            sa.Column("company_id", sa.BigInteger(), nullable=False),
            sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
            sa.Column("external_id", sa.Text(), nullable=True),
            *(on_hold if name == "vendor" else []),
            sa.PrimaryKeyConstraint("id"),
        )
        op.create_index(f"{name}_external_id", name, ["company_id", "external_id"])
    op.execute(
        "ALTER TABLE turn_task ADD COLUMN assignee_id bigint REFERENCES staff (id),"
        " ADD COLUMN vendor_id bigint REFERENCES vendor (id), ADD COLUMN position integer"
    )
    date_key = sa.literal_column("coalesce(scheduled_date, 'infinity'::date)")
    for index, lead, condition in (
        ("of_assignee", ["assignee_id"], "assignee_id IS NOT NULL"),
        ("of_vendor", ["vendor_id"], "vendor_id IS NOT NULL"),
        ("unassigned", [], "assignee_id IS NULL AND vendor_id IS NULL"),
    ):
        op.create_index(
            f"turn_task_open_{index}",
            "turn_task",
            ["company_id", *lead, date_key, "id"],
            postgresql_where=sa.text(f"status = 'open' AND {condition}"),
        )
    op.execute("CREATE SEQUENCE turn_template_id AS bigint")
    op.create_table(
        "turn_template",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('turn_template_id')"), autoincrement=False,
            nullable=False,
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=True),
        sa.Column("floorplan", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("char_length(name) <= 200", name="turn_template_name"),
        sa.CheckConstraint("char_length(floorplan) <= 200", name="turn_template_floorplan"),
        sa.ForeignKeyConstraint(["property_id"], ["property.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
    )  # fmt: skip
    op.create_index(
        "turn_template_named",
        "turn_template",
        ["company_id", "name", "property_id", "floorplan"],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )
    op.create_table(
        "turn_template_task",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("template_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("task_type", sa.Text(), nullable=False),
        sa.Column("days_after_move_out", sa.Integer(), nullable=True),
        sa.Column("assignee_id", sa.BigInteger(), nullable=True),
        sa.Column("vendor_id", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("char_length(task_type) <= 200", name="turn_template_task_task_type"),
        sa.ForeignKeyConstraint(["assignee_id"], ["staff.id"]),
        sa.ForeignKeyConstraint(["vendor_id"], ["vendor.id"]),
        sa.ForeignKeyConstraint(
            ["company_id", "template_id"], ["turn_template.company_id", "turn_template.id"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("company_id", "template_id", "position"),
    )
