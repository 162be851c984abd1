"""A cancelled turn is a cause of a unit's change of status.

Revision ID: 0004_turns_are_cancelled
Revises: 0003_board_for_people
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0004_turns_are_cancelled"
down_revision: str | None = "0003_board_for_people"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_NAME, _TABLE = "unit_status_change_cause", "unit_status_change"


def upgrade() -> None:
    op.drop_constraint(_NAME, _TABLE, type_="check")
    causes = "'notice', 'move_in', 'board', 'notice_cancelled', 'vacated', 'import', 'turn_cancelled'"
    op.create_check_constraint(_NAME, _TABLE, f"cause IN ({causes})")
