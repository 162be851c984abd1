"""Request bodies and import rows of preventive-maintenance tasks."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import Between, PastInstant, RecordId, Text
from svc_tickets.maintenance import rules

ShortText = Annotated[str, Text(longest=200)]
Name = Annotated[str, Text(longest=200, blank=False)]
Days = Annotated[int, Between(1, rules.REPEAT_DAYS_MAX)]
Months = Annotated[int, Between(1, rules.REPEAT_MONTHS_MAX)]


class PmTaskNew(msgspec.Struct, kw_only=True):
    """A task to add."""

    property_id: RecordId
    task_name: Name
    due_date: datetime.date
    unit_id: RecordId | None = None
    area: Name | None = None
    asset_id: RecordId | None = None
    repeat_days: Days | None = None
    repeat_months: Months | None = None
    external_id: Name | None = None
    assignee_id: RecordId | None = None


class PmTaskChange(msgspec.Struct, kw_only=True):
    """What is to change in a task."""

    task_name: Name | None = None
    due_date: datetime.date | None = None
    unit_id: RecordId | None = None
    area: Name | None = None
    asset_id: RecordId | None = None
    repeat_days: Days | None = None
    repeat_months: Months | None = None
    external_id: Name | None = None
    assignee_id: RecordId | None = None


class PmTaskRow(msgspec.Struct, kw_only=True):
    """A task's row in an import. property, unit, asset and assignee (a member of staff) are the external_id of
    those records."""

    external_id: Name
    property: ShortText
    task_name: Name
    due_date: datetime.date
    unit: ShortText | None = None
    area: Name | None = None
    asset: ShortText | None = None
    assignee: ShortText | None = None
    repeat_days: Days | None = None
    repeat_months: Months | None = None
    status: rules.PmStatus | None = None
    completed_at: PastInstant | None = None
    cancelled_at: PastInstant | None = None
    created_at: PastInstant | None = None
