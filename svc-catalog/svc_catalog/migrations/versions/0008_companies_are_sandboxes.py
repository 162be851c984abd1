"""Companies can be sandboxes, whose clock can be moved and which can be ended.

Revision ID: 0008_companies_are_sandboxes
Revises: 0007_records_have_documents
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0008_companies_are_sandboxes"
down_revision: str | None = "0007_records_have_documents"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

# See chassis.writes.audit.deletes_entries.
_DELETES_ENTRIES = """CREATE FUNCTION delete_audit_of_ended_company(ended_id bigint, rows integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM audit WHERE id IN (
        SELECT id FROM audit WHERE company_id = ended_id
        AND EXISTS (SELECT FROM company WHERE company.id = ended_id AND is_sandbox AND ended)
        ORDER BY id LIMIT rows
    );
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$"""


def upgrade() -> None:
    op.add_column("company", sa.Column("is_sandbox", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("company", sa.Column("clock_offset", sa.Interval(), server_default=sa.text("'0'"), nullable=False))
    op.add_column("company", sa.Column("ended", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.execute(_DELETES_ENTRIES)
    op.create_table(
        "copied_place",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("copied_from", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("company_id", "kind", "copied_from"),
    )
