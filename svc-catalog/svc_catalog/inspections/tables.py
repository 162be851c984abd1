"""The tables of inspections. The indexes of the list and of the sweep hold served inspections only."""

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
    func,
    literal_column,
    or_,
)

from chassis.changes.tables import Follow, make_followable
from chassis.db.statements import Expression
from chassis.lists.paging import page_indexes
from chassis.lists.updated_since import status_key
from svc_catalog import field_rules
from svc_catalog.day_pages import INFINITY
from svc_catalog.inspections import rules as inspections
from svc_catalog.places.tables import property_, unit
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
    staff,
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
    # The status that the API serves and filters by (rules.published_status).
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
    # When inspection.stale fired. It fires once. An import without events sets it for overdue inspections.
    Column("stale_announced_at", DateTime(timezone=True)),
    # When, by whom as the audit log spells it, and why it was cancelled; its kind is then rules.CANCELLED.
    Column("cancelled_at", DateTime(timezone=True)),
    Column("cancelled_by", Text),
    Column("cancel_reason", Text),
    UniqueConstraint("company_id", "external_id", name="inspection_external_id"),
    UniqueConstraint("company_id", "property_id", "inspection_number", name="inspection_number_in_property"),
    lies_in_property(),
    within_property("unit_id", "unit"),
    ForeignKeyConstraint(["company_id", "assignee_id"], ["staff.company_id", "staff.id"]),
    CheckConstraint("engagement IS NULL OR kind <> 'operations'", name="inspection_engagement_of_a_walk"),
    between("inspection", "inspection_number", 1, 2**31 - 1),
    one_of("inspection", "status", inspections.STORED_STATUSES),
    one_of("inspection", "result", inspections.INSPECTION_RESULTS),
    one_of("inspection", "kind", inspections.STORED_KINDS),
    CheckConstraint(
        f"kind <> '{inspections.CANCELLED}' OR cancelled_at IS NOT NULL AND cancelled_by IS NOT NULL",
        name="inspection_cancelled_at",
    ),
    one_of("inspection", "source", field_rules.SOURCES),
)

# rules.is_served, in literals: PostgreSQL uses a partial index only if the query has its constants as literals.
SERVED = or_(
    inspection.c.kind == literal_column("'operations'"),
    and_(inspection.c.kind == literal_column("'acceptance_walk'"), inspection.c.engagement.is_(None)),
)

IS_CANCELLED = inspection.c.kind == literal_column(f"'{inspections.CANCELLED}'")
# What people may open: an inspection keeps its page when it is cancelled.
FOR_PEOPLE = or_(SERVED, IS_CANCELLED)

# Only served inspections are in the index, so inspections that are not served do not slow down a page.
page_indexes(inspection, "published_status", SERVED, places=PLACES)

# rules.may_become_stale, in literals for the same reason. The sweep's index has no other rows.
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

# The day by which people look for an inspection; infinity if it has none.
INSPECTION_DAY = func.coalesce(inspection.c.scheduled_date, inspection.c.completed_date, INFINITY)
# What people search by: "Completed failed", "Scheduled ".
SEARCH_STATE = func.textcat(
    inspection.c.published_status,
    func.textcat(literal_column("' '"), func.coalesce(inspection.c.result, literal_column("''"))),
    type_=Text,
)
# 0: nobody.
SEARCH_ASSIGNEE = func.coalesce(inspection.c.assignee_id, literal_column("0"))


def assignee_key(group: Expression, assignee: Expression) -> Expression:
    """The index key of the inspections that one member of staff has. group: the id of a company or a property."""
    return func.hashint8extended(assignee, group, type_=BigInteger)


# Each lead of an index of searches, by its name.
SEARCH_LEADS = {
    "company": inspection.c.company_id,
    "property": inspection.c.property_id,
    "unit": inspection.c.unit_id,
    "assignee": assignee_key(inspection.c.company_id, SEARCH_ASSIGNEE),
    "assignee_in_property": assignee_key(inspection.c.property_id, SEARCH_ASSIGNEE),
}
for _name, _lead in SEARCH_LEADS.items():
    Index(
        f"inspection_search_{_name}",
        status_key(_lead, SEARCH_STATE),
        INSPECTION_DAY,
        inspection.c.id,
        postgresql_where=SERVED,
    )

Index(
    "inspection_search_cancelled",
    status_key(inspection.c.company_id, SEARCH_STATE),
    INSPECTION_DAY,
    inspection.c.id,
    postgresql_where=IS_CANCELLED,
)

make_followable(
    inspection,
    Follow("property_id", property_, "name", "external_id"),
    Follow("unit_id", unit, "name", "external_id"),
    Follow("assignee_id", staff, "name"),
    served=SERVED,
)

inspection_row_id = ids("inspection_row_id")

# The rows of an inspection's checklist, by position.
inspection_row = Table(
    "inspection_row",
    metadata,
    company_key(),
    Column("inspection_id", BigInteger, primary_key=True, autoincrement=False),
    id_of(inspection_row_id),
    Column("position", Integer, nullable=False),
    Column("label", Text, nullable=False),
    Column("result", Text),
    # The fields of the newest failure.
    Column("note", Text),
    Column("category", Text),
    Column("priority", Text),
    Column("asset_id", BigInteger),
    Column("photo_url", Text),
    # When the row first failed and svc-tickets opened its ticket. It stays if the row passes later.
    Column("failed_at", DateTime(timezone=True)),
    UniqueConstraint("company_id", "inspection_id", "position", name="inspection_row_position"),
    ForeignKeyConstraint(["company_id", "inspection_id"], ["inspection.company_id", "inspection.id"]),
    ForeignKeyConstraint(["company_id", "asset_id"], ["asset.company_id", "asset.id"]),
    CheckConstraint("result <> 'failed' OR failed_at IS NOT NULL", name="inspection_row_failed_at"),
    one_of("inspection_row", "result", inspections.INSPECTION_RESULTS),
)

# The last number issued of each property's sequence.
inspection_number = Table(
    "inspection_number",
    metadata,
    company_key(),
    Column("property_id", BigInteger, primary_key=True, autoincrement=False),
    Column("last", Integer, nullable=False),
    lies_in_property(),
)
