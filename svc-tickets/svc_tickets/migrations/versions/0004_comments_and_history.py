"""comments and the history of a ticket's status

Revision ID: 0004
Revises: 0003
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute(CreateSequence(sa.Sequence("ticket_comment_id", data_type=sa.BigInteger)))
    op.create_table(
        "ticket_comment",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ticket_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("administrator_id", sa.BigInteger(), nullable=True),
        sa.Column("api_key_id", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("body <> ''", name="ticket_comment_body"),
        sa.CheckConstraint("kind IN ('closing_note', 'cancellation_notes')", name="ticket_comment_kind"),
        sa.CheckConstraint("api_key_id IS NULL OR administrator_id IS NOT NULL", name="ticket_comment_author"),
        sa.ForeignKeyConstraint(
            ["company_id", "ticket_id"], ["ticket.company_id", "ticket.id"], name="ticket_comment_of"
        ),
        sa.PrimaryKeyConstraint("company_id", "ticket_id", "id"),
    )
    op.create_table(
        "ticket_status_change",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ticket_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("from_status", sa.Text(), nullable=False),
        sa.Column("to_status", sa.Text(), nullable=False),
        sa.Column("cancellation_reason_code", sa.Text(), nullable=True),
        sa.Column("comment_id", sa.BigInteger(), nullable=True),
        sa.Column("administrator_id", sa.BigInteger(), nullable=True),
        sa.Column("api_key_id", sa.BigInteger(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "cancellation_reason_code IN ('duplicate_ticket', 'no_access_repeated', 'resident_cancelled', "
            "'resolved_independently', 'scheduled_for_later', 'see_notes', 'wrong_property')",
            name="ticket_status_change_cancellation_reason_code",
        ),
        sa.CheckConstraint(
            "cancellation_reason_code IS NULL OR to_status = 'Cancelled'", name="ticket_status_change_reason"
        ),
        sa.CheckConstraint(
            "from_status <> to_status OR to_status IN ('Completed', 'Cancelled')", name="ticket_status_change_says"
        ),
        sa.CheckConstraint(
            "from_status IN ('Open', 'In Progress', 'On Hold', 'Completed', 'Cancelled')",
            name="ticket_status_change_from_status",
        ),
        sa.CheckConstraint(
            "to_status IN ('Open', 'In Progress', 'On Hold', 'Completed', 'Cancelled')",
            name="ticket_status_change_to_status",
        ),
        sa.CheckConstraint(
            "api_key_id IS NULL OR to_status <> 'Cancelled' OR cancellation_reason_code IS NOT NULL",
            name="ticket_status_change_reason_given",
        ),
        sa.CheckConstraint(
            "api_key_id IS NULL OR (comment_id IS NOT NULL) = "
            "(to_status = 'Completed' OR cancellation_reason_code IS NOT DISTINCT FROM 'see_notes')",
            name="ticket_status_change_note_given",
        ),
        sa.CheckConstraint("api_key_id IS NULL OR administrator_id IS NOT NULL", name="ticket_status_change_author"),
        sa.CheckConstraint("version > 1", name="ticket_status_change_version"),
        sa.ForeignKeyConstraint(
            ["company_id", "ticket_id", "comment_id"],
            ["ticket_comment.company_id", "ticket_comment.ticket_id", "ticket_comment.id"],
            name="ticket_status_change_comment",
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "ticket_id"], ["ticket.company_id", "ticket.id"], name="ticket_status_change_of"
        ),
        sa.PrimaryKeyConstraint("company_id", "ticket_id", "version"),
    )
