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
locks: dict[str, str] = {
    "api_key": "ACCESS EXCLUSIVE",
    "administrator": "ACCESS EXCLUSIVE",
    "company": "ACCESS EXCLUSIVE",
}

# See chassis.writes.audit.deletes_entries.
_DELETES_ENTRIES = """CREATE FUNCTION delete_audit_of_ended_company(ended_id bigint, rows integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM audit WHERE id IN (
        SELECT id FROM audit WHERE company_id = ended_id
        AND EXISTS (SELECT FROM company WHERE company.id = ended_id AND is_sandbox AND ended_at IS NOT NULL)
        ORDER BY id LIMIT rows
    );
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$"""


def upgrade() -> None:
    op.add_column("company", sa.Column("is_sandbox", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column(
        "company", sa.Column("sandbox_of", sa.BigInteger(), sa.ForeignKey("company.id", name="company_sandbox_of"))
    )
    op.add_column("company", sa.Column("clock_offset", sa.Interval(), server_default=sa.text("'0'"), nullable=False))
    op.add_column("company", sa.Column("content", sa.Text(), server_default=sa.text("'empty'"), nullable=False))
    for name in ("ended_at", "filled_at", "console_purged_at", "purged_at"):
        op.add_column("company", sa.Column(name, sa.DateTime(timezone=True)))
    op.create_check_constraint("company_live", "company", "is_sandbox OR sandbox_of IS NULL AND ended_at IS NULL")
    op.create_check_constraint(
        "company_content",
        "company",
        "content = 'empty' OR content = 'copy' AND sandbox_of IS NOT NULL OR content = 'demo' AND is_sandbox",
    )
    op.create_index(
        "company_to_fill",
        "company",
        ["id"],
        postgresql_where=sa.text("content <> 'empty' AND filled_at IS NULL"),
    )
    op.create_check_constraint("company_ended", "company", "ended_at IS NULL OR NOT active")
    op.create_check_constraint(
        "company_purged", "company", "num_nonnulls(console_purged_at, purged_at) = 0 OR ended_at IS NOT NULL"
    )
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
    op.create_index("company_ended_sandboxes", "company", ["id"], postgresql_where=sa.text("ended_at IS NOT NULL"))
    op.execute(_DELETES_ENTRIES)
    op.drop_constraint("api_key_administrator_of_the_same_company", "api_key", type_="foreignkey")
    op.create_foreign_key("api_key_administrator", "api_key", "administrator", ["administrator_id"], ["id"])
