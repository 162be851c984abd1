"""Acts have addresses.

Revision ID: 0005_acts_have_addresses
Revises: 0004_companies_have_first_steps
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005_acts_have_addresses"
down_revision: str | None = "0004_companies_have_first_steps"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "act_address",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("acted_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("company_id", "request_id", "address"),
    )
    op.create_index("act_address_acted", "act_address", ["acted_at"], unique=False)
