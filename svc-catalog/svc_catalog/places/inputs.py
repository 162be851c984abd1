"""The rows of an import file. They refer to properties and units by external_id, and to parts of a property by name."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import Between, PastInstant, Text
from chassis.writes.editing import EditableFields
from svc_catalog.field_types import Count, ExternalId, Name, ShortText
from svc_catalog.places import rules

Year = Annotated[int, Between(rules.YEAR_MIN, rules.YEAR_MAX)]


class PropertyRow(msgspec.Struct, kw_only=True):
    """A property's row in an import."""

    external_id: ExternalId
    name: Name
    address: Annotated[str, Text(longest=rules.ADDRESS_POINTS_MAX, blank=False)]
    city: ShortText | None = None
    state: ShortText | None = None
    postal_code: ShortText | None = None
    building_type: ShortText | None = None
    construction_type: ShortText | None = None
    unit_count: Count | None = None
    year_built: Year | None = None
    latitude: Annotated[float, Between(-90, 90)] | None = None
    longitude: Annotated[float, Between(-180, 180)] | None = None
    created_at: PastInstant | None = None


class UnitRow(msgspec.Struct, kw_only=True):
    """A unit's row in an import. bedrooms, bathrooms and square_feet are those of the floorplan that it names."""

    external_id: ExternalId
    property: ExternalId
    name: Name
    unit_number: Annotated[str, Text(longest=rules.UNIT_NUMBER_POINTS_MAX)] | None = None
    building: Name | None = None
    floor: Name | None = None
    floorplan: Name | None = None
    bedrooms: Annotated[int, Between(0, rules.ROOMS_MAX)] | None = None
    bathrooms: Annotated[float, Between(0, rules.ROOMS_MAX)] | None = None
    square_feet: Count | None = None
    created_at: PastInstant | None = None


class AssetRow(msgspec.Struct, kw_only=True):
    """An asset's row in an import."""

    external_id: ExternalId
    property: ExternalId
    name: Name
    category: Name
    make: Name
    model: Name
    location: ExternalId | None = None
    """The external_id of a unit; with a location_type other than `unit` the name of that place."""
    location_type: rules.LocationType | None = None
    sub_category: ShortText | None = None
    asset_tag: ShortText | None = None
    serial_number: ShortText | None = None
    status: rules.AssetStatus | None = None
    year: Year | None = None
    installed_on: datetime.date | None = None
    warranty_expires_on: datetime.date | None = None
    expected_life_years: Annotated[int, Between(0, rules.LIFE_YEARS_MAX)] | None = None
    created_at: PastInstant | None = None


PROPERTY_FIELDS = EditableFields(PropertyRow, *PropertyRow.__struct_fields__)
# Requests name the floor, building and floorplan as a file does; they refer to the property by id.
UNIT_FIELDS = EditableFields(UnitRow, *UnitRow.__struct_fields__, ids=("property_id",))
ASSET_FIELDS = EditableFields(AssetRow, *AssetRow.__struct_fields__, ids=("property_id", "unit_id"))
