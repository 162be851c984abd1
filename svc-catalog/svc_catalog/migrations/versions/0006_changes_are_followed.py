"""The order of changes of all records that the API serves.

Records that exist come first, in the order of their ids: their changed_xid is 0, which rewrites no row.

Revision ID: 0006_changes_are_followed
Revises: 0005_inspections_are_cancelled
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006_changes_are_followed"
down_revision: str | None = "0005_inspections_are_cancelled"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "property": "ACCESS EXCLUSIVE",
    "unit": "ACCESS EXCLUSIVE",
    "asset": "ACCESS EXCLUSIVE",
    "inspection": "ACCESS EXCLUSIVE",
    "meter": "ACCESS EXCLUSIVE",
    "reading": "ACCESS EXCLUSIVE",
    "vendor": "ACCESS EXCLUSIVE",
    "building": "SHARE ROW EXCLUSIVE",
    "business": "SHARE ROW EXCLUSIVE",
    "floor": "SHARE ROW EXCLUSIVE",
    "floorplan": "SHARE ROW EXCLUSIVE",
    "location": "SHARE ROW EXCLUSIVE",
    "staff": "SHARE ROW EXCLUSIVE",
}

_RECORD_CHANGE = """CREATE FUNCTION record_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_xid := pg_current_xact_id();
    RETURN NEW;
END $$"""
# TABLE, IGNORED: replaced for each table with columns that no record shows.
_RECORD_CHANGE_OF = """CREATE FUNCTION record_change_of_TABLE() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IGNORED
    IF OLD *<> NEW THEN
        NEW.changed_xid := pg_current_xact_id();
    END IF;
    RETURN NEW;
END $$"""
_MARK_DEPENDANTS = """CREATE FUNCTION mark_dependants() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes_to_touch (company_id, record, refers_by, refers_to)
    SELECT DISTINCT (shown ->> 'company_id')::bigint, TG_ARGV[0], TG_ARGV[1], (shown ->> TG_ARGV[2])::bigint
    FROM (VALUES (to_jsonb(OLD)), (to_jsonb(NEW))) AS both_rows (shown) WHERE shown ->> TG_ARGV[2] IS NOT NULL;
    RETURN NULL;
END $$"""
# Each table of records, and the columns that no record shows.
_TABLES = {
    "property": ["searched_version"],
    "unit": ["searched_version", "occupancy_version"],
    "asset": ["searched_version"],
    "vendor": [],
    "inspection": [],
    "meter": ["searched_version"],
    "reading": [],
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
    op.create_table(
        "changes_epoch",
        sa.Column("id", sa.Integer(), autoincrement=False, server_default=sa.text("1"), nullable=False),
        sa.Column("epoch", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column(
            "system",
            sa.BigInteger(),
            server_default=sa.text("(pg_control_system()).system_identifier"),
            nullable=False,
        ),
        sa.CheckConstraint("id = 1", name="changes_epoch_one_row"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.execute("INSERT INTO changes_epoch DEFAULT VALUES")
    op.create_table(
        "changes_to_touch",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("refers_by", sa.Text(), nullable=False),
        sa.Column("refers_to", sa.BigInteger(), nullable=False),
        sa.Column("after_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("changes_to_touch_of", "changes_to_touch", ["record", "refers_by", "id"])
    op.execute(_RECORD_CHANGE)
    op.execute(_MARK_DEPENDANTS)
    for table, beside in _TABLES.items():
        op.execute(f"ALTER TABLE {table} ADD COLUMN changed_xid xid8 DEFAULT '0' NOT NULL")
        op.execute(f"ALTER TABLE {table} ALTER COLUMN changed_xid SET DEFAULT pg_current_xact_id()")
        op.create_index(f"{table}_changed", table, ["company_id", "changed_xid", "id"])
        function = "record_change"
        if beside:
            function = f"record_change_of_{table}"
            ignored = " ".join(f"OLD.{name} := NEW.{name};" for name in beside)
            op.execute(_RECORD_CHANGE_OF.replace("TABLE", table).replace("IGNORED", ignored))
        op.execute(
            f"CREATE TRIGGER {table}_changed BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()"
        )
    for table, column, shown, key, columns in _FOLLOWS:
        differs = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in columns)
        op.execute(
            f"CREATE TRIGGER {table}_follows_{shown}_by_{column} AFTER UPDATE ON {shown} FOR EACH ROW"
            f" WHEN ({differs}) EXECUTE FUNCTION mark_dependants('{table}', '{column}', '{key}')"
        )
    op.create_index(
        "inspection_follows_assignee",
        "inspection",
        ["company_id", "assignee_id", "id"],
        postgresql_where=sa.text(
            "(kind = 'operations' OR kind = 'acceptance_walk' AND engagement IS NULL) AND assignee_id IS NOT NULL"
        ),
    )
    op.drop_index("vendor_of_business", "vendor")
    op.create_index("vendor_of_business", "vendor", ["company_id", "business_id", "id"])
