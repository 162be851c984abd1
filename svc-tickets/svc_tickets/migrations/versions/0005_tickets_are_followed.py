"""Tickets can be followed in the order of their last change.

Revision ID: 0005_tickets_are_followed
Revises: 0004_people_search_tickets
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005_tickets_are_followed"
down_revision: str | None = "0004_people_search_tickets"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "ticket": "ACCESS EXCLUSIVE",
    "property": "SHARE ROW EXCLUSIVE",
    "unit": "SHARE ROW EXCLUSIVE",
    "staff": "SHARE ROW EXCLUSIVE",
    "vendor": "SHARE ROW EXCLUSIVE",
}

RECORD_CHANGE = """
CREATE FUNCTION record_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_xid := pg_current_xact_id();
    RETURN NEW;
END $$
"""
MARK_DEPENDANTS = """
CREATE FUNCTION mark_dependants() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes_to_touch (company_id, record, refers_by, refers_to)
    SELECT DISTINCT (one ->> 'company_id')::bigint, TG_ARGV[0], TG_ARGV[1], (one ->> TG_ARGV[2])::bigint
    FROM (VALUES (to_jsonb(OLD)), (to_jsonb(NEW))) AS both_rows (one) WHERE one ->> TG_ARGV[2] IS NOT NULL;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    op.create_table(
        "changes_epoch",
        sa.Column("id", sa.Integer(), server_default=sa.text("1"), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column(
            "system", sa.BigInteger(), server_default=sa.text("(pg_control_system()).system_identifier"), nullable=False
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
    op.execute(RECORD_CHANGE)
    op.execute(MARK_DEPENDANTS)
    # A constant default rewrites no row: the tickets from before come first, by id.
    op.execute("ALTER TABLE ticket ADD COLUMN changed_xid xid8 NOT NULL DEFAULT '0'")
    op.execute("ALTER TABLE ticket ALTER COLUMN changed_xid SET DEFAULT pg_current_xact_id()")
    op.create_index("ticket_changed", "ticket", ["company_id", "changed_xid", "id"])
    op.create_index(
        "ticket_follows_assignee",
        "ticket",
        ["company_id", "assignee_id", "id"],
        postgresql_where=sa.text("assignee_id IS NOT NULL"),
    )
    op.create_index(
        "ticket_follows_vendor",
        "ticket",
        ["company_id", "vendor_id", "id"],
        postgresql_where=sa.text("vendor_id IS NOT NULL"),
    )
    op.execute("CREATE TRIGGER ticket_changed BEFORE UPDATE ON ticket FOR EACH ROW EXECUTE FUNCTION record_change()")
    op.execute(
        "CREATE TRIGGER ticket_follows_property_by_property_id AFTER UPDATE ON property "
        "FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name OR OLD.external_id IS DISTINCT FROM NEW.external_id) "
        "EXECUTE FUNCTION mark_dependants('ticket', 'property_id', 'id')"
    )
    op.execute(
        "CREATE TRIGGER ticket_follows_unit_by_unit_id AFTER UPDATE ON unit "
        "FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name OR OLD.external_id IS DISTINCT FROM NEW.external_id) "
        "EXECUTE FUNCTION mark_dependants('ticket', 'unit_id', 'id')"
    )
    op.execute(
        "CREATE TRIGGER ticket_follows_staff_by_assignee_id AFTER UPDATE ON staff "
        "FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name) "
        "EXECUTE FUNCTION mark_dependants('ticket', 'assignee_id', 'id')"
    )
    op.execute(
        "CREATE TRIGGER ticket_follows_vendor_by_vendor_id AFTER UPDATE ON vendor "
        "FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name OR OLD.external_id IS DISTINCT FROM NEW.external_id) "
        "EXECUTE FUNCTION mark_dependants('ticket', 'vendor_id', 'id')"
    )
