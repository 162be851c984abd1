"""Imports of staff are undone: what a batch did, and the records that were withdrawn.

Revision ID: 0010_imports_are_undone
Revises: 0009_advances
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0010_imports_are_undone"
down_revision: str | None = "0009_advances"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


class _Xid8(sa.types.UserDefinedType[int]):
    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


def upgrade() -> None:
    op.create_table(
        "import_batch",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("import_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ids", postgresql.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("versions", postgresql.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("before", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("beside", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("leaving", postgresql.ARRAY(sa.BigInteger()), nullable=True),
        sa.Column("xid", _Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "import_batch_leaving",
        "import_batch",
        ["company_id"],
        unique=False,
        postgresql_where=sa.text("leaving IS NOT NULL"),
    )
    op.create_index("import_batch_of", "import_batch", ["company_id", "import_key", "kind", "id"], unique=False)
    op.create_index("import_batch_recorded", "import_batch", ["recorded_at"], unique=False)
    op.create_table(
        "withdrawn_record",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("record", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("changed_xid", _Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.Column(
            "withdrawn_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("company_id", "kind", "id"),
    )
    op.create_index(
        "withdrawn_record_changed", "withdrawn_record", ["company_id", "kind", "changed_xid", "id"], unique=False
    )
    op.create_index(
        "withdrawn_record_external_id", "withdrawn_record", ["company_id", "kind", "external_id"], unique=False
    )
