"""A closed ticket may lack the instant at which it was closed: the file that brought it did not know it.

Revision ID: 0002_closed_at_unknown_time
Revises: 0001_initial
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0002_closed_at_unknown_time"
down_revision: str | None = "0001_initial"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # One statement, so that the table is read once for both. Every stored row satisfies the weaker checks.
    op.execute(
        "ALTER TABLE ticket"
        " DROP CONSTRAINT ticket_completed_at,"
        " DROP CONSTRAINT ticket_cancelled_at,"
        " ADD CONSTRAINT ticket_completed_at CHECK ((status = 'Completed') = (completed_at IS NOT NULL)"
        " OR completed_at IS NULL AND external_id IS NOT NULL),"
        " ADD CONSTRAINT ticket_cancelled_at CHECK ((status = 'Cancelled') = (cancelled_at IS NOT NULL)"
        " OR cancelled_at IS NULL AND external_id IS NOT NULL)"
    )
