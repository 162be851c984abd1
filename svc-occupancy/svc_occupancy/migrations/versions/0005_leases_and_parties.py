"""leases and parties

Revision ID: 0005
Revises: 0004
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    for name in ("lease_id", "party_id"):
        op.execute(CreateSequence(sa.Sequence(name, data_type=sa.BigInteger)))
    op.create_table(
        "idempotency",
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("api_key_id", sa.BigInteger(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("reply", sa.LargeBinary(), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("company_id", "api_key_id", "idempotency_key", name="idempotency_claim"),
    )
    op.create_index(op.f("ix_idempotency_recorded_at"), "idempotency", ["recorded_at"], unique=False)
    op.create_table(
        "lease",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("transition_id", sa.BigInteger(), nullable=False),
        sa.Column("start_date", sa.Date(), nullable=False),
        sa.Column("end_date", sa.Date(), nullable=True),
        sa.CheckConstraint("end_date >= start_date", name="lease_end_date"),
        sa.ForeignKeyConstraint(
            ["company_id", "transition_id"],
            ["transition.company_id", "transition.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "transition_id", name="lease_of_transition"),
    )
    op.create_table(
        "party",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("transition_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.Column("first_name", sa.Text(), nullable=True),
        sa.Column("last_name", sa.Text(), nullable=True),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("phone", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.CheckConstraint("role IN ('leaseholder', 'guarantor')", name="party_role"),
        sa.CheckConstraint("char_length(email) <= 150", name="party_email"),
        sa.CheckConstraint("char_length(external_id) <= 120", name="party_external_id"),
        sa.CheckConstraint("char_length(first_name) <= 80", name="party_first_name"),
        sa.CheckConstraint("char_length(last_name) <= 80", name="party_last_name"),
        sa.CheckConstraint("char_length(phone) <= 20", name="party_phone"),
        sa.CheckConstraint("position BETWEEN 0 AND 19", name="party_position"),
        sa.ForeignKeyConstraint(
            ["company_id", "transition_id"],
            ["lease.company_id", "lease.transition_id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "transition_id", "position", name="party_order"),
    )
    op.add_column("transition", sa.Column("notice_external_id", sa.Text(), nullable=True))
    op.add_column("transition", sa.Column("ntv_reason_code", sa.Text(), nullable=True))
    op.add_column("transition", sa.Column("departure_destination_code", sa.Text(), nullable=True))
    op.add_column("transition", sa.Column("notes", sa.Text(), nullable=True))
    caps = {"notice_external_id": 120, "ntv_reason_code": 20000, "departure_destination_code": 20000, "notes": 20000}
    for column, points in caps.items():
        op.create_check_constraint(f"transition_{column}", "transition", f"char_length({column}) <= {points}")
    # From here on a file's turns alone are told apart by external_id.
    op.drop_constraint(op.f("transition_external_id"), "transition", type_="unique")
    op.create_index(
        "transition_external_id",
        "transition",
        ["company_id", "external_id"],
        unique=True,
        postgresql_where=sa.text("source = 'import'"),
    )
    op.create_index(
        "transition_fed_external_id",
        "transition",
        ["company_id", "external_id", "unit_id", "id"],
        unique=False,
        postgresql_where=sa.text("source <> 'import'"),
    )
