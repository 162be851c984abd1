"""Notes that tell to which service the write of an idempotency key went.

Revision ID: 0006_idempotency_notes
Revises: 0005_companies_have_external_ids
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006_idempotency_notes"
down_revision: str | None = "0005_companies_have_external_ids"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "idempotency_note",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("idempotency_note_leased_until", "idempotency_note", ["leased_until"])
