"""Companies have first steps.

Revision ID: 0004_companies_have_first_steps
Revises: 0003_imports_are_undone
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004_companies_have_first_steps"
down_revision: str | None = "0003_imports_are_undone"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "first_steps",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("company_id"),
    )
