"""ids and versions of tickets that an import inserts many at once

Revision ID: 0002
Revises: 0001
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.alter_column("ticket", "id", server_default=sa.text("nextval('ticket_id')"))
    op.alter_column("ticket", "version", server_default=sa.text("1"))
