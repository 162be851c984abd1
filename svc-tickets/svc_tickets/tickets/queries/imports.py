"""The SQL statements of an import of tickets: a few for each batch, whatever its size."""

from __future__ import annotations

from chassis.db.rows import InsertMany
from chassis.imports.importer import ImportTable
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.rules import staleness

# The columns of a stored ticket that a row may change.
CHANGEABLE = (
    "title",
    "description",
    "category",
    "subcategory",
    "priority",
    "status",
    "property_id",
    "unit_id",
    "asset_id",
    "assignee_id",
    "vendor_id",
    "unit_number",
    "room",
    "room_instance",
    "permission_to_enter",
    "preferred_access_time",
    "photo_url",
    "created_at",
    "completed_at",
    "cancelled_at",
    "cancellation_reason_code",
    "source",
)
TICKETS = ImportTable(t.ticket, "ticket_number", *staleness.COLUMNS, *CHANGEABLE)

# A change by an import has neither a comment nor an API key.
INSERT_CHANGES = InsertMany(
    t.ticket_status_change,
    (
        "company_id",
        "ticket_id",
        "version",
        "occurred_at",
        "from_status",
        "to_status",
        "cancellation_reason_code",
        "request_id",
    ),
)
