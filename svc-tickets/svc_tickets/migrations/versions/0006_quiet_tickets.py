"""quiet tickets

Revision ID: 0006
Revises: 0005
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    for name in ("quiet_since", "stale_due_at"):
        op.add_column("ticket", sa.Column(name, sa.DateTime(timezone=True), server_default=sa.text("NULL")))
    # Residents' tickets that are here: quiet since they last changed, and what is past its time counts as told.
    op.execute(
        "UPDATE ticket SET quiet_since = updated_at, stale_due_at = CASE WHEN status NOT IN ('Completed', 'Cancelled')"
        " THEN updated_at + interval '1 hour' * threshold * (1 + greatest(0,"
        " floor(extract(epoch FROM now() - updated_at) / 3600 / threshold))) END"
        " FROM (SELECT t.company_id, t.id, coalesce(p.stale_after_hours, 72) AS threshold"
        " FROM ticket t LEFT JOIN ticket_policy p ON p.company_id = t.company_id"
        " WHERE t.source = 'resident_portal') quiet"
        " WHERE quiet.company_id = ticket.company_id AND quiet.id = ticket.id"
    )
    op.create_check_constraint(
        "ticket_stale_due_at",
        "ticket",
        "stale_due_at IS NULL OR quiet_since IS NOT NULL AND stale_due_at > quiet_since",
    )
    op.create_index(
        "ticket_stale_due",
        "ticket",
        ["company_id", "stale_due_at"],
        postgresql_where=sa.text("stale_due_at IS NOT NULL"),
    )
