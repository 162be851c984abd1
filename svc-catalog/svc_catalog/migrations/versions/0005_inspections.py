"""inspections

Revision ID: 0005
Revises: 0004
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SERVED = "kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"


def upgrade() -> None:
    # Before the table that refers to it.
    op.create_unique_constraint("staff_of_company", "staff", ["company_id", "id"])
    op.execute(CreateSequence(sa.Sequence("inspection_id", data_type=sa.BigInteger)))
    op.create_table(
        "inspection_number",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "property_id"),
    )
    op.create_table(
        "inspection",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('inspection_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=True),
        sa.Column("inspection_number", sa.Integer(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("inspection_type", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column(
            "published_status",
            sa.Text(),
            sa.Computed("CASE status WHEN 'Finalized' THEN 'Completed' ELSE status END", persisted=True),
            nullable=True,
        ),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("scheduled_date", sa.Date(), nullable=True),
        sa.Column("completed_date", sa.Date(), nullable=True),
        sa.Column("assignee_id", sa.BigInteger(), nullable=True),
        sa.Column("is_compliance_inspection", sa.Boolean(), nullable=False),
        sa.Column("compliance_type", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("engagement", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("engagement IS NULL OR kind <> 'operations'", name="inspection_engagement_of_a_walk"),
        sa.CheckConstraint("kind IN ('operations', 'consulting_walk', 'acceptance_walk')", name="inspection_kind"),
        sa.CheckConstraint("result IN ('passed', 'failed')", name="inspection_result"),
        sa.CheckConstraint("source IN ('staff', 'import')", name="inspection_source"),
        sa.CheckConstraint(
            "status IN ('Scheduled', 'In Progress', 'Completed', 'Finalized')", name="inspection_status"
        ),
        sa.CheckConstraint("inspection_number BETWEEN 1 AND 2147483647", name="inspection_inspection_number"),
        sa.ForeignKeyConstraint(
            ["company_id", "assignee_id"],
            ["staff.company_id", "staff.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "unit_id"],
            ["unit.company_id", "unit.property_id", "unit.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="inspection_external_id"),
        sa.UniqueConstraint("company_id", "property_id", "inspection_number", name="inspection_number_in_property"),
    )
    for name, columns in (
        ("inspection_page", ["id"]),
        ("inspection_page_of_property", ["property_id", "id"]),
        ("inspection_page_of_unit", ["unit_id", "id"]),
        ("inspection_page_of_status", ["published_status", "id"]),
        ("inspection_page_of_property_and_status", ["property_id", "published_status", "id"]),
    ):
        op.create_index(name, "inspection", ["company_id", *columns], postgresql_where=sa.text(SERVED))
