"""staff that people add

Revision ID: 0004
Revises: 0003
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # Wider than before: no row can break it, so nothing is read to check it.
    op.execute(
        "ALTER TABLE staff DROP CONSTRAINT staff_source,"
        " ADD CONSTRAINT staff_source CHECK (source IN ('staff', 'import'))"
    )
