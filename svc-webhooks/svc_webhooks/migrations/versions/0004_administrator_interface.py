"""What the administrator interface shows: who created and paused a subscription, whose attempt it was, and lists.

Revision ID: 0004_administrator_interface
Revises: 0003_audit_filters
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0004_administrator_interface"
down_revision: str | None = "0003_audit_filters"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None
locks: dict[str, str] = {
    "delivery": "ACCESS EXCLUSIVE",
    "attempt": "ACCESS EXCLUSIVE",
    "subscription": "ACCESS EXCLUSIVE",
    "event": "SHARE",
}


def upgrade() -> None:
    op.execute(
        "ALTER TABLE subscription"
        " ADD COLUMN failing_since timestamptz DEFAULT NULL,"
        " ADD COLUMN paused_by text NOT NULL DEFAULT '',"
        " ADD COLUMN pause_reason text NOT NULL DEFAULT '',"
        " ADD COLUMN secret_since timestamptz NOT NULL DEFAULT clock_timestamp(),"
        " ADD COLUMN created_by text,"
        " DROP CONSTRAINT subscription_source,"
        " ADD CONSTRAINT subscription_source CHECK (source IN ('api', 'administrator'))"
    )
    # The audit log knows who paused a subscription, and when its secret was made.
    op.execute(
        "UPDATE subscription SET"
        " secret_since = coalesce((SELECT max(recorded_at) FROM audit WHERE audit.company_id = subscription.company_id"
        " AND subject = 'webhook_subscription' AND subject_id = subscription.id"
        " AND action = 'subscription.secret_rotated'), created_at),"
        " paused_by = coalesce((SELECT actor FROM audit WHERE health = 'paused'"
        " AND audit.company_id = subscription.company_id"
        " AND subject = 'webhook_subscription' AND subject_id = subscription.id"
        " AND action = 'subscription.paused' ORDER BY audit.id DESC LIMIT 1), '')"
    )
    # Every stored row satisfies the wider checks. One statement a table, so that each is read once.
    op.execute(
        "ALTER TABLE delivery"
        " ADD COLUMN requested_by text,"
        " DROP CONSTRAINT delivery_state,"
        " DROP CONSTRAINT delivery_leased_until,"
        " ADD CONSTRAINT delivery_state CHECK (state IN ('waiting', 'succeeded', 'parked', 'failed')),"
        " ADD CONSTRAINT delivery_leased_until CHECK (state <> 'parked' OR leased_until IS NULL)"
    )
    op.execute(
        "ALTER TABLE attempt"
        " ADD COLUMN actor text NOT NULL DEFAULT '',"
        " DROP CONSTRAINT attempt_cause,"
        " DROP CONSTRAINT attempt_state,"
        " ADD CONSTRAINT attempt_cause CHECK (cause IN ('sweep', 'retry', 'manual', 'resend', 'test')),"
        " ADD CONSTRAINT attempt_state CHECK (state IN ('waiting', 'succeeded', 'parked', 'failed'))"
    )
    op.create_index("attempt_of_subscription", "attempt", ["subscription_id", "started_at"])
    op.create_index("event_of_kind", "event", ["company_id", "event", "event_id"])
    op.create_index("event_of_record", "event", ["company_id", "entity_id", "event_id"])
    op.execute("CREATE INDEX event_of_request ON event (company_id, request_id, event_id) WHERE request_id <> ''")
