"""The feed of a company's events, and replays.

Revision ID: 0005_feed
Revises: 0004_administrator_interface
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0005_feed"
down_revision: str | None = "0004_administrator_interface"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {"delivery": "ACCESS EXCLUSIVE", "attempt": "ACCESS EXCLUSIVE", "event": "SHARE ROW EXCLUSIVE"}


def upgrade() -> None:
    op.create_table(
        "feed",
        sa.Column("company_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("begins_after", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("begins_after_event_id", sa.UUID(), server_default=sa.text("NULL"), nullable=True),
        sa.CheckConstraint("0 <= begins_after AND begins_after <= position", name="feed_begins_after"),
        sa.PrimaryKeyConstraint("company_id"),
    )
    op.create_table(
        "feed_entry",
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("event_id", sa.UUID(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("entity_id", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("company_id", "position"),
    )
    op.create_index("feed_entry_of_kind", "feed_entry", ["company_id", "event", "position"])
    op.create_index("feed_entry_of_record", "feed_entry", ["company_id", "entity_id", "position"])
    # Companies in the order of their ids, so that two transactions never wait for each other in turn. The instant is
    # taken under the row's lock, so it never goes back. A test is no event of the company's.
    op.execute(
        """CREATE FUNCTION feed_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH added AS (
        SELECT company_id, event_id, event, entity_id, body,
               row_number() OVER (PARTITION BY company_id ORDER BY event_id) AS number,
               count(*) OVER (PARTITION BY company_id) AS numbers
        FROM stored WHERE event <> 'webhook.test'
    ), counted AS (
        INSERT INTO feed AS f (company_id, position, stored_at)
        SELECT company_id, count(*), clock_timestamp() FROM added GROUP BY company_id ORDER BY company_id
        ON CONFLICT (company_id) DO UPDATE
        SET position = f.position + excluded.position, stored_at = greatest(f.stored_at, clock_timestamp())
        RETURNING f.company_id, f.position, f.stored_at
    )
    INSERT INTO feed_entry (company_id, position, stored_at, event_id, event, entity_id, body)
    SELECT a.company_id, c.position - a.numbers + a.number, c.stored_at, a.event_id, a.event, a.entity_id,
           CASE WHEN a.event_id < (
               lpad(to_hex((extract(epoch FROM date_trunc('day', c.stored_at, 'UTC')) * 1000)::bigint), 12, '0')
               || repeat('0', 20)
           )::uuid THEN a.body END
    FROM added a JOIN counted c USING (company_id);
    RETURN NULL;
END $$"""
    )
    op.execute(
        "CREATE TRIGGER event_is_fed AFTER INSERT ON event REFERENCING NEW TABLE AS stored"
        " FOR EACH STATEMENT EXECUTE FUNCTION feed_events()"
    )
    op.execute("ALTER TABLE delivery ADD COLUMN replay_id bigint, ADD COLUMN resumes_at timestamptz")
    # Every stored row satisfies the wider check. One statement, so that the table is read once.
    op.execute(
        "ALTER TABLE attempt"
        " ADD COLUMN replay_id bigint,"
        " DROP CONSTRAINT attempt_cause,"
        " ADD CONSTRAINT attempt_cause"
        " CHECK (cause IN ('sweep', 'retry', 'manual', 'resend', 'test', 'replay'))"
    )
    op.execute("CREATE SEQUENCE replay_id AS bigint")
    op.create_table(
        "replay",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("company_id", sa.BigInteger(), nullable=False),
        sa.Column("subscription_id", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("events", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("after_position", sa.BigInteger(), nullable=False),
        sa.Column("until_position", sa.BigInteger(), nullable=False),
        sa.Column("matched", sa.BigInteger(), nullable=False),
        sa.Column("queued", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), server_default=sa.text("NULL"), nullable=True),
        sa.Column("succeeded", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint("state IN ('all', 'parked', 'failed')", name="replay_state"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "replay_under_way",
        "replay",
        ["subscription_id"],
        unique=True,
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.create_index("replay_finished", "replay", ["finished_at"])
