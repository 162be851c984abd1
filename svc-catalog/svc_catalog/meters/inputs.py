"""The rows of meters and readings in an import, whose fields requests of people have too, and a body of the API."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import Between, PastInstant, Text
from chassis.writes.editing import EditableFields
from svc_catalog.field_types import ExternalId, Name, ShortText
from svc_catalog.meters import rules

UnitOfMeasure = Annotated[str, Text(longest=rules.UNIT_OF_MEASURE_POINTS_MAX)]
Amount = Annotated[float, Between(-rules.AMOUNT_MAX, rules.AMOUNT_MAX)]


class MeterRow(msgspec.Struct, kw_only=True):
    """A meter's row in an import; property and unit are external_ids."""

    external_id: ExternalId
    property: ExternalId
    name: Name
    utility_type: rules.UtilityType
    scope: rules.Scope | None = None
    unit: ExternalId | None = None
    meter_number: ShortText | None = None
    unit_of_measure: UnitOfMeasure | None = None
    is_active: bool | None = None
    created_at: PastInstant | None = None


class ReadingRow(msgspec.Struct, kw_only=True):
    """A reading's row in an import; meter is an external_id."""

    external_id: ExternalId
    meter: ExternalId
    period_start: datetime.datetime
    period_end: datetime.datetime
    consumption: Amount
    unit_of_measure: UnitOfMeasure | None = None
    """The meter's, unless the row has one."""
    cost: Amount | None = None
    is_estimated: bool | None = None
    created_at: PastInstant | None = None


class ReadingCreate(msgspec.Struct, kw_only=True):
    """A reading to store. If the meter has one of the same period, it is changed; what is left out there stays."""

    period_start: datetime.datetime
    """The instant from which it counts, with a UTC offset."""
    period_end: datetime.datetime
    """The instant up to which it counts, with a UTC offset."""
    consumption: Amount
    """The consumption in the period; negative if more was fed back than drawn."""
    unit_of_measure: UnitOfMeasure | None = None
    """The unit of `consumption`; that of the meter if left out."""
    cost: Amount | None = None
    """The cost of the period, in the company's currency."""
    is_estimated: bool | None = None
    """Whether the consumption was estimated rather than read; false if left out."""


class ReadingsCreate(msgspec.Struct, kw_only=True):
    """Readings of one meter to store."""

    readings: Annotated[list[ReadingCreate], Between(1, rules.READINGS_MAX)]
    """The readings, each of another period. All are stored, or none."""


METER_FIELDS = EditableFields(MeterRow, *MeterRow.__struct_fields__, ids=("property_id", "unit_id"))
READING_FIELDS = EditableFields(ReadingRow, *ReadingRow.__struct_fields__, ids=("meter_id",))
