"""an index for each set of filters

Revision ID: 0007
Revises: 0006
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.drop_index(op.f("asset_page_of_status"), table_name="asset")
    op.create_index(
        "asset_page_of_status",
        "asset",
        [sa.literal_column("hashtextextended(status, company_id)"), "id"],
        unique=False,
    )
    op.create_index(
        "asset_changes",
        "asset",
        [sa.literal_column("((company_id << 30) # (id >> 14))"), "status", "updated_at"],
        unique=False,
    )
    op.create_index(
        "asset_changes_of_property",
        "asset",
        [sa.literal_column("((property_id << 30) # (id >> 14))"), "status", "updated_at"],
        unique=False,
    )
    op.create_index(
        "asset_changes_of_unit",
        "asset",
        [sa.literal_column("((unit_id << 30) # (id >> 14))"), "status", "updated_at"],
        unique=False,
    )
    op.create_index(
        "asset_page_of_property_and_status",
        "asset",
        [sa.literal_column("hashtextextended(status, property_id)"), "id"],
        unique=False,
    )
    op.create_index(
        "asset_page_of_unit_and_status",
        "asset",
        [sa.literal_column("hashtextextended(status, unit_id)"), "id"],
        unique=False,
    )
    op.drop_index(
        op.f("inspection_page_of_property_and_status"),
        table_name="inspection",
        postgresql_where="((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)))",
    )
    op.create_index(
        "inspection_page_of_property_and_status",
        "inspection",
        [sa.literal_column("hashtextextended(published_status, property_id)"), "id"],
        unique=False,
        postgresql_where=sa.text("kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"),
    )
    op.drop_index(
        op.f("inspection_page_of_status"),
        table_name="inspection",
        postgresql_where="((kind = 'operations'::text) OR ((kind = 'acceptance_walk'::text) AND (engagement IS NULL)))",
    )
    op.create_index(
        "inspection_page_of_status",
        "inspection",
        [sa.literal_column("hashtextextended(published_status, company_id)"), "id"],
        unique=False,
        postgresql_where=sa.text("kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"),
    )
    op.create_index(
        "inspection_page_of_unit_and_status",
        "inspection",
        [sa.literal_column("hashtextextended(published_status, unit_id)"), "id"],
        unique=False,
        postgresql_where=sa.text("kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"),
    )
    op.create_index(
        "meter_changes", "meter", [sa.literal_column("((company_id << 30) # (id >> 14))"), "updated_at"], unique=False
    )
    op.create_index(
        "meter_changes_of_property",
        "meter",
        [sa.literal_column("((property_id << 30) # (id >> 14))"), "updated_at"],
        unique=False,
    )
    op.create_index(
        "meter_changes_of_unit",
        "meter",
        [sa.literal_column("((unit_id << 30) # (id >> 14))"), "updated_at"],
        unique=False,
    )
