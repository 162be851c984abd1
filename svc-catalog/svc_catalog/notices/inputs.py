"""A notice's row in an import. Requests have the same fields."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import PastInstant, Text
from chassis.writes.editing import EditableFields
from svc_catalog.field_types import ExternalId
from svc_catalog.notices import rules


class NoticeRow(msgspec.Struct, kw_only=True):
    """A notice's row in an import: for a unit, for an area, or with neither for the whole property."""

    external_id: ExternalId
    property: ExternalId
    subject: Annotated[str, Text(longest=rules.SUBJECT_POINTS_MAX, blank=False)]
    body: Annotated[str, Text(blank=False)]
    when: Annotated[str, Text(longest=rules.WHEN_POINTS_MAX, blank=False)]
    unit: ExternalId | None = None
    area: Annotated[str, Text(longest=rules.AREA_POINTS_MAX, blank=False)] | None = None
    created_at: PastInstant | None = None
    published_at: datetime.datetime | None = None


NOTICE_FIELDS = EditableFields(NoticeRow, *NoticeRow.__struct_fields__)


class NoticeDraft(msgspec.Struct, kw_only=True):
    """What a preview renders: a notice whose texts may be missing."""

    subject: Annotated[str, Text(longest=rules.SUBJECT_POINTS_MAX)]
    body: Annotated[str, Text()]
    when: Annotated[str, Text(longest=rules.WHEN_POINTS_MAX)]
    area: Annotated[str, Text(longest=rules.AREA_POINTS_MAX, blank=False)] | None = None
