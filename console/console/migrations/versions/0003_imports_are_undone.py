"""Imports are undone.

Revision ID: 0003_imports_are_undone
Revises: 0002_people_have_saved_views
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003_imports_are_undone"
down_revision: str | None = "0002_people_have_saved_views"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("job", sa.Column("undoes", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("job", sa.Column("undo", sa.Text(), server_default="{}", nullable=False))
