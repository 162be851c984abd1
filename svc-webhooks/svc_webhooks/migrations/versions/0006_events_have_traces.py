"""Events remember the trace of the work that caused them.

Revision ID: 0006_events_have_traces
Revises: 0005_feed
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006_events_have_traces"
down_revision: str | None = "0005_feed"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    # Without a default, so no row is written, however many days of events there are.
    op.add_column("event", sa.Column("traceparent", sa.Text(), nullable=True))
