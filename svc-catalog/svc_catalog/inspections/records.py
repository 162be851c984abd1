"""The public shape of an inspection (spec 2.9)."""

from __future__ import annotations

import datetime
from typing import Any, Literal

import msgspec

from chassis.schedule.instants import printed
from svc_catalog import field_rules
from svc_catalog.documents import Row
from svc_catalog.inspections import rules as inspections_rules
from svc_catalog.places.records import Named


class Assignee(msgspec.Struct, frozen=True, gc=False):
    """The member of staff who has the work."""

    id: int
    """The person's id."""
    name: str
    """The person's name."""


class Inspection(msgspec.Struct, frozen=True, gc=False):
    """An inspection of operations: of a property, or of one unit. Walks of consulting engagements are not shown."""

    schema_version: Literal[1]
    entity_type: Literal["inspection"]
    entity_id: int
    inspection_number: int | None
    """The number that staff see, of a sequence of the property; null where the inspection never got one."""
    title: str | None
    """What is inspected, in one line; null on legacy inspections."""
    inspection_type: str | None
    """The type of the template that it follows, for example General or Fire Alarm."""
    status: inspections_rules.InspectionStatus
    """Where it stands. One that was finalized on the legacy plain-checklist path is Completed."""
    result: inspections_rules.InspectionResult | None
    """What came of it; null where neither applies."""
    property: Named
    """The property that is inspected."""
    unit: Named | None
    """The unit that is inspected; null where it is the property or another part of it."""
    scheduled_date: datetime.date | None
    """The day for which it is planned."""
    completed_date: datetime.date | None
    """The day on which it was done."""
    assignee: Assignee | None
    """The member of staff who does it; null where nobody is named."""
    is_compliance_inspection: bool
    """Whether a law or a contract asks for it."""
    compliance_type: str | None
    """What asks for it, in the company's own words."""
    created_at: str
    external_id: str | None
    source: field_rules.Source
    """How the inspection was created."""
    url: str


class InspectionLinks:
    """Renders rows of `queries_inspections` with links that start at the given address."""

    def __init__(self, links_url: str) -> None:
        self._links_url = links_url

    def inspection(self, row: Row) -> Inspection:
        # The columns of queries_inspections.INSPECTION_COLUMNS; those between id and result are served as they are.
        (
            *shown,
            property_id,
            property_name,
            property_external_id,
            unit_id,
            unit_name,
            unit_external_id,
            scheduled_date,
            completed_date,
            assignee_id,
            assignee_name,
            is_compliance_inspection,
            compliance_type,
            created_at,
            external_id,
            source,
            _version,
        ) = row
        values: list[Any] = [
            *shown,
            Named(property_id, property_name, property_external_id),
            None if unit_id is None else Named(unit_id, unit_name, unit_external_id),
            scheduled_date,
            completed_date,
            None if assignee_id is None else Assignee(assignee_id, assignee_name),
            is_compliance_inspection,
            compliance_type,
            printed(created_at),
            external_id,
            source,
            f"{self._links_url}/inspections/{shown[0]}",
        ]
        return Inspection(1, "inspection", *values)
