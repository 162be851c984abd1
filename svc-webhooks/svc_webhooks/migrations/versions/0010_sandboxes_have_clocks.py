"""Events and attempts have the instants of their company's clock.

Revision ID: 0010_sandboxes_have_clocks
Revises: 0009_subscriptions_have_filters
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0010_sandboxes_have_clocks"
down_revision: str | None = "0009_subscriptions_have_filters"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {"attempt": "ACCESS EXCLUSIVE"}


def upgrade() -> None:
    op.execute("ALTER TABLE attempt ADD COLUMN clock_offset interval")
    op.execute(
        """CREATE OR REPLACE FUNCTION feed_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH added AS (
        SELECT company_id, event_id, event, entity_id, body,
               row_number() OVER (PARTITION BY company_id ORDER BY event_id) AS number,
               count(*) OVER (PARTITION BY company_id) AS numbers
        FROM stored WHERE event <> 'webhook.test'
    ), counted AS (
        INSERT INTO feed AS f (company_id, position, stored_at)
        SELECT company_id, count(*), clock_timestamp() + coalesce((SELECT c.clock_offset FROM company c WHERE c.id = added.company_id), '0')
        FROM added GROUP BY company_id ORDER BY company_id
        ON CONFLICT (company_id) DO UPDATE
        SET position = f.position + excluded.position,
            stored_at = greatest(f.stored_at, clock_timestamp() + coalesce((SELECT c.clock_offset FROM company c WHERE c.id = excluded.company_id), '0'))
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
