"""People find residents by name, phone number and e-mail address.

Revision ID: 0010_residents_are_found
Revises: 0009_companies_are_sandboxes
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0010_residents_are_found"
down_revision: str | None = "0009_companies_are_sandboxes"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "party_search",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("transition_id", sa.BigInteger(), nullable=False),
        sa.Column("terms", postgresql.TSVECTOR(), nullable=False),
        sa.PrimaryKeyConstraint("company_id", "id"),
    )
    op.create_index(
        "party_search_terms",
        "party_search",
        ["terms"],
        unique=False,
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},
    )
