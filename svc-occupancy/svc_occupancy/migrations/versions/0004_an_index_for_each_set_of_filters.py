"""an index for each set of filters

Revision ID: 0004
Revises: 0003
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.drop_index(op.f("transition_page_of_status"), table_name="transition")
    op.create_index(
        "transition_page_of_status",
        "transition",
        [sa.literal_column("hashtextextended(status, company_id)"), "id"],
        unique=False,
    )
    op.create_index(
        "transition_changes",
        "transition",
        [sa.literal_column("((company_id << 30) # (id >> 14))"), "status", "updated_at"],
        unique=False,
    )
    op.create_index(
        "transition_changes_of_property",
        "transition",
        [sa.literal_column("((property_id << 30) # (id >> 14))"), "status", "updated_at"],
        unique=False,
    )
    op.create_index(
        "transition_changes_of_unit",
        "transition",
        [sa.literal_column("((unit_id << 30) # (id >> 14))"), "status", "updated_at"],
        unique=False,
    )
    op.create_index(
        "transition_page_of_property_and_status",
        "transition",
        [sa.literal_column("hashtextextended(status, property_id)"), "id"],
        unique=False,
    )
    op.create_index(
        "transition_page_of_unit_and_status",
        "transition",
        [sa.literal_column("hashtextextended(status, unit_id)"), "id"],
        unique=False,
    )
