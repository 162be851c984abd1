"""The records that the API serves have documents, readings excepted.

Revision ID: 0007_records_have_documents
Revises: 0006_changes_are_followed
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from chassis.changes import triggers

revision: str = "0007_records_have_documents"
down_revision: str | None = "0006_changes_are_followed"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "property": "ACCESS EXCLUSIVE",
    "unit": "ACCESS EXCLUSIVE",
    "asset": "ACCESS EXCLUSIVE",
    "inspection": "ACCESS EXCLUSIVE",
    "meter": "ACCESS EXCLUSIVE",
    "vendor": "ACCESS EXCLUSIVE",
    "building": "SHARE ROW EXCLUSIVE",
    "business": "SHARE ROW EXCLUSIVE",
    "floor": "SHARE ROW EXCLUSIVE",
    "floorplan": "SHARE ROW EXCLUSIVE",
    "location": "SHARE ROW EXCLUSIVE",
    "staff": "SHARE ROW EXCLUSIVE",
    "changes_epoch": "ACCESS EXCLUSIVE",
    "changes_to_touch": "ACCESS EXCLUSIVE",
}

_SERVED = "inspection.kind = 'operations' OR inspection.kind = 'acceptance_walk' AND inspection.engagement IS NULL"
# Each table of records, and the columns that no record shows or that are computed.
_TABLES = {
    "property": ["searched_version"],
    "unit": ["searched_version", "occupancy_version"],
    "asset": ["searched_version"],
    "vendor": [],
    "inspection": ["published_status"],
    "meter": ["searched_version"],
}
_NAMED = ("name", "external_id")
# The table of records, its column, the table whose rows they show, that table's column, and what they show.
_FOLLOWS = (
    ("unit", "property_id", "property", "id", _NAMED),
    ("unit", "property_id", "floorplan", "property_id", (*_NAMED, "bedrooms", "bathrooms", "square_feet")),
    ("unit", "property_id", "building", "property_id", _NAMED),
    ("unit", "property_id", "floor", "property_id", _NAMED),
    ("asset", "property_id", "property", "id", _NAMED),
    ("asset", "unit_id", "unit", "id", _NAMED),
    ("asset", "property_id", "location", "property_id", (*_NAMED, "location_type")),
    ("vendor", "business_id", "business", "id", ("legal_name", "website")),
    ("inspection", "property_id", "property", "id", _NAMED),
    ("inspection", "unit_id", "unit", "id", _NAMED),
    ("inspection", "assignee_id", "staff", "id", ("name",)),
    ("meter", "property_id", "property", "id", _NAMED),
    ("meter", "unit_id", "unit", "id", _NAMED),
)


def upgrade() -> None:
    op.execute("ALTER TABLE changes_epoch ADD COLUMN settled_xid xid8 NOT NULL DEFAULT '0'")
    op.execute(
        "ALTER TABLE changes_to_touch ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id(),"
        " ADD COLUMN since xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()), ADD COLUMN horizon xid8"
    )
    op.create_index("changes_to_touch_since", "changes_to_touch", ["xid"])
    for statement in triggers.FUNCTIONS:
        op.execute(statement)
    for table, beside in _TABLES.items():
        # Null in all records from before: they are rendered in the background.
        op.add_column(table, sa.Column("document", sa.LargeBinary(), server_default=sa.text("NULL")))
        op.add_column(table, sa.Column("document_shape", sa.Integer(), server_default=sa.text("NULL")))
        served = sa.text(_SERVED) if table == "inspection" else None
        op.create_index(f"{table}_document_shape", table, ["document_shape"], postgresql_where=served)
        for statement in triggers.recorded(table, beside, documents=True):
            op.execute(statement)
    for table, column, shown, key, columns in _FOLLOWS:
        condition = _SERVED if table == "inspection" else "true"
        for statement in triggers.followed(table, column, shown, columns, key=key, served=condition):
            op.execute(statement)
