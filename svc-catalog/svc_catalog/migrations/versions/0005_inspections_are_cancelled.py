"""Inspections that people cancelled.

Revision ID: 0005_inspections_are_cancelled
Revises: 0004_people_search_vendors
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005_inspections_are_cancelled"
down_revision: str | None = "0004_people_search_vendors"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # One statement, so that the table is read once for both checks.
    op.execute(
        "ALTER TABLE inspection"
        " ADD COLUMN cancelled_at timestamptz, ADD COLUMN cancelled_by text, ADD COLUMN cancel_reason text,"
        " DROP CONSTRAINT inspection_kind,"
        " ADD CONSTRAINT inspection_kind"
        " CHECK (kind IN ('operations', 'consulting_walk', 'acceptance_walk', 'cancelled')),"
        " ADD CONSTRAINT inspection_cancelled_at"
        " CHECK (kind <> 'cancelled' OR cancelled_at IS NOT NULL AND cancelled_by IS NOT NULL)"
    )
    op.create_index(
        "inspection_search_cancelled",
        "inspection",
        [
            sa.literal_column(
                "hashtextextended(textcat(published_status, textcat(' ', coalesce(result, ''))), company_id)"
            ),
            sa.literal_column("coalesce(scheduled_date, completed_date, 'infinity'::date)"),
            "id",
        ],
        postgresql_where=sa.text("kind = 'cancelled'"),
    )
