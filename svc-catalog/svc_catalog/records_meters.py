"""The public shapes of a meter and of a reading (spec 2.11), and their rows in an import."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

import msgspec

from chassis.bodies import Between, Text
from chassis.instants import printed
from svc_catalog import rules_meters
from svc_catalog.records import Named, Row
from svc_catalog.records_import import ExternalId, Name, ShortText

UnitOfMeasure = Annotated[str, Text(longest=rules_meters.UNIT_OF_MEASURE_POINTS_MAX)]
Amount = Annotated[float, Between(-rules_meters.AMOUNT_MAX, rules_meters.AMOUNT_MAX)]


class Meter(msgspec.Struct, frozen=True, gc=False):
    """A meter (spec 2.11)."""

    schema_version: int
    entity_type: str
    entity_id: int
    name: str
    utility_type: rules_meters.UtilityType
    scope: rules_meters.Scope
    meter_number: str | None
    unit_of_measure: str | None
    is_active: bool
    property: Named
    unit: Named | None
    created_at: str
    updated_at: str
    external_id: str | None
    source: str
    url: str


class Reading(msgspec.Struct, frozen=True, gc=False):
    """What one meter counted in one period (spec 2.11)."""

    schema_version: int
    entity_type: str
    entity_id: int
    meter_id: int
    period_start: str
    period_end: str
    consumption: float
    unit_of_measure: str | None
    cost: float | None
    is_estimated: bool
    created_at: str
    external_id: str | None
    source: str


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


class MeterRow(msgspec.Struct, kw_only=True):
    """A meter's row in an import; property and unit are external_ids."""

    external_id: ExternalId
    property: ExternalId
    name: Name
    utility_type: rules_meters.UtilityType
    scope: rules_meters.Scope | None = None
    unit: ExternalId | None = None
    meter_number: ShortText | None = None
    unit_of_measure: UnitOfMeasure | None = None
    is_active: bool | None = None
    created_at: datetime.datetime | None = None


class ReadingRow(msgspec.Struct, kw_only=True):
    """A reading's row in an import; meter is an external_id."""

    external_id: ExternalId
    meter: ExternalId
    period_start: datetime.datetime
    period_end: datetime.datetime
    consumption: Amount
    unit_of_measure: UnitOfMeasure | None = None
    cost: Amount | None = None
    is_estimated: bool | None = None
    created_at: datetime.datetime | None = None
