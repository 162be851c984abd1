"""The fields of a task in requests and import rows, with the same checks in both."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import PastInstant, Text
from svc_occupancy.turn_tasks import rules
from svc_occupancy.turns.inputs import ExternalId


class TurnTaskRow(msgspec.Struct, kw_only=True):
    """A make-ready task's row in an import. turn, assignee (a member of staff) and assigned_vendor are the external_id
    of those records."""

    external_id: ExternalId
    turn: ExternalId
    task_type: Annotated[str, Text(longest=rules.TASK_TYPE_POINTS_MAX, blank=False)]
    scheduled_date: datetime.date | None = None
    assignee: Annotated[str, Text(longest=200)] | None = None
    assigned_vendor: Annotated[str, Text(longest=200)] | None = None
    status: rules.ShownTaskStatus | None = None
    completed_at: PastInstant | None = None
    cancelled_at: PastInstant | None = None
    created_at: PastInstant | None = None
    updated_at: PastInstant | None = None
