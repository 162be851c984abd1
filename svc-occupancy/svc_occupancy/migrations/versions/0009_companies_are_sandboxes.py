"""Companies can be sandboxes, whose clock can be moved and which can be ended.

Revision ID: 0009_companies_are_sandboxes
Revises: 0008_turns_have_documents
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0009_companies_are_sandboxes"
down_revision: str | None = "0008_turns_have_documents"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("company", sa.Column("is_sandbox", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("company", sa.Column("clock_offset", sa.Interval(), server_default=sa.text("'0'"), nullable=False))
    op.add_column("company", sa.Column("ended", sa.Boolean(), server_default=sa.text("false"), nullable=False))
