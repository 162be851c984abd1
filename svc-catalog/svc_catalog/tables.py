"""The tables of the database `catalog`. Constraints make impossible what the rules forbid.

Every key begins with the company, and every reference carries the company and, where there is one, the property
along: a record can name nothing of another company, and nothing that lies in another property. No index begins
with the id: a planner that knows few companies would page through all of them by it. Ids are unique all the same,
for each comes from its kind's sequence.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from chassis.consumer import inbox_table
from chassis.outbox import outbox_table
from chassis.replicas import company_replica, replica_table
from svc_catalog import rules

metadata = MetaData()

outbox = outbox_table(metadata)
inbox = inbox_table(metadata)

# Replicas: rows of the gateway by their own ids. Version 0 stands for a row that has not arrived yet.
company = company_replica(metadata)
staff = replica_table(metadata, "staff")

# One sequence a kind, for all companies. Units are locations (spec 2.5): both draw from the same.
property_id = Sequence("property_id", metadata=metadata, data_type=BigInteger)
location_id = Sequence("location_id", metadata=metadata, data_type=BigInteger)
asset_id = Sequence("asset_id", metadata=metadata, data_type=BigInteger)
building_id = Sequence("building_id", metadata=metadata, data_type=BigInteger)
floor_id = Sequence("floor_id", metadata=metadata, data_type=BigInteger)
floorplan_id = Sequence("floorplan_id", metadata=metadata, data_type=BigInteger)


def _id(sequence: Sequence) -> Column[int]:
    return Column(
        "id", BigInteger, primary_key=True, autoincrement=False, server_default=text(f"nextval('{sequence.name}')")
    )


def _company() -> Column[int]:
    return Column("company_id", BigInteger, primary_key=True, autoincrement=False)


def _version() -> Column[int]:
    return Column("version", BigInteger, nullable=False, server_default=text("1"))


def _instant(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=False)


def _one_of(table: str, column: str, values: Iterable[str]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}")


def _between(table: str, column: str, lowest: int, highest: int) -> CheckConstraint:
    return CheckConstraint(f"{column} BETWEEN {lowest} AND {highest}", name=f"{table}_{column}")


def _lies_in_property() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"])


def _within_property(column: str, place: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["company_id", "property_id", column], [f"{place}.company_id", f"{place}.property_id", f"{place}.id"]
    )


def _place(name: str, sequence: Sequence, *rest: Column[object] | ForeignKeyConstraint | CheckConstraint) -> Table:
    """A part or a plan of a property, known by its name."""
    return Table(
        name,
        metadata,
        _company(),
        Column("property_id", BigInteger, primary_key=True, autoincrement=False),
        _id(sequence),
        Column("name", Text, nullable=False),
        Column("external_id", Text),
        *rest,
        _lies_in_property(),
    )


property_ = Table(
    "property",
    metadata,
    _company(),
    _id(property_id),
    _version(),
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
    _instant("created_at"),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    UniqueConstraint("company_id", "external_id", name="property_external_id"),
    _between("property", "unit_count", 0, rules.COUNT_MAX),
    _between("property", "year_built", rules.YEAR_MIN, rules.YEAR_MAX),
    _between("property", "latitude", -90, 90),
    _between("property", "longitude", -180, 180),
    _one_of("property", "source", rules.SOURCES),
)

building = _place("building", building_id)
Index("building_name", building.c.property_id, building.c.name, unique=True)

floor = _place("floor", floor_id, Column("building_id", BigInteger), _within_property("building_id", "building"))
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
    _between("floorplan", "bedrooms", 0, rules.ROOMS_MAX),
    _between("floorplan", "bathrooms", 0, rules.ROOMS_MAX),
    _between("floorplan", "square_feet", 0, rules.COUNT_MAX),
)
Index("floorplan_name", floorplan.c.property_id, floorplan.c.name, unique=True)

# Locations that are no units.
location = _place(
    "location",
    location_id,
    Column("location_type", Text, nullable=False),
    _one_of("location", "location_type", rules.OTHER_LOCATION_TYPES),
)
Index("location_name", location.c.property_id, location.c.name, location.c.location_type, unique=True)

unit = Table(
    "unit",
    metadata,
    _company(),
    _id(location_id),
    _version(),
    Column("property_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("unit_number", Text),
    Column("floorplan_id", BigInteger),
    Column("building_id", BigInteger),
    Column("floor_id", BigInteger),
    _instant("created_at"),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    # Replicas of what svc-occupancy owns: null until a turn says otherwise.
    Column("unit_status", Text),
    Column("projected_ready_on", Date),
    Column("occupancy_version", BigInteger, nullable=False, server_default=text("0")),
    UniqueConstraint("company_id", "property_id", "id", name="unit_page_of_property"),
    UniqueConstraint("company_id", "external_id", name="unit_external_id"),
    _lies_in_property(),
    _within_property("floorplan_id", "floorplan"),
    _within_property("building_id", "building"),
    _within_property("floor_id", "floor"),
    _one_of("unit", "unit_status", rules.UNIT_STATUSES),
    _one_of("unit", "source", rules.SOURCES),
)

asset = Table(
    "asset",
    metadata,
    _company(),
    _id(asset_id),
    _version(),
    Column("property_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("sub_category", Text),
    Column("asset_tag", Text),
    Column("make", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("serial_number", Text),
    Column("status", Text, nullable=False),
    # Where it stands: a unit or another location, or not on record.
    Column("unit_id", BigInteger),
    Column("location_id", BigInteger),
    Column("year", Integer),
    Column("installed_on", Date),
    Column("warranty_expires_on", Date),
    Column("expected_life_years", Integer),
    _instant("created_at"),
    _instant("updated_at"),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    UniqueConstraint("company_id", "external_id", name="asset_external_id"),
    _lies_in_property(),
    _within_property("unit_id", "unit"),
    _within_property("location_id", "location"),
    CheckConstraint("unit_id IS NULL OR location_id IS NULL", name="asset_stands_in_one_place"),
    CheckConstraint("updated_at >= created_at", name="asset_updated_after_created"),
    _one_of("asset", "status", rules.ASSET_STATUSES),
    _between("asset", "year", rules.YEAR_MIN, rules.YEAR_MAX),
    _between("asset", "expected_life_years", 0, rules.LIFE_YEARS_MAX),
    _one_of("asset", "source", rules.SOURCES),
)
# One index for each way to page: the filter first, then the id that orders every list. The primary key is the list's.
Index("asset_page_of_property", asset.c.company_id, asset.c.property_id, asset.c.id)
Index("asset_page_of_unit", asset.c.company_id, asset.c.unit_id, asset.c.id)
Index("asset_page_of_status", asset.c.company_id, asset.c.status, asset.c.id)
Index("asset_updated", asset.c.company_id, asset.c.updated_at)
