"""Lists for people in the order of names, the words by which they find places, readings by period.

The words of rows that exist are filled after the start, in the background.

Revision ID: 0003_people_find_places
Revises: 0002_audit_filters
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0003_people_find_places"
down_revision: str | None = "0002_audit_filters"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "property": "ACCESS EXCLUSIVE",
    "unit": "ACCESS EXCLUSIVE",
    "asset": "ACCESS EXCLUSIVE",
    "meter": "ACCESS EXCLUSIVE",
    "reading": "SHARE",
}

NAME_ORDER = sa.literal_column(
    r"regexp_replace(regexp_replace(lower(name), '(\d+)', '00000000\1', 'g'), '\d*(\d{9})', '\1', 'g')"
)
STATUS = sa.literal_column("coalesce(unit_status, '')")
NAMES: dict[str, dict[str, list[sa.ColumnClause[str] | str]]] = {
    "property": {"": []},
    "unit": {
        "": [],
        "_of_property": ["property_id"],
        "_of_status": [STATUS],
        "_of_property_and_status": ["property_id", STATUS],
    },
    "asset": {
        "": [],
        "_of_property": ["property_id"],
        "_of_status": ["status"],
        "_of_property_and_status": ["property_id", "status"],
        "_of_category": ["category"],
    },
    "meter": {"": [], "_of_property": ["property_id"], "_of_utility_type": ["utility_type"]},
}


def upgrade() -> None:
    op.create_table(
        "place_search",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("name_order", sa.Text(), nullable=False),
        sa.Column("words", postgresql.TSVECTOR(), nullable=False),
        sa.CheckConstraint("kind IN ('property', 'unit', 'asset', 'meter')", name="place_search_kind"),
        sa.PrimaryKeyConstraint("company_id", "kind", "id"),
    )
    op.create_index("place_search_words", "place_search", ["words"], postgresql_using="gin")
    for table, lists in NAMES.items():
        column = sa.Column("searched_version", sa.BigInteger(), server_default=sa.text("0"), nullable=False)
        op.add_column(table, column)
        stale = sa.text("searched_version <> version")
        op.create_index(f"{table}_unsearched", table, ["company_id", "id"], postgresql_where=stale)
        for of, columns in lists.items():
            op.create_index(f"{table}_names{of}", table, ["company_id", *columns, NAME_ORDER, "id"])
    op.create_index(
        "asset_warranties",
        "asset",
        ["company_id", "warranty_expires_on", "id"],
        postgresql_where=sa.text("warranty_expires_on IS NOT NULL"),
    )
    op.create_index("reading_periods", "reading", ["company_id", "meter_id", "period_start", "id"])
