"""The records that the API serves have documents, readings excepted.

Revision ID: 0007_records_have_documents
Revises: 0006_changes_are_followed
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

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

_MARK_DEPENDANTS = """CREATE OR REPLACE FUNCTION mark_dependants() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    at_once integer := coalesce(nullif(current_setting('makeready.at_once', true), ''), '200');
    dependants text := 'SELECT company_id, id FROM '
        || TG_ARGV[0] || ' WHERE company_id = ANY (ARRAY[$1]) AND '
        || TG_ARGV[1] || ' = ANY (ARRAY[$2]) AND ('
        || TG_ARGV[3] || ') ORDER BY company_id, '
        || TG_ARGV[1] || ', id LIMIT 201';
    mark record;
    few integer;
BEGIN
    FOR mark IN
        SELECT DISTINCT (shown ->> 'company_id')::bigint AS company_id, (shown ->> TG_ARGV[2])::bigint AS refers_to
        FROM (VALUES (to_jsonb(OLD)), (to_jsonb(NEW))) AS both_rows (shown) WHERE shown ->> TG_ARGV[2] IS NOT NULL
    LOOP
        INSERT INTO changes_to_touch (company_id, record, refers_by, refers_to)
        VALUES (mark.company_id, TG_ARGV[0], TG_ARGV[1], mark.refers_to);
        CONTINUE WHEN at_once = 0;
        EXECUTE 'SELECT count(*) FROM (' || dependants || ') AS dependant' INTO few
        USING mark.company_id, mark.refers_to;
        CONTINUE WHEN few = 0 OR few > at_once;
        EXECUTE 'WITH free AS MATERIALIZED (' || dependants || ' FOR NO KEY UPDATE SKIP LOCKED) UPDATE ' || TG_ARGV[0]
            || ' AS record SET document = NULL, document_shape = NULL, changed_xid = pg_current_xact_id() FROM free'
            ' WHERE record.company_id = free.company_id AND record.id = free.id'
        USING mark.company_id, mark.refers_to;
        at_once := at_once - few;
        PERFORM set_config('makeready.at_once', at_once::text, true);
    END LOOP;
    RETURN NULL;
END $$"""
# TABLE, IGNORED: replaced for each table.
_RECORD_CHANGE = """CREATE OR REPLACE FUNCTION record_change_of_TABLE() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_stored boolean := (NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape);
BEGIN
    IGNORED
    IF OLD *<> NEW THEN
        NEW.changed_xid := pg_current_xact_id();
        IF NOT is_stored THEN
            NEW.document := NULL; NEW.document_shape := NULL;
        END IF;
    END IF;
    RETURN NEW;
END $$"""
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
    op.execute(_MARK_DEPENDANTS)
    for table, beside in _TABLES.items():
        # Null in all records from before: they are rendered in the background.
        op.add_column(table, sa.Column("document", sa.LargeBinary(), server_default=sa.text("NULL")))
        op.add_column(table, sa.Column("document_shape", sa.Integer(), server_default=sa.text("NULL")))
        served = sa.text(_SERVED) if table == "inspection" else None
        op.create_index(f"{table}_document_shape", table, ["document_shape", "id"], postgresql_where=served)
        ignored = "\n    ".join(f"OLD.{name} := NEW.{name};" for name in (*beside, "document", "document_shape"))
        op.execute(_RECORD_CHANGE.replace("TABLE", table).replace("IGNORED", ignored))
        op.execute(
            f"CREATE OR REPLACE TRIGGER {table}_changed BEFORE UPDATE ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION record_change_of_{table}()"
        )
    for table, column, shown, key, columns in _FOLLOWS:
        served = (_SERVED if table == "inspection" else "true").replace("'", "''")
        differs = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in columns)
        op.execute(
            f"CREATE OR REPLACE TRIGGER {table}_follows_{shown}_by_{column} AFTER UPDATE ON {shown} FOR EACH ROW"
            f" WHEN ({differs}) EXECUTE FUNCTION mark_dependants('{table}', '{column}', '{key}', '{served}')"
        )
