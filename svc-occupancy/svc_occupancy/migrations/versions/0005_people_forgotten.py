"""People can be forgotten: when a party was, and an index of the parties with one e-mail address.

Revision ID: 0005_people_forgotten
Revises: 0004_turns_are_cancelled
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005_people_forgotten"
down_revision: str | None = "0004_turns_are_cancelled"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute("ALTER TABLE party ADD COLUMN forgotten_at timestamptz DEFAULT NULL")
    op.create_check_constraint(
        "party_forgotten_without_a_trace",
        "party",
        "forgotten_at IS NULL OR num_nonnulls(first_name, last_name, email, phone, external_id) = 0",
        # No stored row has the new column.
        postgresql_not_valid=True,
    )
    op.execute("ALTER TABLE party VALIDATE CONSTRAINT party_forgotten_without_a_trace")
    op.create_index(
        "party_email",
        "party",
        ["company_id", sa.literal_column("lower(email)"), "id"],
        postgresql_where=sa.text("email IS NOT NULL"),
    )
