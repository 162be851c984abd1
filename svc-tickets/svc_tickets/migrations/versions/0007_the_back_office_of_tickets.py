"""the back office of tickets

Revision ID: 0007
Revises: 0006
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("vendor", sa.Column("on_hold", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    for table, name in (("ticket_comment", "author"), ("ticket_comment", "actor"), ("ticket_status_change", "actor")):
        op.add_column(table, sa.Column(name, sa.Text(), server_default=sa.text("NULL"), nullable=True))
    op.drop_constraint("ticket_comment_kind", "ticket_comment")
    checks = {
        "ticket_comment_kind": "kind IN ('closing_note', 'cancellation_notes', 'comment', 'photo')",
        "ticket_comment_whose": "author IN ('staff', 'vendor', 'resident')",
        "ticket_comment_actor": "(author IS NULL) = (actor IS NULL)",
        "ticket_comment_brought": "(author IS NULL) <> (api_key_id IS NULL)",
    }
    for name, check in checks.items():
        op.create_check_constraint(name, "ticket_comment", check)
    op.create_table(
        "ticket_of_inspection_row",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("inspection_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("row_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ticket_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["company_id", "ticket_id"], ["ticket.company_id", "ticket.id"], name="ticket_of_inspection_row_is"
        ),
        sa.PrimaryKeyConstraint("company_id", "inspection_id", "row_id"),
    )
