"""The source of a reading may be `api`.

The next revision looks at the stored readings, of which there are many, so that no writer waits for that.

Revision ID: 0009_readings_come_over_the_api
Revises: 0008_companies_are_sandboxes
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0009_readings_come_over_the_api"
down_revision: str | None = "0008_companies_are_sandboxes"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_NAME, _TABLE = "reading_source", "reading"


def upgrade() -> None:
    op.drop_constraint(_NAME, _TABLE, type_="check")
    op.create_check_constraint(_NAME, _TABLE, "source IN ('staff', 'import', 'api')", postgresql_not_valid=True)
