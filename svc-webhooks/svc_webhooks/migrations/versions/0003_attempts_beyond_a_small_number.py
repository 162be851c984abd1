"""Attempts beyond a small number: faults of ours are tried again at every sweep, and a sweep may be every second

Revision ID: 0003
Revises: 0002
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.alter_column(
        "delivery", "attempts", type_=sa.Integer(), existing_type=sa.SmallInteger(), existing_nullable=False
    )
    op.alter_column("attempt", "number", type_=sa.Integer(), existing_type=sa.SmallInteger(), existing_nullable=False)
