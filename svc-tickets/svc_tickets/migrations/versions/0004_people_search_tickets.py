"""The table by which people search tickets, filled beside them, and the orders of maintenance tasks by due date.

Revision ID: 0004_people_search_tickets
Revises: 0003_audit_filters
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0004_people_search_tickets"
down_revision: str | None = "0003_audit_filters"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {"pm_task": "SHARE", "ticket_of_inspection_row": "SHARE"}


def upgrade() -> None:
    # Empty: the service fills it while it serves, the open tickets first.
    op.create_table(
        "ticket_search",
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("comment_id", sa.BigInteger(), nullable=False),
        sa.Column("quiet_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=True),
        sa.Column("asset_id", sa.BigInteger(), nullable=True),
        sa.Column("assignee_id", sa.BigInteger(), nullable=True),
        sa.Column("vendor_id", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("opened", sa.BigInteger(), nullable=False),
        sa.Column("urgency", sa.BigInteger(), nullable=False),
        sa.Column("waiting", sa.BigInteger(), nullable=False),
        sa.Column("terms", postgresql.TSVECTOR(), nullable=False),
        sa.PrimaryKeyConstraint("company_id", "id"),
    )
    op.create_index(
        "ticket_search_of_asset",
        "ticket_search",
        ["company_id", "asset_id", "opened", "id"],
        postgresql_where=sa.text("asset_id IS NOT NULL"),
    )
    op.create_index(
        "ticket_search_of_assignee",
        "ticket_search",
        ["company_id", "assignee_id", "opened", "id"],
        postgresql_where=sa.text("assignee_id IS NOT NULL"),
    )
    op.create_index(
        "ticket_search_of_is_open",
        "ticket_search",
        ["company_id", "is_open", "opened", "id"],
    )
    op.create_index(
        "ticket_search_of_property",
        "ticket_search",
        ["company_id", "property_id", "opened", "id"],
    )
    op.create_index(
        "ticket_search_of_source",
        "ticket_search",
        ["company_id", "source", "opened", "id"],
    )
    op.create_index(
        "ticket_search_of_unit",
        "ticket_search",
        ["company_id", "unit_id", "opened", "id"],
        postgresql_where=sa.text("unit_id IS NOT NULL"),
    )
    op.create_index(
        "ticket_search_of_vendor",
        "ticket_search",
        ["company_id", "vendor_id", "opened", "id"],
        postgresql_where=sa.text("vendor_id IS NOT NULL"),
    )
    op.create_index("ticket_search_opened", "ticket_search", ["company_id", "opened", "id"])
    op.create_index(
        "ticket_search_terms",
        "ticket_search",
        ["terms"],
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},
    )
    op.create_index("ticket_search_urgency", "ticket_search", ["company_id", "urgency", "id"])
    op.create_index("ticket_search_waiting", "ticket_search", ["company_id", "waiting", "id"])
    op.create_index("pm_task_by_due", "pm_task", ["company_id", "due_date", "id"])
    op.create_index("pm_task_of_asset_by_due", "pm_task", ["company_id", "asset_id", "due_date", "id"])
    op.create_index("pm_task_of_property_by_due", "pm_task", ["company_id", "property_id", "due_date", "id"])
    op.create_index("pm_task_of_unit_by_due", "pm_task", ["company_id", "unit_id", "due_date", "id"])
    op.create_index(
        "pm_task_open_by_due",
        "pm_task",
        ["company_id", "due_date", "id"],
        postgresql_where=sa.text("status = 'Open'"),
    )
    op.create_index("ticket_of_inspection_row_of_ticket", "ticket_of_inspection_row", ["company_id", "ticket_id"])
