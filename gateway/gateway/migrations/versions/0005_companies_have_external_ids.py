"""Companies have an external id, by which a file of companies finds them again.

Revision ID: 0005_companies_have_external_ids
Revises: 0004_permits
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005_companies_have_external_ids"
down_revision: str | None = "0004_permits"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("company", sa.Column("external_id", sa.Text(), nullable=True))
    op.create_unique_constraint("company_external_id", "company", ["external_id"])
