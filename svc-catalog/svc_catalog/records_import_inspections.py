"""An inspection's row in an import."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import Between
from svc_catalog import rules_inspections as rules
from svc_catalog.records_import import ExternalId, Name, ShortText


class InspectionRow(msgspec.Struct, kw_only=True):
    """An inspection's row in an import. property, unit and assignee are external ids; the last of a member of staff."""

    external_id: ExternalId
    property: ExternalId
    unit: ExternalId | None = None
    title: ShortText | None = None
    inspection_type: ShortText | None = None
    inspection_number: Annotated[int, Between(1, rules.NUMBER_MAX)] | None = None
    status: rules.StoredStatus | None = None
    result: rules.InspectionResult | None = None
    scheduled_date: datetime.date | None = None
    completed_date: datetime.date | None = None
    assignee: ExternalId | None = None
    is_compliance_inspection: bool | None = None
    compliance_type: ShortText | None = None
    kind: rules.InspectionKind | None = None
    engagement: Name | None = None
    created_at: datetime.datetime | None = None
