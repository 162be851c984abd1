"""Turns can be followed: each has its place in the order of changes, and moves when its property or unit is renamed.

Revision ID: 0006_turns_can_be_followed
Revises: 0005_people_forgotten
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006_turns_can_be_followed"
down_revision: str | None = "0005_people_forgotten"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "transition": "ACCESS EXCLUSIVE",
    "property": "SHARE ROW EXCLUSIVE",
    "unit": "SHARE ROW EXCLUSIVE",
}


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
    op.create_index("changes_to_touch_of", "changes_to_touch", ["record", "refers_by", "id"], unique=False)
    op.execute("""CREATE FUNCTION record_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_xid := pg_current_xact_id();
    RETURN NEW;
END $$""")
    op.execute("""CREATE FUNCTION mark_dependants() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes_to_touch (company_id, record, refers_by, refers_to)
    SELECT DISTINCT (one ->> 'company_id')::bigint, TG_ARGV[0], TG_ARGV[1], (one ->> TG_ARGV[2])::bigint
    FROM (VALUES (to_jsonb(OLD)), (to_jsonb(NEW))) AS both_rows (one) WHERE one ->> TG_ARGV[2] IS NOT NULL;
    RETURN NULL;
END $$""")
    # A constant default rewrites no row: the turns from before come first in the order, by id.
    op.execute("ALTER TABLE transition ADD COLUMN changed_xid xid8 NOT NULL DEFAULT '0'")
    op.execute("ALTER TABLE transition ALTER COLUMN changed_xid SET DEFAULT pg_current_xact_id()")
    op.execute(
        "CREATE TRIGGER transition_changed BEFORE UPDATE ON transition FOR EACH ROW EXECUTE FUNCTION record_change()"
    )
    for shown, refers_by in (("property", "property_id"), ("unit", "unit_id")):
        op.execute(
            f"CREATE TRIGGER transition_follows_{shown}_by_{refers_by} AFTER UPDATE ON {shown} FOR EACH ROW"
            " WHEN (OLD.name IS DISTINCT FROM NEW.name OR OLD.external_id IS DISTINCT FROM NEW.external_id)"
            f" EXECUTE FUNCTION mark_dependants('transition', '{refers_by}', 'id')"
        )
    op.create_index("transition_changed", "transition", ["company_id", "changed_xid", "id"], unique=False)
