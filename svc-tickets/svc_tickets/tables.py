"""The tables of the database `tickets`. Constraints make impossible what the rules forbid."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    MetaData,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from chassis.consumer import inbox_table
from chassis.idempotency import ledger
from chassis.outbox import outbox_table
from chassis.paging import page_indexes
from chassis.replicas import company_replica, replica_table
from svc_tickets import rules

metadata = MetaData()

idempotency = ledger(metadata)
outbox = outbox_table(metadata)
inbox = inbox_table(metadata)


def _one_of(column: str, values: Iterable[str]) -> CheckConstraint:
    listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"ticket_{column}")


# Replicas: rows of other contexts by their own ids. Version 0 stands for a row that has not arrived yet.

company = company_replica(metadata)


property_ = replica_table(metadata, "property")
unit = replica_table(
    metadata,
    "unit",
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_number", Text),
)
asset = replica_table(metadata, "asset", Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False))
vendor = replica_table(metadata, "vendor")
staff = replica_table(metadata, "staff")

# What this context owns.

ticket_id = Sequence("ticket_id", metadata=metadata, data_type=BigInteger)

ticket = Table(
    "ticket",
    metadata,
    # The key begins with the company: by an index of the ids alone, a planner that knows few companies would page
    # through everybody's tickets to find one company's.
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False, server_default=text("nextval('ticket_id')")),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("ticket_number", Integer),
    Column("title", Text, nullable=False),
    Column("description", Text),
    Column("category", Text, nullable=False),
    Column("subcategory", Text),
    Column("priority", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_id", BigInteger, ForeignKey("unit.id")),
    Column("asset_id", BigInteger, ForeignKey("asset.id")),
    Column("unit_number", Text),
    Column("room", Text),
    Column("room_instance", Text),
    Column("permission_to_enter", Boolean, nullable=False),
    Column("preferred_access_time", Text),
    Column("assignee_id", BigInteger, ForeignKey("staff.id")),
    Column("vendor_id", BigInteger, ForeignKey("vendor.id")),
    Column("photo_url", Text),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    Column("completed_at", DateTime(timezone=True)),
    Column("cancelled_at", DateTime(timezone=True)),
    Column("cancellation_reason_code", Text),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    # The administrator who minted the key that opened it; null for the other sources.
    Column("created_by_administrator_id", BigInteger),
    UniqueConstraint("property_id", "ticket_number", name="ticket_number_in_property"),
    UniqueConstraint("company_id", "external_id", name="ticket_external_id"),
    _one_of("status", rules.STATUSES),
    _one_of("priority", rules.PRIORITIES),
    _one_of("category", rules.CATEGORIES),
    _one_of("source", rules.SOURCES),
    _one_of("cancellation_reason_code", rules.CANCELLATION_REASONS),
    CheckConstraint("(status = 'Completed') = (completed_at IS NOT NULL)", name="ticket_completed_at"),
    CheckConstraint("(status = 'Cancelled') = (cancelled_at IS NOT NULL)", name="ticket_cancelled_at"),
    CheckConstraint(
        "cancellation_reason_code IS NULL OR status = 'Cancelled'", name="ticket_reason_of_a_cancelled_one"
    ),
    CheckConstraint(f"char_length(title) <= {rules.TITLE_POINTS_MAX}", name="ticket_title"),
    CheckConstraint("updated_at >= created_at", name="ticket_updated_after_created"),
)
page_indexes(ticket)

ticket_number = Table(
    "ticket_number",
    metadata,
    Column("property_id", BigInteger, ForeignKey("property.id"), primary_key=True, autoincrement=False),
    Column("last", Integer, nullable=False),
)

ticket_policy = Table(
    "ticket_policy",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("photo_required_to_complete", Boolean, nullable=False, server_default=text("false")),
    Column("stale_after_hours", Integer, nullable=False, server_default=text(str(rules.STALE_AFTER_HOURS))),
    CheckConstraint("stale_after_hours BETWEEN 1 AND 8760", name="ticket_policy_stale_after_hours"),
)
