"""Advances of the clocks of sandboxes.

Revision ID: 0009_advances
Revises: 0008_sandboxes
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0009_advances"
down_revision: str | None = "0008_sandboxes"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "advance",
        sa.Column(
            "company_id",
            sa.BigInteger(),
            sa.ForeignKey("company.id", name="advance_company"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("start_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("target_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("done", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("begun_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("lease_token", sa.Uuid()),
        sa.Column("leased_until", sa.DateTime(timezone=True), server_default=sa.text("'-infinity'"), nullable=False),
        sa.Column("missing", sa.Text()),
        sa.Column("missing_since", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("company_id"),
        sa.CheckConstraint("target_at >= start_at", name="advance_forward"),
        sa.CheckConstraint("(missing IS NULL) = (missing_since IS NULL)", name="advance_missing"),
    )
    op.create_index("advance_unfinished", "advance", ["begun_at"], postgresql_where=sa.text("finished_at IS NULL"))
