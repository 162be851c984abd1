"""Tickets have documents.

Revision ID: 0007_tickets_have_documents
Revises: 0006_words_wait_for_the_index
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from chassis.changes import triggers

revision: str = "0007_tickets_have_documents"
down_revision: str | None = "0006_words_wait_for_the_index"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "ticket": "ACCESS EXCLUSIVE",
    "property": "SHARE ROW EXCLUSIVE",
    "unit": "SHARE ROW EXCLUSIVE",
    "staff": "SHARE ROW EXCLUSIVE",
    "vendor": "SHARE ROW EXCLUSIVE",
    "changes_epoch": "ACCESS EXCLUSIVE",
    "changes_to_touch": "ACCESS EXCLUSIVE",
}

_NAMED = ("name", "external_id")
_FOLLOWS = (
    ("property_id", "property", _NAMED),
    ("unit_id", "unit", _NAMED),
    ("assignee_id", "staff", ("name",)),
    ("vendor_id", "vendor", _NAMED),
)


def upgrade() -> None:
    op.execute("ALTER TABLE changes_epoch ADD COLUMN settled_xid xid8 NOT NULL DEFAULT '0'")
    op.execute(
        "ALTER TABLE changes_to_touch ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id(),"
        " ADD COLUMN since xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()), ADD COLUMN horizon xid8"
    )
    op.create_index("changes_to_touch_since", "changes_to_touch", ["xid"])
    # Null in all tickets from before: they are rendered in the background.
    op.add_column("ticket", sa.Column("document", sa.LargeBinary(), server_default=sa.text("NULL")))
    op.add_column("ticket", sa.Column("document_shape", sa.Integer(), server_default=sa.text("NULL")))
    op.create_index("ticket_document_shape", "ticket", ["document_shape"])
    for statement in (*triggers.FUNCTIONS, *triggers.recorded("ticket", documents=True)):
        op.execute(statement)
    for column, shown, columns in _FOLLOWS:
        for statement in triggers.followed("ticket", column, shown, columns):
            op.execute(statement)
