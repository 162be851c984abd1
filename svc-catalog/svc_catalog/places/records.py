"""The public shapes: a property (spec 2.4), a unit (2.5), an asset (2.7)."""

from __future__ import annotations

import datetime
from typing import Literal

import msgspec

from chassis.records.shapes import Either, Link, Nested, Shape
from svc_catalog.places import rules
from svc_catalog.places.tables import asset, building, floor, floorplan, location, property_, unit


class Named(msgspec.Struct, frozen=True, gc=False):
    """Another record, named inside one that belongs to it."""

    id: int
    """The other record's id."""
    name: str
    """The other record's name."""
    external_id: str | None


class Floorplan(msgspec.Struct, frozen=True, gc=False):
    """The plan that a unit is built to."""

    id: int
    """The floorplan's id."""
    name: str
    """What the property calls the plan, for example B2."""
    external_id: str | None
    bedrooms: int | None
    """How many bedrooms it has; 0 is a studio."""
    bathrooms: float | None
    """How many bathrooms it has; a half has a toilet and no bath."""
    square_feet: int | None
    """Its floor area in square feet."""


class Location(msgspec.Struct, frozen=True, gc=False):
    """Where an asset stands: a unit, or another place of the property such as a mechanical room."""

    id: int
    """The location's id; where location_type is `unit`, the unit's id."""
    name: str
    """The location's name."""
    external_id: str | None
    location_type: rules.LocationType
    """What kind of place it is."""


class Property(msgspec.Struct, frozen=True, gc=False):
    """A property: one site with its buildings and units."""

    schema_version: Literal[1]
    entity_type: Literal["property"]
    entity_id: int
    name: str
    """What people call the property."""
    address: str
    """Its street address."""
    city: str | None
    """The city of the address."""
    state: str | None
    """The state or province of the address."""
    postal_code: str | None
    """The postal code of the address."""
    building_type: str | None
    """What kind of building it is, in the company's own words, for example Garden."""
    construction_type: str | None
    """How it is built, in the company's own words, for example Wood frame."""
    unit_count: int | None
    """The number of units on the property's own record; the API may list more or fewer units."""
    year_built: int | None
    """The year in which it was built."""
    latitude: float | None
    """Degrees north of the equator (WGS 84)."""
    longitude: float | None
    """Degrees east of Greenwich (WGS 84)."""
    created_at: str
    external_id: str | None
    source: str
    """How the record was created, for example `import`."""
    url: str


class Unit(msgspec.Struct, frozen=True, gc=False):
    """A unit: one home or suite of a property."""

    schema_version: Literal[1]
    entity_type: Literal["unit"]
    entity_id: int
    name: str
    """The name that people see, for example Maple Court 204."""
    unit_number: str | None
    """The number on the door."""
    unit_status: rules.UnitStatus | None
    """Whether it is occupied, and if not, whether it is ready; null if unknown."""
    property: Named
    """The property that it belongs to."""
    floorplan: Floorplan | None
    """The plan that it is built to; null if none is assigned."""
    building: Named | None
    """The building that it is in; null if the property's buildings are not recorded."""
    floor: Named | None
    """The floor that was declared for it."""
    created_at: str
    external_id: str | None
    source: str
    """How the record was created, for example `import`."""
    projected_ready_on: datetime.date | None
    """The day on which the unit's active turn is expected to be ready; null without one. It is a projection, and not
    the day on which the unit became ready."""
    url: str
    """Link that opens the property's unit status view for a person."""


class Asset(msgspec.Struct, frozen=True, gc=False):
    """An asset: a piece of equipment that the company maintains. Retired assets are included."""

    schema_version: Literal[1]
    entity_type: Literal["asset"]
    entity_id: int
    name: str
    """What people call it."""
    category: str
    """What kind of equipment it is, in the company's own words."""
    sub_category: str | None
    """A narrower kind, in the company's own words."""
    asset_tag: str | None
    """The tag on the equipment."""
    make: str
    """Who made it."""
    model: str
    """The maker's name for the model."""
    serial_number: str | None
    """The maker's serial number."""
    status: rules.AssetStatus
    """Whether it is in use."""
    property: Named
    """The property that it belongs to."""
    location: Location | None
    """Its location: a unit or another place; null if not on record."""
    year: int | None
    """The year in which it was made."""
    installed_on: datetime.date | None
    """The day on which it was installed."""
    warranty_expires_on: datetime.date | None
    """The last day of its warranty."""
    expected_life_years: int | None
    """How many years it is expected to last from its installation."""
    created_at: str
    updated_at: str
    external_id: str | None
    source: str
    """How the record was created, for example `import`."""
    url: str


PROPERTY = Shape(Property, property_, url=Link("/properties/{entity_id}"), version=property_.c.version)
UNIT = Shape(
    Unit,
    unit,
    property=Nested(Named, property_),
    floorplan=Nested(Floorplan, floorplan, optional=True),
    building=Nested(Named, building, optional=True),
    floor=Nested(Named, floor, optional=True),
    url=Link("/properties/{property.id}/units/{entity_id}"),
    version=unit.c.version,
)
ASSET = Shape(
    Asset,
    asset,
    property=Nested(Named, property_),
    location=Either(
        Nested(Location, unit, optional=True, location_type="unit"), Nested(Location, location, optional=True)
    ),
    url=Link("/assets/{entity_id}"),
    version=asset.c.version,
)
