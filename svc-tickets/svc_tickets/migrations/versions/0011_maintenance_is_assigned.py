"""Preventive-maintenance tasks have an assignee.

Revision ID: 0011_maintenance_is_assigned
Revises: 0010_tickets_have_reports
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0011_maintenance_is_assigned"
down_revision: str | None = "0010_tickets_have_reports"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {"pm_task": "ACCESS EXCLUSIVE", "staff": "SHARE ROW EXCLUSIVE"}


def upgrade() -> None:
    op.execute("ALTER TABLE pm_task ADD COLUMN assignee_id bigint REFERENCES staff (id)")
    op.create_index(
        "pm_task_open_of_assignee",
        "pm_task",
        ["company_id", "assignee_id", "due_date", "id"],
        postgresql_where=sa.text("status = 'Open' AND assignee_id IS NOT NULL"),
    )
