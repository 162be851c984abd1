"""Turns have documents.

Revision ID: 0008_turns_have_documents
Revises: 0007_turns_are_planned
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0008_turns_have_documents"
down_revision: str | None = "0007_turns_are_planned"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "transition": "ACCESS EXCLUSIVE",
    "property": "SHARE ROW EXCLUSIVE",
    "unit": "SHARE ROW EXCLUSIVE",
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
_RECORD_CHANGE = """CREATE OR REPLACE FUNCTION record_change_of_transition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_stored boolean := (NEW.document, NEW.document_shape) IS DISTINCT FROM (OLD.document, OLD.document_shape);
BEGIN
    OLD.document := NEW.document;
    OLD.document_shape := NEW.document_shape;
    IF OLD *<> NEW THEN
        NEW.changed_xid := pg_current_xact_id();
        IF NOT is_stored THEN
            NEW.document := NULL; NEW.document_shape := NULL;
        END IF;
    END IF;
    RETURN NEW;
END $$"""


def upgrade() -> None:
    op.execute("ALTER TABLE changes_epoch ADD COLUMN settled_xid xid8 NOT NULL DEFAULT '0'")
    op.execute(
        "ALTER TABLE changes_to_touch ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id(),"
        " ADD COLUMN since xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()), ADD COLUMN horizon xid8"
    )
    op.create_index("changes_to_touch_since", "changes_to_touch", ["xid"])
    # Null in all turns from before: they are rendered in the background.
    op.add_column("transition", sa.Column("document", sa.LargeBinary(), server_default=sa.text("NULL")))
    op.add_column("transition", sa.Column("document_shape", sa.Integer(), server_default=sa.text("NULL")))
    op.create_index("transition_document_shape", "transition", ["document_shape", "id"])
    op.execute(_MARK_DEPENDANTS)
    op.execute(_RECORD_CHANGE)
    op.execute(
        "CREATE OR REPLACE TRIGGER transition_changed BEFORE UPDATE ON transition"
        " FOR EACH ROW EXECUTE FUNCTION record_change_of_transition()"
    )
    for shown, refers_by in (("property", "property_id"), ("unit", "unit_id")):
        op.execute(
            f"CREATE OR REPLACE TRIGGER transition_follows_{shown}_by_{refers_by} AFTER UPDATE ON {shown} FOR EACH ROW"
            " WHEN (OLD.name IS DISTINCT FROM NEW.name OR OLD.external_id IS DISTINCT FROM NEW.external_id)"
            f" EXECUTE FUNCTION mark_dependants('transition', '{refers_by}', 'id', 'true')"
        )
