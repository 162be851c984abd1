"""The public shapes: a property (spec 2.4), a unit (2.5), an asset (2.7)."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
from asyncpg import Record

from chassis.instants import printed
from svc_catalog import rules

encode = msgspec.json.Encoder().encode

Row = Record | tuple[Any, ...]


class Named(msgspec.Struct, frozen=True, gc=False):
    """A property, building or floor inside another record."""

    id: int
    name: str
    external_id: str | None


class Floorplan(msgspec.Struct, frozen=True, gc=False):
    """The plan that a unit is built to."""

    id: int
    name: str
    external_id: str | None
    bedrooms: int | None
    bathrooms: float | None
    square_feet: int | None


class Location(msgspec.Struct, frozen=True, gc=False):
    """Where an asset stands; a unit's location_type is `unit`."""

    id: int
    name: str
    external_id: str | None
    location_type: rules.LocationType


class Property(msgspec.Struct, frozen=True, gc=False):
    """A property, keys in the order of spec 2.4."""

    schema_version: int
    entity_type: str
    entity_id: int
    name: str
    address: str
    city: str | None
    state: str | None
    postal_code: str | None
    building_type: str | None
    construction_type: str | None
    unit_count: int | None
    year_built: int | None
    latitude: float | None
    longitude: float | None
    created_at: str
    external_id: str | None
    source: str
    url: str


class Unit(msgspec.Struct, frozen=True, gc=False):
    """A unit, keys in the order of spec 2.5."""

    schema_version: int
    entity_type: str
    entity_id: int
    name: str
    unit_number: str | None
    unit_status: str | None
    property: Named
    floorplan: Floorplan | None
    building: Named | None
    floor: Named | None
    created_at: str
    external_id: str | None
    source: str
    projected_ready_on: datetime.date | None
    url: str


class Asset(msgspec.Struct, frozen=True, gc=False):
    """An asset, keys in the order of spec 2.7."""

    schema_version: int
    entity_type: str
    entity_id: int
    name: str
    category: str
    sub_category: str | None
    asset_tag: str | None
    make: str
    model: str
    serial_number: str | None
    status: rules.AssetStatus
    property: Named
    location: Location | None
    year: int | None
    installed_on: datetime.date | None
    warranty_expires_on: datetime.date | None
    expected_life_years: int | None
    created_at: str
    updated_at: str
    external_id: str | None
    source: str
    url: str


class Links:
    """Renders rows of `queries` with links that start at the given address."""

    def __init__(self, links_url: str) -> None:
        self._links_url = links_url

    def property(self, row: Row) -> Property:
        # The columns of queries.PROPERTY_COLUMNS; those between id and created_at are served as they are.
        *shown, created_at, external_id, source, _version = row
        url = f"{self._links_url}/properties/{shown[0]}"
        values: list[Any] = [*shown, printed(created_at), external_id, source, url]
        return Property(1, "property", *values)

    def unit(self, row: Row) -> Unit:
        # The columns of queries.UNIT_COLUMNS, in their order.
        (
            entity_id,
            name,
            unit_number,
            unit_status,
            property_id,
            property_name,
            property_external_id,
            floorplan_id,
            floorplan_name,
            floorplan_external_id,
            bedrooms,
            bathrooms,
            square_feet,
            building_id,
            building_name,
            building_external_id,
            floor_id,
            floor_name,
            floor_external_id,
            created_at,
            external_id,
            source,
            projected_ready_on,
            _version,
        ) = row
        plan = (floorplan_id, floorplan_name, floorplan_external_id, bedrooms, bathrooms, square_feet)
        return Unit(
            1,
            "unit",
            entity_id,
            name,
            unit_number,
            unit_status,
            Named(property_id, property_name, property_external_id),
            None if floorplan_id is None else Floorplan(*plan),
            None if building_id is None else Named(building_id, building_name, building_external_id),
            None if floor_id is None else Named(floor_id, floor_name, floor_external_id),
            printed(created_at),
            external_id,
            source,
            projected_ready_on,
            f"{self._links_url}/properties/{property_id}/units/{entity_id}",
        )

    def asset(self, row: Row) -> Asset:
        # The columns of queries.ASSET_COLUMNS; those between id and status are served as they are.
        (
            *shown,
            property_id,
            property_name,
            property_external_id,
            unit_id,
            unit_name,
            unit_external_id,
            location_id,
            location_name,
            location_external_id,
            location_type,
            year,
            installed_on,
            warranty_expires_on,
            expected_life_years,
            created_at,
            updated_at,
            external_id,
            source,
            _version,
        ) = row
        location = None
        if unit_id is not None:
            location = Location(unit_id, unit_name, unit_external_id, "unit")
        elif location_id is not None:
            location = Location(location_id, location_name, location_external_id, location_type)
        created = printed(created_at)
        values: list[Any] = [
            *shown,
            Named(property_id, property_name, property_external_id),
            location,
            year,
            installed_on,
            warranty_expires_on,
            expected_life_years,
            created,
            created if updated_at == created_at else printed(updated_at),
            external_id,
            source,
            f"{self._links_url}/assets/{shown[0]}",
        ]
        return Asset(1, "asset", *values)
