"""The tables of inspections. Which of them are served is an expression of their columns, and of every index."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Date,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    and_,
    literal_column,
    or_,
)

from chassis.lists.paging import page_indexes
from svc_catalog import field_rules
from svc_catalog.inspections import rules as inspections
from svc_catalog.schema import (
    between,
    company_key,
    id_of,
    ids,
    instant,
    lies_in_property,
    metadata,
    one_of,
    version,
    within_property,
)

inspection_id = ids("inspection_id")

inspection = Table(
    "inspection",
    metadata,
    company_key(),
    id_of(inspection_id),
    version(),
    Column("property_id", BigInteger, nullable=False),
    Column("unit_id", BigInteger),
    Column("inspection_number", Integer),
    Column("title", Text),
    Column("inspection_type", Text),
    Column("status", Text, nullable=False),
    # What is served and filtered by (rules.published_status).
    Column(
        "published_status",
        Text,
        Computed(
            f"CASE status WHEN '{inspections.LEGACY_STATUS}' THEN '{inspections.LEGACY_PUBLISHED_AS}' ELSE status END",
            persisted=True,
        ),
    ),
    Column("result", Text),
    Column("scheduled_date", Date),
    Column("completed_date", Date),
    Column("assignee_id", BigInteger),
    Column("is_compliance_inspection", Boolean, nullable=False),
    Column("compliance_type", Text),
    Column("kind", Text, nullable=False),
    # The consulting engagement that a walk belongs to.
    Column("engagement", Text),
    instant("created_at"),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    # When inspection.stale fired, which it does once; set too where an import brought the inspection in overdue.
    Column("stale_announced_at", DateTime(timezone=True)),
    UniqueConstraint("company_id", "external_id", name="inspection_external_id"),
    UniqueConstraint("company_id", "property_id", "inspection_number", name="inspection_number_in_property"),
    lies_in_property(),
    within_property("unit_id", "unit"),
    ForeignKeyConstraint(["company_id", "assignee_id"], ["staff.company_id", "staff.id"]),
    CheckConstraint("engagement IS NULL OR kind <> 'operations'", name="inspection_engagement_of_a_walk"),
    between("inspection", "inspection_number", 1, 2**31 - 1),
    one_of("inspection", "status", inspections.STORED_STATUSES),
    one_of("inspection", "result", inspections.INSPECTION_RESULTS),
    one_of("inspection", "kind", inspections.INSPECTION_KINDS),
    one_of("inspection", "source", field_rules.SOURCES),
)

# rules.is_served, in literals: a partial index serves no query that gives its constants as parameters.
SERVED = or_(
    inspection.c.kind == literal_column("'operations'"),
    and_(inspection.c.kind == literal_column("'acceptance_walk'"), inspection.c.engagement.is_(None)),
)

# Over what is served alone: a page costs the same however many inspections are not.
page_indexes(inspection, "published_status", SERVED)

# rules.may_become_stale, in literals for the same reason. The sweep's index holds nothing else.
MAY_BECOME_STALE = and_(
    SERVED,
    inspection.c.status.in_([literal_column(f"'{status}'") for status in inspections.OPEN_STATUSES]),
    inspection.c.stale_announced_at.is_(None),
)
Index(
    "inspection_stale",
    inspection.c.company_id,
    inspection.c.scheduled_date,
    postgresql_where=and_(MAY_BECOME_STALE, inspection.c.scheduled_date.is_not(None)),
)

inspection_row_id = ids("inspection_row_id")

# What an inspection looks at, in its order.
inspection_row = Table(
    "inspection_row",
    metadata,
    company_key(),
    Column("inspection_id", BigInteger, primary_key=True, autoincrement=False),
    id_of(inspection_row_id),
    Column("position", Integer, nullable=False),
    Column("label", Text, nullable=False),
    Column("result", Text),
    # Of the newest failure.
    Column("note", Text),
    Column("category", Text),
    Column("priority", Text),
    Column("asset_id", BigInteger),
    Column("photo_url", Text),
    # When the row failed first: svc-tickets opened a ticket then. It stays where somebody passes the row after all.
    Column("failed_at", DateTime(timezone=True)),
    UniqueConstraint("company_id", "inspection_id", "position", name="inspection_row_position"),
    ForeignKeyConstraint(["company_id", "inspection_id"], ["inspection.company_id", "inspection.id"]),
    ForeignKeyConstraint(["company_id", "asset_id"], ["asset.company_id", "asset.id"]),
    CheckConstraint("result <> 'failed' OR failed_at IS NOT NULL", name="inspection_row_failed_at"),
    one_of("inspection_row", "result", inspections.INSPECTION_RESULTS),
)

# The newest number of each property's sequence.
inspection_number = Table(
    "inspection_number",
    metadata,
    company_key(),
    Column("property_id", BigInteger, primary_key=True, autoincrement=False),
    Column("last", Integer, nullable=False),
    lies_in_property(),
)
