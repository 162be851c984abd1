"""Indexes for the filters of the audit log: actor, actor and kind of record, request, instant.

Revision ID: 0003_audit_filters
Revises: 0002_answered_receivers
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003_audit_filters"
down_revision: str | None = "0002_answered_receivers"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_index("audit_of_actor", "audit", ["company_id", "actor", "id"])
    op.create_index(
        "audit_of_actor_and_kind",
        "audit",
        [sa.literal_column("hashtextextended(subject, hashtextextended(actor, company_id))"), "id"],
    )
    op.create_index("audit_of_request", "audit", ["company_id", "request_id", "id"])
    op.create_index("audit_recorded", "audit", ["company_id", "recorded_at", "id"])
