"""Permits, with which the console works on for an administrator.

Revision ID: 0004_permits
Revises: 0003_key_usage
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0004_permits"
down_revision: str | None = "0003_key_usage"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.drop_constraint("ceremony_purpose", "ceremony", type_="check")
    op.create_check_constraint(
        "ceremony_purpose",
        "ceremony",
        "purpose IN ('second_factor', 'passkey_sign_in', 'passkey_step_up', 'passkey_new', 'totp_new', 'permit')",
    )
