"""All tables of the database `occupancy`. Constraints enforce the rules."""

from __future__ import annotations

from svc_occupancy.residencies.tables import lease, lease_id, party, party_id, party_search
from svc_occupancy.schema import (
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
from svc_occupancy.turn_tasks.tables import turn_task, turn_task_id
from svc_occupancy.turn_templates.tables import turn_template, turn_template_id, turn_template_task
from svc_occupancy.turns.tables import transition, transition_id
from svc_occupancy.units.tables import unit_state, unit_status_change

__all__ = [
    "audit",
    "changes_epoch",
    "changes_to_touch",
    "company",
    "idempotency",
    "inbox",
    "lease",
    "lease_id",
    "metadata",
    "outbox",
    "party",
    "party_id",
    "party_search",
    "property_",
    "reports",
    "staff",
    "transition",
    "transition_id",
    "turn_task",
    "turn_task_id",
    "turn_template",
    "turn_template_id",
    "turn_template_task",
    "unit",
    "unit_state",
    "unit_status_change",
    "vendor",
]
