"""Companies can be sandboxes, whose clock can be moved and which can be ended.

Administrators of the live company mint keys in a sandbox.

Revision ID: 0008_sandboxes
Revises: 0007_request_log
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0008_sandboxes"
down_revision: str | None = "0007_request_log"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("company", sa.Column("is_sandbox", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column(
        "company", sa.Column("sandbox_of", sa.BigInteger(), sa.ForeignKey("company.id", name="company_sandbox_of"))
    )
    op.add_column("company", sa.Column("clock_offset", sa.Interval(), server_default=sa.text("'0'"), nullable=False))
    op.add_column("company", sa.Column("ended_at", sa.DateTime(timezone=True)))
    op.create_check_constraint("company_live", "company", "is_sandbox OR sandbox_of IS NULL AND ended_at IS NULL")
    op.create_check_constraint(
        "company_clock_offset",
        "company",
        "clock_offset BETWEEN '0' AND CASE WHEN is_sandbox THEN interval '3650 days' ELSE interval '0' END",
    )
    op.create_index(
        "company_sandboxes",
        "company",
        ["sandbox_of", "id"],
        postgresql_where=sa.text("sandbox_of IS NOT NULL"),
    )
    op.drop_constraint("api_key_administrator_of_the_same_company", "api_key", type_="foreignkey")
    op.create_foreign_key("api_key_administrator", "api_key", "administrator", ["administrator_id"], ["id"])
