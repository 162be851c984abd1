"""The public shapes of a meter and of a reading (spec 2.11)."""

from __future__ import annotations

from typing import Literal

import msgspec

from chassis.records.shapes import Link, Nested, Shape
from svc_catalog.meters import rules
from svc_catalog.meters.tables import meter, reading
from svc_catalog.places.records import Named
from svc_catalog.places.tables import property_, unit


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
    """The part of the property that it measures: `master` is the whole property, `unit` one unit."""
    meter_number: str | None
    """The number on the meter."""
    unit_of_measure: str | None
    """The unit of its readings, for example kWh; null if not on record."""
    is_active: bool
    """Whether it is still in use. Inactive meters stay in the list, with their readings."""
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
    """A reading: the consumption that one meter measured in one period."""

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
    """The consumption in the period, in `unit_of_measure`; negative if more was fed back than drawn. Numbers of up to
    fifteen digits are exact."""
    unit_of_measure: str | None
    """The unit of `consumption`, for example kWh, as it was when the meter was read; null if not on record."""
    cost: float | None
    """The cost of the period, in the company's currency; null if not on record."""
    is_estimated: bool
    """Whether the consumption was estimated rather than read."""
    created_at: str
    external_id: str | None
    source: str
    """How the record was created, for example `import`."""


class ReadingResult(msgspec.Struct, frozen=True, gc=False):
    """What became of one reading."""

    entity_id: int
    outcome: Literal["created", "changed", "unchanged"]
    """`unchanged`: the reading was stored before with these values."""


class ReadingResults(msgspec.Struct, frozen=True, gc=False):
    """What became of the readings of a request."""

    data: list[ReadingResult]
    """One for each reading, in the order of the request."""


METER = Shape(
    Meter,
    meter,
    property=Nested(Named, property_),
    unit=Nested(Named, unit, optional=True),
    url=Link("/meters/{entity_id}"),
    version=meter.c.version,
)
READING = Shape(Reading, reading)
