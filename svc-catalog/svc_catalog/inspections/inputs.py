"""The fields of an inspection and its rows, as requests and import rows set them."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import Between, PastInstant, RecordId, Text
from chassis.writes.editing import EditableFields
from svc_catalog.field_types import ExternalId, Name, ShortText
from svc_catalog.inspection_templates.inputs import Label
from svc_catalog.inspection_templates.rules import ROWS_MAX
from svc_catalog.inspections import rules


class InspectionRow(msgspec.Struct, kw_only=True):
    """An inspection's row in an import. property, unit and assignee are external ids; the last of a member of staff."""

    external_id: ExternalId
    property: ExternalId
    unit: ExternalId | None = None
    title: ShortText | None = None
    inspection_type: ShortText | None = None
    inspection_number: Annotated[int, Between(1, rules.NUMBER_MAX)] | None = None
    """Unique within the property; without it the inspection takes the property's next. Number all inspections of a file
    or none."""
    status: rules.StoredStatus | None = None
    result: rules.InspectionResult | None = None
    scheduled_date: datetime.date | None = None
    completed_date: datetime.date | None = None
    assignee: ExternalId | None = None
    is_compliance_inspection: bool | None = None
    compliance_type: ShortText | None = None
    kind: rules.InspectionKind | None = None
    engagement: Name | None = None
    created_at: PastInstant | None = None


class InspectionChange(msgspec.Struct, kw_only=True):
    """Fields of an inspection."""

    title: Name | None = None
    scheduled_date: datetime.date | None = None
    unit_id: RecordId | None = None
    inspection_type: ShortText | None = None
    assignee_id: RecordId | None = None
    is_compliance_inspection: bool | None = None
    compliance_type: ShortText | None = None
    external_id: ExternalId | None = None


class NewInspection(InspectionChange, kw_only=True):
    """An inspection that is planned. row: the labels of its rows."""

    title: Name
    scheduled_date: datetime.date
    property_id: RecordId
    row: Annotated[list[Label], Between(0, ROWS_MAX)]
    template_id: RecordId | None = None


class Failure(msgspec.Struct, kw_only=True):
    """What is the matter with a row; category, priority and photo_url are the ticket's."""

    note: Annotated[str, Text(longest=rules.NOTE_POINTS_MAX)] | None = None
    category: rules.TicketCategory | None = None
    priority: rules.TicketPriority | None = None
    asset_id: RecordId | None = None
    photo_url: Annotated[str, Text(longest=rules.PHOTO_URL_POINTS_MAX)] | None = None


class RowPhoto(msgspec.Struct, kw_only=True):
    """The photo of a row; None: it has none."""

    photo_url: Annotated[str, Text(longest=rules.PHOTO_URL_POINTS_MAX)] | None = None


class Completion(msgspec.Struct, kw_only=True):
    """When an inspection was done."""

    completed_date: datetime.date | None = None


class Cancellation(msgspec.Struct, kw_only=True):
    """Why an inspection is cancelled."""

    reason: Annotated[str, Text(longest=rules.REASON_POINTS_MAX)] | None = None


class NewRow(msgspec.Struct, kw_only=True):
    """A row that is added to an inspection."""

    label: Label


INSPECTION_FIELDS = EditableFields(
    InspectionChange,
    *InspectionChange.__struct_fields__,
    clearable=("unit_id", "inspection_type", "assignee_id", "compliance_type", "external_id"),
)
