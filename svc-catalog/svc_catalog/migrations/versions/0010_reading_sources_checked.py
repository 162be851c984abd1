"""The sources of all stored readings are checked. Readers and writers do not wait for it.

Revision ID: 0010_reading_sources_checked
Revises: 0009_readings_come_over_the_api
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0010_reading_sources_checked"
down_revision: str | None = "0009_readings_come_over_the_api"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute("ALTER TABLE reading VALIDATE CONSTRAINT reading_source")
