"""The tables of tickets. Constraints enforce the rules."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from chassis.changes.tables import Follow, make_followable
from chassis.lists.paging import page_indexes
from chassis.writes.idempotency import SET_BY_WRITES
from svc_tickets import schema
from svc_tickets.schema import PLACES, metadata, one_of
from svc_tickets.tickets.rules import fields

ticket_id = Sequence("ticket_id", metadata=metadata, data_type=BigInteger)

ticket = Table(
    "ticket",
    metadata,
    # The key begins with the company: with an index on ids alone, a planner that knows few companies would page through
    # all companies' tickets to find those of one.
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
    # Whether staff opened the ticket because a resident asked, for example on the phone. A server default, so a create
    # over the API does not insert it.
    Column("resident_asked", Boolean, nullable=False, server_default=text("false")),
    # The administrator who minted the API key that opened the ticket; null for other sources.
    Column("created_by_administrator_id", BigInteger),
    # quiet_since: when staff or a vendor last worked on the ticket. stale_due_at: when the quiet will have lasted too
    # long. Both are null where that cannot happen. They are server defaults, so a create over the API inserts neither.
    Column("quiet_since", DateTime(timezone=True), server_default=text("NULL")),
    Column("stale_due_at", DateTime(timezone=True), server_default=text("NULL")),
    UniqueConstraint("property_id", "ticket_number", name="ticket_number_in_property"),
    UniqueConstraint("company_id", "external_id", name="ticket_external_id"),
    one_of("ticket", "status", fields.STATUSES),
    one_of("ticket", "priority", fields.PRIORITIES),
    one_of("ticket", "category", fields.CATEGORIES),
    one_of("ticket", "source", fields.SOURCES),
    one_of("ticket", "cancellation_reason_code", fields.CANCELLATION_REASONS),
    # Only a ticket of a file, which has an external_id, may be closed at an unknown time.
    CheckConstraint(
        "(status = 'Completed') = (completed_at IS NOT NULL) OR completed_at IS NULL AND external_id IS NOT NULL",
        name="ticket_completed_at",
    ),
    CheckConstraint(
        "(status = 'Cancelled') = (cancelled_at IS NOT NULL) OR cancelled_at IS NULL AND external_id IS NOT NULL",
        name="ticket_cancelled_at",
    ),
    CheckConstraint(
        "cancellation_reason_code IS NULL OR status = 'Cancelled'", name="ticket_reason_of_a_cancelled_one"
    ),
    CheckConstraint(f"char_length(title) <= {fields.TITLE_POINTS_MAX}", name="ticket_title"),
    CheckConstraint("updated_at >= created_at", name="ticket_updated_after_created"),
    CheckConstraint(
        "stale_due_at IS NULL OR quiet_since IS NOT NULL AND stale_due_at > quiet_since", name="ticket_stale_due_at"
    ),
)
page_indexes(ticket, places=PLACES)
make_followable(
    ticket,
    Follow("property_id", schema.property_, "name", "external_id"),
    Follow("unit_id", schema.unit, "name", "external_id"),
    Follow("assignee_id", schema.staff, "name"),
    Follow("vendor_id", schema.vendor, "name", "external_id"),
    beside=["quiet_since", "stale_due_at"],
)
Index(
    "ticket_stale_due",
    ticket.c.company_id,
    ticket.c.stale_due_at,
    postgresql_where=text("stale_due_at IS NOT NULL"),
)

comment_id = Sequence("ticket_comment_id", metadata=metadata, data_type=BigInteger)

# Comments and photos of a ticket: the body of a photo is its URL.
ticket_comment = Table(
    "ticket_comment",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ticket_id", BigInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    # Who submitted it: the administrator, and the API key if it came over the API. In the back office: actor, as the
    # audit log names the person, and author, whose words or photo it is.
    Column("administrator_id", BigInteger),
    Column("api_key_id", BigInteger),
    Column("author", Text, server_default=text("NULL"), info={SET_BY_WRITES: True}),
    Column("actor", Text, server_default=text("NULL"), info={SET_BY_WRITES: True}),
    ForeignKeyConstraint(["company_id", "ticket_id"], ["ticket.company_id", "ticket.id"], name="ticket_comment_of"),
    one_of("ticket_comment", "kind", (*fields.COMMENT_KINDS.values(), fields.COMMENT, fields.PHOTO)),
    CheckConstraint(f"author IN {fields.AUTHORS}", name="ticket_comment_whose"),
    CheckConstraint("(author IS NULL) = (actor IS NULL)", name="ticket_comment_actor"),
    CheckConstraint("(author IS NULL) <> (api_key_id IS NULL)", name="ticket_comment_brought"),
    CheckConstraint("body <> ''", name="ticket_comment_body"),
    CheckConstraint("api_key_id IS NULL OR administrator_id IS NOT NULL", name="ticket_comment_author"),
)

# A ticket's history: one row for each version that changed its status. from_status equals to_status where a closed
# ticket was closed again.
ticket_status_change = Table(
    "ticket_status_change",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ticket_id", BigInteger, primary_key=True, autoincrement=False),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("occurred_at", DateTime(timezone=True), nullable=False),
    Column("from_status", Text, nullable=False),
    Column("to_status", Text, nullable=False),
    Column("cancellation_reason_code", Text),
    Column("comment_id", BigInteger),
    # As for comments; all null if an import made the change.
    Column("administrator_id", BigInteger),
    Column("api_key_id", BigInteger),
    Column("actor", Text, server_default=text("NULL"), info={SET_BY_WRITES: True}),
    Column("request_id", Text, nullable=False),
    ForeignKeyConstraint(
        ["company_id", "ticket_id"], ["ticket.company_id", "ticket.id"], name="ticket_status_change_of"
    ),
    ForeignKeyConstraint(
        ["company_id", "ticket_id", "comment_id"],
        ["ticket_comment.company_id", "ticket_comment.ticket_id", "ticket_comment.id"],
        name="ticket_status_change_comment",
    ),
    one_of("ticket_status_change", "from_status", fields.STATUSES),
    one_of("ticket_status_change", "to_status", fields.STATUSES),
    one_of("ticket_status_change", "cancellation_reason_code", fields.CANCELLATION_REASONS),
    CheckConstraint("version > 1", name="ticket_status_change_version"),
    CheckConstraint(
        "from_status <> to_status OR to_status IN ('Completed', 'Cancelled')", name="ticket_status_change_says"
    ),
    CheckConstraint("cancellation_reason_code IS NULL OR to_status = 'Cancelled'", name="ticket_status_change_reason"),
    # The API requires these fields; imports may lack them.
    CheckConstraint(
        "api_key_id IS NULL OR to_status <> 'Cancelled' OR cancellation_reason_code IS NOT NULL",
        name="ticket_status_change_reason_given",
    ),
    CheckConstraint(
        "api_key_id IS NULL OR (comment_id IS NOT NULL) = "
        "(to_status = 'Completed' OR cancellation_reason_code IS NOT DISTINCT FROM 'see_notes')",
        name="ticket_status_change_note_given",
    ),
    CheckConstraint("api_key_id IS NULL OR administrator_id IS NOT NULL", name="ticket_status_change_author"),
)

# The tickets that failed inspection rows opened, one for each row.
ticket_of_inspection_row = Table(
    "ticket_of_inspection_row",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("inspection_id", BigInteger, primary_key=True, autoincrement=False),
    Column("row_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ticket_id", BigInteger, nullable=False),
    ForeignKeyConstraint(
        ["company_id", "ticket_id"], ["ticket.company_id", "ticket.id"], name="ticket_of_inspection_row_is"
    ),
)

Index(
    "ticket_of_inspection_row_of_ticket",
    ticket_of_inspection_row.c.company_id,
    ticket_of_inspection_row.c.ticket_id,
)

ticket_number = Table(
    "ticket_number",
    metadata,
    Column("property_id", BigInteger, ForeignKey("property.id"), primary_key=True, autoincrement=False),
    Column("last", Integer, nullable=False),
)
