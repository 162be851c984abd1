"""The host names and addresses that have answered 2xx, ever.

Revision ID: 0002_answered_receivers
Revises: 0001_initial
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002_answered_receivers"
down_revision: str | None = "0001_initial"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # Empty at first: each receiver enters it with its next 2xx.
    op.create_table(
        "answered_receiver",
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column(
            "answered_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("receiver"),
    )
