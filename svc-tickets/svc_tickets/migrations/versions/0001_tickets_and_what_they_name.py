"""tickets and what they name

Revision ID: 0001
Revises:
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute(CreateSequence(sa.Sequence("ticket_id", data_type=sa.BigInteger)))
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
    op.create_index(op.f("ix_idempotency_recorded_at"), "idempotency", ["recorded_at"], unique=False)
    op.create_table(
        "inbox",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column(
            "applied_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("event_id"),
    )
    op.create_index(op.f("ix_inbox_applied_at"), "inbox", ["applied_at"], unique=False)
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
    op.create_index("outbox_recorded", "outbox", ["recorded_at"], unique=False)
    op.create_index(
        "outbox_unpublished", "outbox", ["event_id"], unique=False, postgresql_where=sa.text("published_at IS NULL")
    )
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
    op.create_index("property_external_id", "property", ["company_id", "external_id"], unique=False)
    op.create_table(
        "reconciled",
        sa.Column("producer", sa.Text(), nullable=False),
        sa.Column("recorded_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("producer"),
    )
    op.create_table(
        "staff",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("staff_external_id", "staff", ["company_id", "external_id"], unique=False)
    op.create_table(
        "ticket_policy",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("photo_required_to_complete", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("stale_after_hours", sa.Integer(), server_default=sa.text("72"), nullable=False),
        sa.CheckConstraint("stale_after_hours BETWEEN 1 AND 8760", name="ticket_policy_stale_after_hours"),
        sa.PrimaryKeyConstraint("company_id"),
    )
    op.create_table(
        "vendor",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("vendor_external_id", "vendor", ["company_id", "external_id"], unique=False)
    op.create_table(
        "asset",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["property_id"],
            ["property.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("asset_external_id", "asset", ["company_id", "external_id"], unique=False)
    op.create_table(
        "ticket_number",
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["property_id"],
            ["property.id"],
        ),
        sa.PrimaryKeyConstraint("property_id"),
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
        sa.ForeignKeyConstraint(
            ["property_id"],
            ["property.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("unit_external_id", "unit", ["company_id", "external_id"], unique=False)
    op.create_table(
        "ticket",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("ticket_number", sa.Integer(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("subcategory", sa.Text(), nullable=True),
        sa.Column("priority", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=True),
        sa.Column("asset_id", sa.BigInteger(), nullable=True),
        sa.Column("unit_number", sa.Text(), nullable=True),
        sa.Column("room", sa.Text(), nullable=True),
        sa.Column("room_instance", sa.Text(), nullable=True),
        sa.Column("permission_to_enter", sa.Boolean(), nullable=False),
        sa.Column("preferred_access_time", sa.Text(), nullable=True),
        sa.Column("assignee_id", sa.BigInteger(), nullable=True),
        sa.Column("vendor_id", sa.BigInteger(), nullable=True),
        sa.Column("photo_url", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancellation_reason_code", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created_by_administrator_id", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(status = 'Cancelled') = (cancelled_at IS NOT NULL)", name="ticket_cancelled_at"),
        sa.CheckConstraint("(status = 'Completed') = (completed_at IS NOT NULL)", name="ticket_completed_at"),
        sa.CheckConstraint(
            "cancellation_reason_code IN ('duplicate_ticket', 'no_access_repeated', 'resident_cancelled', 'resolved_independently', 'scheduled_for_later', 'see_notes', 'wrong_property')",
            name="ticket_cancellation_reason_code",
        ),
        sa.CheckConstraint(
            "cancellation_reason_code IS NULL OR status = 'Cancelled'", name="ticket_reason_of_a_cancelled_one"
        ),
        sa.CheckConstraint(
            "category IN ('HVAC', 'Plumbing', 'Electrical', 'Mechanical', 'Life Safety', 'Elevator', 'Appliance', 'Doors/Windows', 'Flooring', 'Painting', 'Roofing', 'Leak', 'Pest Control', 'Structural', 'Grounds', 'Parking Garage', 'Pool', 'Security', 'Common Area', 'General', 'Other')",
            name="ticket_category",
        ),
        sa.CheckConstraint("priority IN ('Low', 'Medium', 'High', 'Emergency')", name="ticket_priority"),
        sa.CheckConstraint(
            "source IN ('api', 'staff', 'resident_portal', 'inspection', 'import')", name="ticket_source"
        ),
        sa.CheckConstraint(
            "status IN ('Open', 'In Progress', 'On Hold', 'Completed', 'Cancelled')", name="ticket_status"
        ),
        sa.CheckConstraint("char_length(title) <= 150", name="ticket_title"),
        sa.CheckConstraint("updated_at >= created_at", name="ticket_updated_after_created"),
        sa.ForeignKeyConstraint(
            ["asset_id"],
            ["asset.id"],
        ),
        sa.ForeignKeyConstraint(
            ["assignee_id"],
            ["staff.id"],
        ),
        sa.ForeignKeyConstraint(
            ["property_id"],
            ["property.id"],
        ),
        sa.ForeignKeyConstraint(
            ["unit_id"],
            ["unit.id"],
        ),
        sa.ForeignKeyConstraint(
            ["vendor_id"],
            ["vendor.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="ticket_external_id"),
        sa.UniqueConstraint("property_id", "ticket_number", name="ticket_number_in_property"),
    )
    op.create_index("ticket_page_of_property", "ticket", ["company_id", "property_id", "id"], unique=False)
    op.create_index("ticket_page_of_status", "ticket", ["company_id", "status", "id"], unique=False)
    op.create_index("ticket_page_of_unit", "ticket", ["company_id", "unit_id", "id"], unique=False)
    op.create_index("ticket_updated", "ticket", ["company_id", "updated_at"], unique=False)
