"""properties units and assets

Revision ID: 0001
Revises:
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    for kind in ("property", "location", "asset", "building", "floor", "floorplan"):
        op.execute(CreateSequence(sa.Sequence(f"{kind}_id", data_type=sa.BigInteger)))
    op.create_table(
        "outbox",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("claimed_until", sa.DateTime(timezone=True), server_default=sa.text("'-infinity'"), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), server_default=sa.text("NULL"), nullable=True),
        sa.PrimaryKeyConstraint("event_id"),
    )
    op.create_index("outbox_recorded", "outbox", ["recorded_at"], unique=False)
    op.create_index(
        "outbox_unpublished", "outbox", ["event_id"], unique=False, postgresql_where=sa.text("published_at IS NULL")
    )
    op.create_table(
        "outbox_confirmation",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("recorded_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("consumer"),
    )
    op.create_table(
        "property",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('property_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("city", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("postal_code", sa.Text(), nullable=True),
        sa.Column("building_type", sa.Text(), nullable=True),
        sa.Column("construction_type", sa.Text(), nullable=True),
        sa.Column("unit_count", sa.Integer(), nullable=True),
        sa.Column("year_built", sa.Integer(), nullable=True),
        sa.Column("latitude", sa.Double(), nullable=True),
        sa.Column("longitude", sa.Double(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("source IN ('staff', 'import')", name="property_source"),
        sa.CheckConstraint("latitude BETWEEN -90 AND 90", name="property_latitude"),
        sa.CheckConstraint("longitude BETWEEN -180 AND 180", name="property_longitude"),
        sa.CheckConstraint("unit_count BETWEEN 0 AND 10000000", name="property_unit_count"),
        sa.CheckConstraint("year_built BETWEEN 1000 AND 2999", name="property_year_built"),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="property_external_id"),
    )
    op.create_table(
        "building",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('building_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "property_id", "id"),
    )
    op.create_index("building_name", "building", ["property_id", "name"], unique=True)
    op.create_table(
        "floorplan",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('floorplan_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("bedrooms", sa.Integer(), nullable=True),
        sa.Column("bathrooms", sa.Double(), nullable=True),
        sa.Column("square_feet", sa.Integer(), nullable=True),
        sa.CheckConstraint("bathrooms BETWEEN 0 AND 1000", name="floorplan_bathrooms"),
        sa.CheckConstraint("bedrooms BETWEEN 0 AND 1000", name="floorplan_bedrooms"),
        sa.CheckConstraint("square_feet BETWEEN 0 AND 10000000", name="floorplan_square_feet"),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "property_id", "id"),
    )
    op.create_index("floorplan_name", "floorplan", ["property_id", "name"], unique=True)
    op.create_table(
        "location",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('location_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("location_type", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "location_type IN ('mechanical_room', 'common_area', 'amenity', 'parking', 'storage', 'exterior', 'other')",
            name="location_location_type",
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "property_id", "id"),
    )
    op.create_index("location_name", "location", ["property_id", "name", "location_type"], unique=True)
    op.create_table(
        "floor",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('floor_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("building_id", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "building_id"],
            ["building.company_id", "building.property_id", "building.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "property_id", "id"),
    )
    op.create_index(
        "floor_name", "floor", ["property_id", "name", "building_id"], unique=True, postgresql_nulls_not_distinct=True
    )
    op.create_table(
        "unit",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('location_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("unit_number", sa.Text(), nullable=True),
        sa.Column("floorplan_id", sa.BigInteger(), nullable=True),
        sa.Column("building_id", sa.BigInteger(), nullable=True),
        sa.Column("floor_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("unit_status", sa.Text(), nullable=True),
        sa.Column("projected_ready_on", sa.Date(), nullable=True),
        sa.Column("occupancy_version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint("source IN ('staff', 'import')", name="unit_source"),
        sa.CheckConstraint(
            "unit_status IN ('Occupied', 'Notice', 'Vacant Not Ready', 'Vacant Ready', 'Down')", name="unit_unit_status"
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "building_id"],
            ["building.company_id", "building.property_id", "building.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "floor_id"],
            ["floor.company_id", "floor.property_id", "floor.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "floorplan_id"],
            ["floorplan.company_id", "floorplan.property_id", "floorplan.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="unit_external_id"),
        sa.UniqueConstraint("company_id", "property_id", "id", name="unit_page_of_property"),
    )
    op.create_table(
        "asset",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('asset_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("sub_category", sa.Text(), nullable=True),
        sa.Column("asset_tag", sa.Text(), nullable=True),
        sa.Column("make", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("serial_number", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=True),
        sa.Column("location_id", sa.BigInteger(), nullable=True),
        sa.Column("year", sa.Integer(), nullable=True),
        sa.Column("installed_on", sa.Date(), nullable=True),
        sa.Column("warranty_expires_on", sa.Date(), nullable=True),
        sa.Column("expected_life_years", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("source IN ('staff', 'import')", name="asset_source"),
        sa.CheckConstraint("status IN ('Active', 'Needs Service', 'Out of Service', 'Retired')", name="asset_status"),
        sa.CheckConstraint("expected_life_years BETWEEN 0 AND 1000", name="asset_expected_life_years"),
        sa.CheckConstraint("unit_id IS NULL OR location_id IS NULL", name="asset_stands_in_one_place"),
        sa.CheckConstraint("updated_at >= created_at", name="asset_updated_after_created"),
        sa.CheckConstraint("year BETWEEN 1000 AND 2999", name="asset_year"),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "location_id"],
            ["location.company_id", "location.property_id", "location.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "unit_id"],
            ["unit.company_id", "unit.property_id", "unit.id"],
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id"],
            ["property.company_id", "property.id"],
        ),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="asset_external_id"),
    )
    op.create_index("asset_page_of_property", "asset", ["company_id", "property_id", "id"], unique=False)
    op.create_index("asset_page_of_status", "asset", ["company_id", "status", "id"], unique=False)
    op.create_index("asset_page_of_unit", "asset", ["company_id", "unit_id", "id"], unique=False)
    op.create_index("asset_updated", "asset", ["company_id", "updated_at"], unique=False)
