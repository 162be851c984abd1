"""The tables of svc-tickets: tickets, their comments and history, maintenance tasks, and the replicas that they name.

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
    for sequence in ("ticket_id", "ticket_comment_id", "pm_task_id"):
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
        "staff",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("staff_external_id", "staff", ["company_id", "external_id"])
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
        sa.Column("on_hold", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("vendor_external_id", "vendor", ["company_id", "external_id"])
    op.create_table(
        "asset",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["property_id"], ["property.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("asset_external_id", "asset", ["company_id", "external_id"])
    op.create_table(
        "ticket_number",
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["property_id"], ["property.id"]),
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
        sa.ForeignKeyConstraint(["property_id"], ["property.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("unit_external_id", "unit", ["company_id", "external_id"])
    op.create_table(
        "pm_task",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('pm_task_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("task_name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'Open'"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=True),
        sa.Column("area", sa.Text(), nullable=True),
        sa.Column("asset_id", sa.BigInteger(), nullable=True),
        sa.Column("due_date", sa.Date(), nullable=False),
        sa.Column("repeat_days", sa.Integer(), nullable=True),
        sa.Column("repeat_months", sa.Integer(), nullable=True),
        sa.Column("day_of_month", sa.Integer(), nullable=True),
        sa.Column("previous_id", sa.BigInteger(), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stale_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("(status = 'Cancelled') = (cancelled_at IS NOT NULL)", name="pm_task_cancelled_at"),
        sa.CheckConstraint("(status = 'Completed') = (completed_at IS NOT NULL)", name="pm_task_completed_at"),
        sa.CheckConstraint("source IN ('staff', 'import')", name="pm_task_source"),
        sa.CheckConstraint("status IN ('Open', 'Completed', 'Cancelled')", name="pm_task_status"),
        sa.CheckConstraint("(repeat_months IS NULL) = (day_of_month IS NULL)", name="pm_task_day_of_month"),
        sa.CheckConstraint("repeat_days IS NULL OR repeat_months IS NULL", name="pm_task_repeat"),
        sa.CheckConstraint("unit_id IS NULL OR area IS NULL", name="pm_task_place"),
        sa.CheckConstraint("updated_at >= created_at", name="pm_task_updated_after_created"),
        sa.ForeignKeyConstraint(["asset_id"], ["asset.id"]),
        sa.ForeignKeyConstraint(
            ["company_id", "previous_id"], ["pm_task.company_id", "pm_task.id"], name="pm_task_after"
        ),
        sa.ForeignKeyConstraint(["property_id"], ["property.id"]),
        sa.ForeignKeyConstraint(["unit_id"], ["unit.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="pm_task_external_id"),
        sa.UniqueConstraint("company_id", "previous_id", name="pm_task_previous"),
    )
    op.create_index(
        "pm_task_due",
        "pm_task",
        ["company_id", "due_date"],
        postgresql_where=sa.text("status = 'Open' AND stale_at IS NULL"),
    )
    op.create_index("pm_task_of_property", "pm_task", ["company_id", "property_id", "id"])
    op.create_index("pm_task_open", "pm_task", ["company_id", "id"], postgresql_where=sa.text("status = 'Open'"))
    op.create_table(
        "ticket",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('ticket_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
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
        sa.Column("quiet_since", sa.DateTime(timezone=True), server_default=sa.text("NULL"), nullable=True),
        sa.Column("stale_due_at", sa.DateTime(timezone=True), server_default=sa.text("NULL"), nullable=True),
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
        sa.CheckConstraint(
            "stale_due_at IS NULL OR quiet_since IS NOT NULL AND stale_due_at > quiet_since", name="ticket_stale_due_at"
        ),
        sa.CheckConstraint("updated_at >= created_at", name="ticket_updated_after_created"),
        sa.ForeignKeyConstraint(["asset_id"], ["asset.id"]),
        sa.ForeignKeyConstraint(["assignee_id"], ["staff.id"]),
        sa.ForeignKeyConstraint(["property_id"], ["property.id"]),
        sa.ForeignKeyConstraint(["unit_id"], ["unit.id"]),
        sa.ForeignKeyConstraint(["vendor_id"], ["vendor.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="ticket_external_id"),
        sa.UniqueConstraint("property_id", "ticket_number", name="ticket_number_in_property"),
    )
    op.create_index(
        "ticket_changes", "ticket", [sa.literal_column("((company_id << 30) # (id >> 14))"), "status", "updated_at"]
    )
    op.create_index(
        "ticket_changes_of_property",
        "ticket",
        [sa.literal_column("((property_id << 30) # (id >> 14))"), "status", "updated_at"],
    )
    op.create_index(
        "ticket_changes_of_unit",
        "ticket",
        [sa.literal_column("((unit_id << 30) # (id >> 14))"), "status", "updated_at"],
    )
    op.create_index("ticket_page_of_property", "ticket", ["company_id", "property_id", "id"])
    op.create_index(
        "ticket_page_of_property_and_status",
        "ticket",
        [sa.literal_column("hashtextextended(status, property_id)"), "id"],
    )
    op.create_index(
        "ticket_page_of_status", "ticket", [sa.literal_column("hashtextextended(status, company_id)"), "id"]
    )
    op.create_index("ticket_page_of_unit", "ticket", ["company_id", "unit_id", "id"])
    op.create_index(
        "ticket_page_of_unit_and_status", "ticket", [sa.literal_column("hashtextextended(status, unit_id)"), "id"]
    )
    op.create_index(
        "ticket_stale_due",
        "ticket",
        ["company_id", "stale_due_at"],
        postgresql_where=sa.text("stale_due_at IS NOT NULL"),
    )
    op.create_index("ticket_updated", "ticket", ["company_id", "updated_at"])
    op.create_table(
        "ticket_comment",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ticket_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("administrator_id", sa.BigInteger(), nullable=True),
        sa.Column("api_key_id", sa.BigInteger(), nullable=True),
        sa.Column("author", sa.Text(), server_default=sa.text("NULL"), nullable=True),
        sa.Column("actor", sa.Text(), server_default=sa.text("NULL"), nullable=True),
        sa.CheckConstraint("author IN ('staff', 'vendor', 'resident')", name="ticket_comment_whose"),
        sa.CheckConstraint("body <> ''", name="ticket_comment_body"),
        sa.CheckConstraint(
            "kind IN ('closing_note', 'cancellation_notes', 'comment', 'photo')", name="ticket_comment_kind"
        ),
        sa.CheckConstraint("(author IS NULL) <> (api_key_id IS NULL)", name="ticket_comment_brought"),
        sa.CheckConstraint("(author IS NULL) = (actor IS NULL)", name="ticket_comment_actor"),
        sa.CheckConstraint("api_key_id IS NULL OR administrator_id IS NOT NULL", name="ticket_comment_author"),
        sa.ForeignKeyConstraint(
            ["company_id", "ticket_id"], ["ticket.company_id", "ticket.id"], name="ticket_comment_of"
        ),
        sa.PrimaryKeyConstraint("company_id", "ticket_id", "id"),
    )
    op.create_table(
        "ticket_of_inspection_row",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("inspection_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("row_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ticket_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["company_id", "ticket_id"], ["ticket.company_id", "ticket.id"], name="ticket_of_inspection_row_is"
        ),
        sa.PrimaryKeyConstraint("company_id", "inspection_id", "row_id"),
    )
    op.create_table(
        "ticket_status_change",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ticket_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("from_status", sa.Text(), nullable=False),
        sa.Column("to_status", sa.Text(), nullable=False),
        sa.Column("cancellation_reason_code", sa.Text(), nullable=True),
        sa.Column("comment_id", sa.BigInteger(), nullable=True),
        sa.Column("administrator_id", sa.BigInteger(), nullable=True),
        sa.Column("api_key_id", sa.BigInteger(), nullable=True),
        sa.Column("actor", sa.Text(), server_default=sa.text("NULL"), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "api_key_id IS NULL OR (comment_id IS NOT NULL) = (to_status = 'Completed' OR cancellation_reason_code IS NOT DISTINCT FROM 'see_notes')",
            name="ticket_status_change_note_given",
        ),
        sa.CheckConstraint(
            "api_key_id IS NULL OR to_status <> 'Cancelled' OR cancellation_reason_code IS NOT NULL",
            name="ticket_status_change_reason_given",
        ),
        sa.CheckConstraint(
            "cancellation_reason_code IN ('duplicate_ticket', 'no_access_repeated', 'resident_cancelled', 'resolved_independently', 'scheduled_for_later', 'see_notes', 'wrong_property')",
            name="ticket_status_change_cancellation_reason_code",
        ),
        sa.CheckConstraint(
            "cancellation_reason_code IS NULL OR to_status = 'Cancelled'", name="ticket_status_change_reason"
        ),
        sa.CheckConstraint(
            "from_status <> to_status OR to_status IN ('Completed', 'Cancelled')", name="ticket_status_change_says"
        ),
        sa.CheckConstraint(
            "from_status IN ('Open', 'In Progress', 'On Hold', 'Completed', 'Cancelled')",
            name="ticket_status_change_from_status",
        ),
        sa.CheckConstraint(
            "to_status IN ('Open', 'In Progress', 'On Hold', 'Completed', 'Cancelled')",
            name="ticket_status_change_to_status",
        ),
        sa.CheckConstraint("api_key_id IS NULL OR administrator_id IS NOT NULL", name="ticket_status_change_author"),
        sa.CheckConstraint("version > 1", name="ticket_status_change_version"),
        sa.ForeignKeyConstraint(
            ["company_id", "ticket_id", "comment_id"],
            ["ticket_comment.company_id", "ticket_comment.ticket_id", "ticket_comment.id"],
            name="ticket_status_change_comment",
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "ticket_id"], ["ticket.company_id", "ticket.id"], name="ticket_status_change_of"
        ),
        sa.PrimaryKeyConstraint("company_id", "ticket_id", "version"),
    )
