"""Every table of the database `tickets`, for migrations and tests; `schema` and each aggregate declare theirs."""

from __future__ import annotations

from svc_tickets.maintenance.tables import pm_task, pm_task_id
from svc_tickets.policy.tables import ticket_policy
from svc_tickets.schema import (
    asset,
    audit,
    changes_epoch,
    changes_to_touch,
    company,
    idempotency,
    inbox,
    metadata,
    outbox,
    property_,
    reports,
    staff,
    unit,
    vendor,
)
from svc_tickets.search.tables import ticket_search
from svc_tickets.tickets.tables import (
    comment_id,
    ticket,
    ticket_comment,
    ticket_id,
    ticket_number,
    ticket_of_inspection_row,
    ticket_status_change,
)

__all__ = [
    "asset",
    "audit",
    "changes_epoch",
    "changes_to_touch",
    "comment_id",
    "company",
    "idempotency",
    "inbox",
    "metadata",
    "outbox",
    "pm_task",
    "pm_task_id",
    "property_",
    "reports",
    "staff",
    "ticket",
    "ticket_comment",
    "ticket_id",
    "ticket_number",
    "ticket_of_inspection_row",
    "ticket_policy",
    "ticket_search",
    "ticket_status_change",
    "unit",
    "vendor",
]
