"""Writes that succeeded are found among the requests of a busy company, for the audit log.

Revision ID: 0011_written_requests
Revises: 0010_imports_are_undone
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0011_written_requests"
down_revision: str | None = "0010_imports_are_undone"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_index(
        "request_written",
        "request",
        ["company_id", "id"],
        postgresql_where=sa.text("method <> ALL (ARRAY['GET', 'HEAD']) AND status < 400"),
    )
