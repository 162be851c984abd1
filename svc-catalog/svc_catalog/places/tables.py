"""The tables of properties, of what they contain, and of assets. Constraints enforce the rules."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    func,
    literal_column,
    text,
)

from chassis.changes.tables import Follow, make_followable
from chassis.lists.paging import page_indexes
from svc_catalog import field_rules
from svc_catalog.places import rules
from svc_catalog.schema import (
    PLACES,
    between,
    company_key,
    id_of,
    ids,
    instant,
    lies_in_property,
    metadata,
    one_of,
    people_indexes,
    searched_version,
    version,
    within_property,
)

# Units are locations (spec 2.5): both take their ids from one sequence.
property_id = ids("property_id")
location_id = ids("location_id")
asset_id = ids("asset_id")
building_id = ids("building_id")
floor_id = ids("floor_id")
floorplan_id = ids("floorplan_id")


def _place(name: str, sequence: Sequence, *parts: Column[object] | ForeignKeyConstraint | CheckConstraint) -> Table:
    """A part or a floorplan of a property, identified by its name."""
    return Table(
        name,
        metadata,
        company_key(),
        Column("property_id", BigInteger, primary_key=True, autoincrement=False),
        id_of(sequence),
        Column("name", Text, nullable=False),
        Column("external_id", Text),
        *parts,
        lies_in_property(),
    )


property_ = Table(
    "property",
    metadata,
    company_key(),
    id_of(property_id),
    version(),
    Column("name", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("city", Text),
    Column("state", Text),
    Column("postal_code", Text),
    Column("building_type", Text),
    Column("construction_type", Text),
    Column("unit_count", Integer),
    Column("year_built", Integer),
    Column("latitude", Double),
    Column("longitude", Double),
    instant("created_at"),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    searched_version(),
    UniqueConstraint("company_id", "external_id", name="property_external_id"),
    between("property", "unit_count", 0, field_rules.COUNT_MAX),
    between("property", "year_built", rules.YEAR_MIN, rules.YEAR_MAX),
    between("property", "latitude", -90, 90),
    between("property", "longitude", -180, 180),
    one_of("property", "source", field_rules.SOURCES),
)
people_indexes(property_)
make_followable(property_, beside=["searched_version"])

building = _place("building", building_id)
Index("building_name", building.c.property_id, building.c.name, unique=True)

floor = _place("floor", floor_id, Column("building_id", BigInteger), within_property("building_id", "building"))
Index(
    "floor_name",
    floor.c.property_id,
    floor.c.name,
    floor.c.building_id,
    unique=True,
    postgresql_nulls_not_distinct=True,
)

floorplan = _place(
    "floorplan",
    floorplan_id,
    Column("bedrooms", Integer),
    Column("bathrooms", Double),
    Column("square_feet", Integer),
    between("floorplan", "bedrooms", 0, rules.ROOMS_MAX),
    between("floorplan", "bathrooms", 0, rules.ROOMS_MAX),
    between("floorplan", "square_feet", 0, field_rules.COUNT_MAX),
)
Index("floorplan_name", floorplan.c.property_id, floorplan.c.name, unique=True)

# Locations other than units.
location = _place(
    "location",
    location_id,
    Column("location_type", Text, nullable=False),
    one_of("location", "location_type", rules.OTHER_LOCATION_TYPES),
)
Index("location_name", location.c.property_id, location.c.name, location.c.location_type, unique=True)

unit = Table(
    "unit",
    metadata,
    company_key(),
    id_of(location_id),
    version(),
    Column("property_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("unit_number", Text),
    Column("floorplan_id", BigInteger),
    Column("building_id", BigInteger),
    Column("floor_id", BigInteger),
    instant("created_at"),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    # Replica of columns that svc-occupancy owns; null until svc-occupancy publishes them.
    Column("unit_status", Text),
    Column("projected_ready_on", Date),
    Column("occupancy_version", BigInteger, nullable=False, server_default=text("0")),
    searched_version(),
    UniqueConstraint("company_id", "property_id", "id", name="unit_page_of_property"),
    UniqueConstraint("company_id", "external_id", name="unit_external_id"),
    lies_in_property(),
    within_property("floorplan_id", "floorplan"),
    within_property("building_id", "building"),
    within_property("floor_id", "floor"),
    one_of("unit", "unit_status", rules.UNIT_STATUSES),
    one_of("unit", "source", field_rules.SOURCES),
)
# "" is a status that is not known.
known_status = func.coalesce(unit.c.unit_status, literal_column("''"), type_=Text)
people_indexes(
    unit, property=[unit.c.property_id], status=[known_status], property_and_status=[unit.c.property_id, known_status]
)
_NAMED = ("name", "external_id")
# A property's units move together when one of its floorplans is measured anew: that is rare, and costs no index of
# units by floorplan, building and floor. Buildings and floors are never renamed.
make_followable(
    unit,
    Follow("property_id", property_, *_NAMED),
    Follow("property_id", floorplan, *_NAMED, *rules.FLOORPLAN_MEASURES, key="property_id"),
    Follow("property_id", building, *_NAMED, key="property_id"),
    Follow("property_id", floor, *_NAMED, key="property_id"),
    beside=["searched_version", "occupancy_version"],
)

asset = Table(
    "asset",
    metadata,
    company_key(),
    id_of(asset_id),
    version(),
    Column("property_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("sub_category", Text),
    Column("asset_tag", Text),
    Column("make", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("serial_number", Text),
    Column("status", Text, nullable=False),
    # Where the asset is: a unit, another location, or unknown.
    Column("unit_id", BigInteger),
    Column("location_id", BigInteger),
    Column("year", Integer),
    Column("installed_on", Date),
    Column("warranty_expires_on", Date),
    Column("expected_life_years", Integer),
    instant("created_at"),
    instant("updated_at"),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    searched_version(),
    UniqueConstraint("company_id", "external_id", name="asset_external_id"),
    lies_in_property(),
    within_property("unit_id", "unit"),
    within_property("location_id", "location"),
    CheckConstraint("unit_id IS NULL OR location_id IS NULL", name="asset_stands_in_one_place"),
    CheckConstraint("updated_at >= created_at", name="asset_updated_after_created"),
    one_of("asset", "status", rules.ASSET_STATUSES),
    between("asset", "year", rules.YEAR_MIN, rules.YEAR_MAX),
    between("asset", "expected_life_years", 0, rules.LIFE_YEARS_MAX),
    one_of("asset", "source", field_rules.SOURCES),
)
page_indexes(asset, places=PLACES)
people_indexes(
    asset,
    property=[asset.c.property_id],
    status=[asset.c.status],
    property_and_status=[asset.c.property_id, asset.c.status],
    category=[asset.c.category],
)
Index(
    "asset_warranties",
    asset.c.company_id,
    asset.c.warranty_expires_on,
    asset.c.id,
    postgresql_where=text("warranty_expires_on IS NOT NULL"),
)
make_followable(
    asset,
    Follow("property_id", property_, *_NAMED),
    Follow("unit_id", unit, *_NAMED),
    Follow("property_id", location, *_NAMED, "location_type", key="property_id"),
    beside=["searched_version"],
)

# What each row of a live company became in a sandbox that is a copy of it.
copied_place = Table(
    "copied_place",
    metadata,
    company_key(),
    Column("kind", Text, primary_key=True),
    Column("copied_from", BigInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, nullable=False),
)
