"""The tables of svc-occupancy: transitions, leases, unit status and make-ready tasks, and the replicas that they name.

Revision ID: 0001_initial
Revises:
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0001_initial"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    for sequence in ("transition_id", "lease_id", "party_id", "turn_task_id"):
        op.execute(f"CREATE SEQUENCE {sequence} AS bigint")
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("before", postgresql.JSONB(), nullable=False),
        sa.Column("after", postgresql.JSONB(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("audit_of_company", "audit", ["company_id", "id"])
    op.create_index("audit_of_kind", "audit", ["company_id", "subject", "id"])
    op.create_index("audit_of_subject", "audit", ["company_id", "subject", "subject_id", "id"])
    op.create_table(
        "company",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("active", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("timezone", sa.Text(), server_default=sa.text("'UTC'"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
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
    op.create_index("ix_idempotency_recorded_at", "idempotency", ["recorded_at"])
    op.create_table(
        "inbox",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column(
            "applied_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("event_id"),
    )
    op.create_index("ix_inbox_applied_at", "inbox", ["applied_at"])
    op.create_table(
        "outbox",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("claimed_until", sa.DateTime(timezone=True), server_default=sa.text("'-infinity'"), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), server_default=sa.text("NULL"), nullable=True),
        sa.PrimaryKeyConstraint("event_id"),
    )
    op.create_index("outbox_recorded", "outbox", ["recorded_at"])
    op.create_index("outbox_unpublished", "outbox", ["event_id"], postgresql_where=sa.text("published_at IS NULL"))
    op.create_table(
        "outbox_confirmation",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("recorded_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("consumer"),
    )
    op.create_table(
        "property",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("property_external_id", "property", ["company_id", "external_id"])
    op.create_table(
        "reconciled",
        sa.Column("producer", sa.Text(), nullable=False),
        sa.Column("recorded_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("producer"),
    )
    op.create_table(
        "unit",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_number", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["property_id"], ["property.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("unit_external_id", "unit", ["company_id", "external_id"])
    op.create_index("unit_page", "unit", ["company_id", "id"])
    op.create_index("unit_page_of_property", "unit", ["company_id", "property_id", "id"])
    op.create_table(
        "transition",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('transition_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("move_out_date", sa.Date(), nullable=True),
        sa.Column("move_in_date", sa.Date(), nullable=True),
        sa.Column("projected_ready_on", sa.Date(), nullable=True),
        sa.Column("occupancy_source", sa.Text(), nullable=True),
        sa.Column("occupancy_fed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("notice_external_id", sa.Text(), nullable=True),
        sa.Column("ntv_reason_code", sa.Text(), nullable=True),
        sa.Column("departure_destination_code", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("vacated_on", sa.Date(), nullable=True),
        sa.CheckConstraint("source IN ('api', 'staff', 'import')", name="transition_source"),
        sa.CheckConstraint("status IN ('active', 'completed', 'cancelled')", name="transition_status"),
        sa.CheckConstraint(
            "char_length(departure_destination_code) <= 20000", name="transition_departure_destination_code"
        ),
        sa.CheckConstraint("char_length(notes) <= 20000", name="transition_notes"),
        sa.CheckConstraint("char_length(notice_external_id) <= 120", name="transition_notice_external_id"),
        sa.CheckConstraint("char_length(ntv_reason_code) <= 20000", name="transition_ntv_reason_code"),
        sa.CheckConstraint("char_length(occupancy_source) BETWEEN 1 AND 40", name="transition_occupancy_source"),
        sa.CheckConstraint(
            "occupancy_fed_at IS NULL OR occupancy_source IS NOT NULL", name="transition_fed_by_somebody"
        ),
        sa.CheckConstraint(
            "projected_ready_on IS NULL OR move_out_date IS NOT NULL", name="transition_ready_after_move_out"
        ),
        sa.CheckConstraint("updated_at >= created_at", name="transition_updated_after_created"),
        sa.ForeignKeyConstraint(["property_id"], ["property.id"]),
        sa.ForeignKeyConstraint(["unit_id"], ["unit.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
    )
    op.create_index(
        "transition_active_in_unit",
        "transition",
        ["company_id", "unit_id"],
        unique=True,
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_index(
        "transition_changes",
        "transition",
        [sa.literal_column("((company_id << 30) # (id >> 14))"), "status", "updated_at"],
    )
    op.create_index(
        "transition_changes_of_property",
        "transition",
        [sa.literal_column("((property_id << 30) # (id >> 14))"), "status", "updated_at"],
    )
    op.create_index(
        "transition_changes_of_unit",
        "transition",
        [sa.literal_column("((unit_id << 30) # (id >> 14))"), "status", "updated_at"],
    )
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
        postgresql_where=sa.text("source <> 'import'"),
    )
    op.create_index("transition_page_of_property", "transition", ["company_id", "property_id", "id"])
    op.create_index(
        "transition_page_of_property_and_status",
        "transition",
        [sa.literal_column("hashtextextended(status, property_id)"), "id"],
    )
    op.create_index(
        "transition_page_of_status", "transition", [sa.literal_column("hashtextextended(status, company_id)"), "id"]
    )
    op.create_index("transition_page_of_unit", "transition", ["company_id", "unit_id", "id"])
    op.create_index(
        "transition_page_of_unit_and_status",
        "transition",
        [sa.literal_column("hashtextextended(status, unit_id)"), "id"],
    )
    op.create_index(
        "transition_to_vacate",
        "transition",
        ["company_id", "move_out_date", "id"],
        postgresql_where=sa.text("status = 'active' AND move_out_date IS DISTINCT FROM vacated_on"),
    )
    op.create_index("transition_updated", "transition", ["company_id", "updated_at"])
    op.create_table(
        "unit_state",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("unit_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("unit_status", sa.Text(), nullable=False),
        sa.Column("projected_ready_on", sa.Date(), nullable=True),
        sa.CheckConstraint(
            "unit_status IN ('Occupied', 'Notice', 'Vacant Not Ready', 'Vacant Ready', 'Down')",
            name="unit_state_unit_status",
        ),
        sa.ForeignKeyConstraint(["unit_id"], ["unit.id"]),
        sa.PrimaryKeyConstraint("company_id", "unit_id"),
    )
    op.create_table(
        "lease",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("transition_id", sa.BigInteger(), nullable=False),
        sa.Column("start_date", sa.Date(), nullable=False),
        sa.Column("end_date", sa.Date(), nullable=True),
        sa.CheckConstraint("end_date >= start_date", name="lease_end_date"),
        sa.ForeignKeyConstraint(["company_id", "transition_id"], ["transition.company_id", "transition.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "transition_id", name="lease_of_transition"),
    )
    op.create_table(
        "turn_task",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('turn_task_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("transition_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=False),
        sa.Column("task_type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("scheduled_date", sa.Date(), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stale_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("(status = 'cancelled') = (cancelled_at IS NOT NULL)", name="turn_task_cancelled_at"),
        sa.CheckConstraint("(status = 'completed') = (completed_at IS NOT NULL)", name="turn_task_completed_at"),
        sa.CheckConstraint("source IN ('staff', 'import')", name="turn_task_source"),
        sa.CheckConstraint("status IN ('open', 'completed', 'cancelled')", name="turn_task_status"),
        sa.CheckConstraint("char_length(task_type) <= 200", name="turn_task_task_type"),
        sa.CheckConstraint("updated_at >= created_at", name="turn_task_updated_after_created"),
        sa.ForeignKeyConstraint(["company_id", "transition_id"], ["transition.company_id", "transition.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
    )
    op.create_index("turn_task_external_id", "turn_task", ["company_id", "external_id"], unique=True)
    op.create_index("turn_task_of_transition", "turn_task", ["company_id", "transition_id", "id"])
    op.create_index(
        "turn_task_open_in_unit",
        "turn_task",
        ["company_id", "unit_id", "id"],
        postgresql_where=sa.text("status = 'open'"),
    )
    op.create_index(
        "turn_task_to_tell_of",
        "turn_task",
        ["company_id", "scheduled_date", "id"],
        postgresql_where=sa.text("status = 'open' AND stale_at IS NULL"),
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
        sa.ForeignKeyConstraint(["company_id", "transition_id"], ["lease.company_id", "lease.transition_id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "transition_id", "position", name="party_order"),
    )
