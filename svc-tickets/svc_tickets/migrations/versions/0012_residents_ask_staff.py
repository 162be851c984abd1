"""Tickets say whether staff opened them because a resident asked.

Revision ID: 0012_residents_ask_staff
Revises: 0011_maintenance_is_assigned
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0012_residents_ask_staff"
down_revision: str | None = "0011_maintenance_is_assigned"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("ticket", sa.Column("resident_asked", sa.Boolean(), server_default=sa.text("false"), nullable=False))
