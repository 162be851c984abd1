"""Turns have documents.

Revision ID: 0008_turns_have_documents
Revises: 0007_turns_are_planned
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from chassis.changes import triggers

revision: str = "0008_turns_have_documents"
down_revision: str | None = "0007_turns_are_planned"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "transition": "ACCESS EXCLUSIVE",
    "property": "SHARE ROW EXCLUSIVE",
    "unit": "SHARE ROW EXCLUSIVE",
    "changes_epoch": "ACCESS EXCLUSIVE",
    "changes_to_touch": "ACCESS EXCLUSIVE",
}


def upgrade() -> None:
    op.execute("ALTER TABLE changes_epoch ADD COLUMN settled_xid xid8 NOT NULL DEFAULT '0'")
    op.execute(
        "ALTER TABLE changes_to_touch ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id(),"
        " ADD COLUMN since xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()), ADD COLUMN horizon xid8"
    )
    op.create_index("changes_to_touch_since", "changes_to_touch", ["xid"])
    # Null in all turns from before: they are rendered in the background.
    op.add_column("transition", sa.Column("document", sa.LargeBinary(), server_default=sa.text("NULL")))
    op.add_column("transition", sa.Column("document_shape", sa.Integer(), server_default=sa.text("NULL")))
    op.create_index("transition_document_shape", "transition", ["document_shape"])
    for statement in (*triggers.FUNCTIONS, *triggers.recorded("transition", documents=True)):
        op.execute(statement)
    for shown, refers_by in (("property", "property_id"), ("unit", "unit_id")):
        for statement in triggers.followed("transition", refers_by, shown, ("name", "external_id")):
            op.execute(statement)
