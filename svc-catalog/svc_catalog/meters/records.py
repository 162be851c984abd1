"""The public shapes of a meter and of a reading (spec 2.11)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from chassis.schedule.instants import printed
from svc_catalog.documents import Row
from svc_catalog.meters import rules
from svc_catalog.places.records import Named


class Meter(msgspec.Struct, frozen=True, gc=False):
    """A utility meter of a property: of all of it, of its common areas, or of one unit."""

    schema_version: Literal[1]
    entity_type: Literal["utility_meter"]
    entity_id: int
    name: str
    """What people call the meter, for example Maple Court 204 electric."""
    utility_type: rules.UtilityType
    """What it measures."""
    scope: rules.Scope
    """What it measures it for: `master` is the whole property, `unit` one unit."""
    meter_number: str | None
    """The number on the meter."""
    unit_of_measure: str | None
    """What it counts in, for example kWh; null if not on record."""
    is_active: bool
    """Whether it is still in use. Meters that are not go on being listed, with their readings."""
    property: Named
    """The property that it belongs to."""
    unit: Named | None
    """The unit that it measures; null unless `scope` is `unit`."""
    created_at: str
    updated_at: str
    external_id: str | None
    source: str
    """How the record was created, for example `import`."""
    url: str


class Reading(msgspec.Struct, frozen=True, gc=False):
    """A reading: what one meter counted in one period."""

    schema_version: Literal[1]
    entity_type: Literal["utility_reading"]
    entity_id: int
    meter_id: int
    """The meter's id."""
    period_start: str
    """The instant from which it counts."""
    period_end: str
    """The instant up to which it counts."""
    consumption: float
    """How much was used in the period, in `unit_of_measure`; negative where more was given back than taken. A number
    of up to fifteen digits is the one that was read."""
    unit_of_measure: str | None
    """What `consumption` counts in, for example kWh, as it was when the meter was read; null if not on record."""
    cost: float | None
    """What the period cost, in the company's currency; null if not on record."""
    is_estimated: bool
    """Whether the consumption was estimated and not read."""
    created_at: str
    external_id: str | None
    source: str
    """How the record was created, for example `import`."""


class Links:
    """Renders rows of `queries_meters` with links that start at the given address."""

    def __init__(self, links_url: str) -> None:
        self._links_url = links_url

    def meter(self, row: Row) -> Meter:
        # The columns of queries_meters.METER_COLUMNS; those between id and is_active are served as they are.
        (
            *shown,
            property_id,
            property_name,
            property_external_id,
            unit_id,
            unit_name,
            unit_external_id,
            created_at,
            updated_at,
            external_id,
            source,
            _version,
        ) = row
        values: list[Any] = [
            *shown,
            Named(property_id, property_name, property_external_id),
            None if unit_id is None else Named(unit_id, unit_name, unit_external_id),
            printed(created_at),
            printed(updated_at),
            external_id,
            source,
            f"{self._links_url}/meters/{shown[0]}",
        ]
        return Meter(1, "utility_meter", *values)


def reading(row: Row) -> Reading:
    """Renders a row of queries_meters.READING_COLUMNS."""
    entity_id, meter_id, start, end, consumption, unit_of_measure, cost, is_estimated, created_at, *rest = row
    return Reading(
        1,
        "utility_reading",
        entity_id,
        meter_id,
        printed(start),
        printed(end),
        consumption,
        unit_of_measure,
        cost,
        is_estimated,
        printed(created_at),
        *rest,
    )
