"""The tables of svc-catalog: places, assets, vendors, meters, inspections and notices, and the replicas that they name.

Revision ID: 0001_initial
Revises:
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0001_initial"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    for sequence in (
        "property_id",
        "location_id",
        "asset_id",
        "building_id",
        "floor_id",
        "floorplan_id",
        "business_id",
        "vendor_id",
        "meter_id",
        "reading_id",
        "inspection_id",
        "inspection_row_id",
        "notice_id",
    ):
        op.execute(f"CREATE SEQUENCE {sequence} AS bigint")
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("before", postgresql.JSONB(), nullable=False),
        sa.Column("after", postgresql.JSONB(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("audit_of_company", "audit", ["company_id", "id"])
    op.create_index("audit_of_kind", "audit", ["company_id", "subject", "id"])
    op.create_index("audit_of_subject", "audit", ["company_id", "subject", "subject_id", "id"])
    op.create_table(
        "business",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('business_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("legal_name", sa.Text(), nullable=False),
        sa.Column("website", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "legal_name", name="business_legal_name"),
    )
    op.create_table(
        "company",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("active", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("timezone", sa.Text(), server_default=sa.text("'UTC'"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "idempotency",
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("api_key_id", sa.BigInteger(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("reply", sa.LargeBinary(), nullable=False),
        sa.Column(
            "recorded_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("company_id", "api_key_id", "idempotency_key", name="idempotency_claim"),
    )
    op.create_index("ix_idempotency_recorded_at", "idempotency", ["recorded_at"])
    op.create_table(
        "inbox",
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column(
            "applied_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("event_id"),
    )
    op.create_index("ix_inbox_applied_at", "inbox", ["applied_at"])
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
    op.create_index("outbox_recorded", "outbox", ["recorded_at"])
    op.create_index("outbox_unpublished", "outbox", ["event_id"], postgresql_where=sa.text("published_at IS NULL"))
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
        "reconciled",
        sa.Column("producer", sa.Text(), nullable=False),
        sa.Column("recorded_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("producer"),
    )
    op.create_table(
        "staff",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("company_id", "id", name="staff_of_company"),
    )
    op.create_index("staff_external_id", "staff", ["company_id", "external_id"])
    op.create_table(
        "building",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('building_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
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
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
        sa.PrimaryKeyConstraint("company_id", "property_id", "id"),
    )
    op.create_index("floorplan_name", "floorplan", ["property_id", "name"], unique=True)
    op.create_table(
        "inspection_number",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
        sa.PrimaryKeyConstraint("company_id", "property_id"),
    )
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
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
        sa.PrimaryKeyConstraint("company_id", "property_id", "id"),
    )
    op.create_index("location_name", "location", ["property_id", "name", "location_type"], unique=True)
    op.create_table(
        "notice",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('notice_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("when", sa.Text(), nullable=False),
        sa.Column("area", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("source IN ('staff', 'import')", name="notice_source"),
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="notice_external_id"),
        sa.UniqueConstraint("company_id", "property_id", "id", name="notice_of_property"),
    )
    op.create_table(
        "vendor",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('vendor_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("business_id", sa.BigInteger(), nullable=False),
        sa.Column("nickname", sa.Text(), nullable=True),
        sa.Column("avg_rating", sa.Double(), nullable=True),
        sa.Column("rating_count", sa.Integer(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("property_visibility", sa.Text(), nullable=False),
        sa.Column("onboarded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_compliance_state", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("on_hold", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("hold_reason", sa.Text(), nullable=True),
        sa.Column("held_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("insurance_tracked", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("insurance_expires_on", sa.Date(), nullable=True),
        sa.Column("lapse_held_for", sa.Date(), nullable=True),
        sa.Column("compliance_due_on", sa.Date(), nullable=True),
        sa.CheckConstraint(
            "last_compliance_state IN ('compliant', 'expiring', 'noncompliant', 'missing', 'unknown')",
            name="vendor_last_compliance_state",
        ),
        sa.CheckConstraint(
            "property_visibility IN ('all_properties', 'selected_properties')", name="vendor_property_visibility"
        ),
        sa.CheckConstraint("source IN ('staff', 'import')", name="vendor_source"),
        sa.CheckConstraint("NOT on_hold OR held_at IS NOT NULL", name="vendor_hold_has_an_instant"),
        sa.CheckConstraint("avg_rating BETWEEN 0 AND 100", name="vendor_avg_rating"),
        sa.CheckConstraint(
            "insurance_tracked OR num_nonnulls(insurance_expires_on, lapse_held_for, compliance_due_on) = 0",
            name="vendor_insurance_is_tracked",
        ),
        sa.CheckConstraint("on_hold = (hold_reason IS NOT NULL)", name="vendor_hold_has_a_reason"),
        sa.CheckConstraint("rating_count BETWEEN 0 AND 10000000", name="vendor_rating_count"),
        sa.ForeignKeyConstraint(["company_id", "business_id"], ["business.company_id", "business.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="vendor_external_id"),
    )
    op.create_index(
        "vendor_compliance_due",
        "vendor",
        ["company_id", "compliance_due_on", "id"],
        postgresql_where=sa.text("compliance_due_on IS NOT NULL"),
    )
    op.create_index("vendor_of_business", "vendor", ["company_id", "business_id"])
    op.create_index("vendor_on_hold", "vendor", ["company_id", "id"], postgresql_where=sa.text("on_hold"))
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
            ["company_id", "property_id", "building_id"], ["building.company_id", "building.property_id", "building.id"]
        ),
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
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
            ["company_id", "property_id", "building_id"], ["building.company_id", "building.property_id", "building.id"]
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "floor_id"], ["floor.company_id", "floor.property_id", "floor.id"]
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "floorplan_id"],
            ["floorplan.company_id", "floorplan.property_id", "floorplan.id"],
        ),
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
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
            ["company_id", "property_id", "location_id"], ["location.company_id", "location.property_id", "location.id"]
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "unit_id"], ["unit.company_id", "unit.property_id", "unit.id"]
        ),
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="asset_external_id"),
    )
    op.create_index(
        "asset_changes", "asset", [sa.literal_column("((company_id << 30) # (id >> 14))"), "status", "updated_at"]
    )
    op.create_index(
        "asset_changes_of_property",
        "asset",
        [sa.literal_column("((property_id << 30) # (id >> 14))"), "status", "updated_at"],
    )
    op.create_index(
        "asset_changes_of_unit", "asset", [sa.literal_column("((unit_id << 30) # (id >> 14))"), "status", "updated_at"]
    )
    op.create_index("asset_page_of_property", "asset", ["company_id", "property_id", "id"])
    op.create_index(
        "asset_page_of_property_and_status", "asset", [sa.literal_column("hashtextextended(status, property_id)"), "id"]
    )
    op.create_index("asset_page_of_status", "asset", [sa.literal_column("hashtextextended(status, company_id)"), "id"])
    op.create_index("asset_page_of_unit", "asset", ["company_id", "unit_id", "id"])
    op.create_index(
        "asset_page_of_unit_and_status", "asset", [sa.literal_column("hashtextextended(status, unit_id)"), "id"]
    )
    op.create_index("asset_updated", "asset", ["company_id", "updated_at"])
    op.create_table(
        "inspection",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('inspection_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=True),
        sa.Column("inspection_number", sa.Integer(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("inspection_type", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column(
            "published_status",
            sa.Text(),
            sa.Computed("CASE status WHEN 'Finalized' THEN 'Completed' ELSE status END", persisted=True),
            nullable=True,
        ),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("scheduled_date", sa.Date(), nullable=True),
        sa.Column("completed_date", sa.Date(), nullable=True),
        sa.Column("assignee_id", sa.BigInteger(), nullable=True),
        sa.Column("is_compliance_inspection", sa.Boolean(), nullable=False),
        sa.Column("compliance_type", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("engagement", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("stale_announced_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("engagement IS NULL OR kind <> 'operations'", name="inspection_engagement_of_a_walk"),
        sa.CheckConstraint("kind IN ('operations', 'consulting_walk', 'acceptance_walk')", name="inspection_kind"),
        sa.CheckConstraint("result IN ('passed', 'failed')", name="inspection_result"),
        sa.CheckConstraint("source IN ('staff', 'import')", name="inspection_source"),
        sa.CheckConstraint(
            "status IN ('Scheduled', 'In Progress', 'Completed', 'Finalized')", name="inspection_status"
        ),
        sa.CheckConstraint("inspection_number BETWEEN 1 AND 2147483647", name="inspection_inspection_number"),
        sa.ForeignKeyConstraint(["company_id", "assignee_id"], ["staff.company_id", "staff.id"]),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "unit_id"], ["unit.company_id", "unit.property_id", "unit.id"]
        ),
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="inspection_external_id"),
        sa.UniqueConstraint("company_id", "property_id", "inspection_number", name="inspection_number_in_property"),
    )
    op.create_index(
        "inspection_page",
        "inspection",
        ["company_id", "id"],
        postgresql_where=sa.text("kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"),
    )
    op.create_index(
        "inspection_page_of_property",
        "inspection",
        ["company_id", "property_id", "id"],
        postgresql_where=sa.text("kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"),
    )
    op.create_index(
        "inspection_page_of_property_and_status",
        "inspection",
        [sa.literal_column("hashtextextended(published_status, property_id)"), "id"],
        postgresql_where=sa.text("kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"),
    )
    op.create_index(
        "inspection_page_of_status",
        "inspection",
        [sa.literal_column("hashtextextended(published_status, company_id)"), "id"],
        postgresql_where=sa.text("kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"),
    )
    op.create_index(
        "inspection_page_of_unit",
        "inspection",
        ["company_id", "unit_id", "id"],
        postgresql_where=sa.text("kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"),
    )
    op.create_index(
        "inspection_page_of_unit_and_status",
        "inspection",
        [sa.literal_column("hashtextextended(published_status, unit_id)"), "id"],
        postgresql_where=sa.text("kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL"),
    )
    op.create_index(
        "inspection_stale",
        "inspection",
        ["company_id", "scheduled_date"],
        postgresql_where=sa.text(
            "(kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL) AND status IN ('Scheduled', 'In Progress') AND stale_announced_at IS NULL AND scheduled_date IS NOT NULL"
        ),
    )
    op.create_table(
        "meter",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('meter_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("utility_type", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=True),
        sa.Column("meter_number", sa.Text(), nullable=True),
        sa.Column("unit_of_measure", sa.Text(), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("(scope = 'unit') = (unit_id IS NOT NULL)", name="meter_of_a_unit_names_it"),
        sa.CheckConstraint("scope IN ('master', 'common_area', 'unit')", name="meter_scope"),
        sa.CheckConstraint("source IN ('staff', 'import')", name="meter_source"),
        sa.CheckConstraint(
            "utility_type IN ('electric', 'gas', 'water', 'sewer', 'trash', 'other')", name="meter_utility_type"
        ),
        sa.CheckConstraint("updated_at >= created_at", name="meter_updated_after_created"),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "unit_id"], ["unit.company_id", "unit.property_id", "unit.id"]
        ),
        sa.ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"]),
        sa.PrimaryKeyConstraint("company_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="meter_external_id"),
    )
    op.create_index("meter_changes", "meter", [sa.literal_column("((company_id << 30) # (id >> 14))"), "updated_at"])
    op.create_index(
        "meter_changes_of_property", "meter", [sa.literal_column("((property_id << 30) # (id >> 14))"), "updated_at"]
    )
    op.create_index(
        "meter_changes_of_unit", "meter", [sa.literal_column("((unit_id << 30) # (id >> 14))"), "updated_at"]
    )
    op.create_index("meter_page_of_property", "meter", ["company_id", "property_id", "id"])
    op.create_index("meter_page_of_unit", "meter", ["company_id", "unit_id", "id"])
    op.create_index("meter_updated", "meter", ["company_id", "updated_at"])
    op.create_table(
        "notice_unit",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("notice_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("unit_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("property_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "notice_id"], ["notice.company_id", "notice.property_id", "notice.id"]
        ),
        sa.ForeignKeyConstraint(
            ["company_id", "property_id", "unit_id"], ["unit.company_id", "unit.property_id", "unit.id"]
        ),
        sa.PrimaryKeyConstraint("company_id", "notice_id", "unit_id"),
    )
    op.create_table(
        "inspection_row",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("inspection_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id",
            sa.BigInteger(),
            server_default=sa.text("nextval('inspection_row_id')"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("category", sa.Text(), nullable=True),
        sa.Column("priority", sa.Text(), nullable=True),
        sa.Column("asset_id", sa.BigInteger(), nullable=True),
        sa.Column("photo_url", sa.Text(), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("result <> 'failed' OR failed_at IS NOT NULL", name="inspection_row_failed_at"),
        sa.CheckConstraint("result IN ('passed', 'failed')", name="inspection_row_result"),
        sa.ForeignKeyConstraint(["company_id", "asset_id"], ["asset.company_id", "asset.id"]),
        sa.ForeignKeyConstraint(["company_id", "inspection_id"], ["inspection.company_id", "inspection.id"]),
        sa.PrimaryKeyConstraint("company_id", "inspection_id", "id"),
        sa.UniqueConstraint("company_id", "inspection_id", "position", name="inspection_row_position"),
    )
    op.create_table(
        "reading",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("meter_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('reading_id')"), autoincrement=False, nullable=False
        ),
        sa.Column("period_start", sa.DateTime(timezone=True), nullable=False),
        sa.Column("period_end", sa.DateTime(timezone=True), nullable=False),
        sa.Column("consumption", sa.Double(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("is_estimated", sa.Boolean(), nullable=False),
        sa.Column("unit_of_measure", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("source IN ('staff', 'import')", name="reading_source"),
        sa.CheckConstraint("consumption BETWEEN -1000000000000000 AND 1000000000000000", name="reading_consumption"),
        sa.CheckConstraint("cost BETWEEN -1000000000000000 AND 1000000000000000", name="reading_cost"),
        sa.CheckConstraint("period_end >= period_start", name="reading_ends_after_it_starts"),
        sa.ForeignKeyConstraint(["company_id", "meter_id"], ["meter.company_id", "meter.id"]),
        sa.PrimaryKeyConstraint("company_id", "meter_id", "id"),
        sa.UniqueConstraint("company_id", "external_id", name="reading_external_id"),
    )
