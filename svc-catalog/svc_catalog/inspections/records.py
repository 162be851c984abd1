"""The public shape of an inspection (spec 2.9)."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

import msgspec
from sqlalchemy import Text, type_coerce

from chassis.records.bodies import SENSITIVE
from chassis.records.shapes import Link, Nested, Shape
from svc_catalog import field_rules
from svc_catalog.inspections import rules
from svc_catalog.inspections.tables import inspection
from svc_catalog.places.records import Named
from svc_catalog.places.tables import property_, unit
from svc_catalog.schema import staff


class Assignee(msgspec.Struct, frozen=True, gc=False):
    """The member of staff who has the work."""

    id: int
    """The person's id."""
    name: Annotated[str, SENSITIVE]
    """The person's name."""


class Inspection(msgspec.Struct, frozen=True, gc=False):
    """An inspection of operations: of a property, or of one unit. Walks of consulting engagements are not shown."""

    schema_version: Literal[1]
    entity_type: Literal["inspection"]
    entity_id: int
    inspection_number: int | None
    """The number that staff see, from a sequence of the property; null if the inspection never got one."""
    title: str | None
    """The subject of the inspection in one line; null on legacy inspections."""
    inspection_type: str | None
    """The type of the template that it follows, for example General or Fire Alarm."""
    status: rules.InspectionStatus
    """Its status. An inspection that was finalized on the legacy plain-checklist path is Completed."""
    result: rules.InspectionResult | None
    """Its result; null where neither applies."""
    property: Named
    """The property that is inspected."""
    unit: Named | None
    """The unit that is inspected; null if the property or another part of it is."""
    scheduled_date: datetime.date | None
    """The day for which it is planned."""
    completed_date: datetime.date | None
    """The day on which it was done."""
    assignee: Assignee | None
    """The member of staff who does it; null if none is assigned."""
    is_compliance_inspection: bool
    """Whether a law or a contract requires it."""
    compliance_type: str | None
    """The law or contract that requires it, in the company's own words."""
    created_at: str
    external_id: str | None
    source: field_rules.Source
    """How the inspection was created."""
    url: str


INSPECTION = Shape(
    Inspection,
    inspection,
    # The database computes it from a column that is never null.
    status=type_coerce(inspection.c.published_status, Text),
    property=Nested(Named, property_),
    unit=Nested(Named, unit, optional=True),
    assignee=Nested(Assignee, staff, optional=True),
    url=Link("/inspections/{entity_id}"),
    version=inspection.c.version,
)
