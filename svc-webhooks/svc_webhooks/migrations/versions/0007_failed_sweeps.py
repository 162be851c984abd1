"""Subscriptions remember the sweeps in which their deliveries failed.

Revision ID: 0007_failed_sweeps
Revises: 0006_events_have_traces
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0007_failed_sweeps"
down_revision: str | None = "0006_events_have_traces"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.execute(
        "ALTER TABLE subscription"
        " ADD COLUMN failed_sweeps timestamptz[] NOT NULL DEFAULT '{}',"
        " ADD COLUMN delivering_sweep timestamptz DEFAULT NULL"
    )
    # A success, a pause and a resume end the row of failed sweeps, those of the release before too, which knows none.
    op.execute(
        """CREATE FUNCTION end_failed_sweeps() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.failed_sweeps := '{}';
    RETURN NEW;
END $$"""
    )
    op.execute(
        "CREATE TRIGGER failed_sweeps_end BEFORE UPDATE ON subscription FOR EACH ROW"
        " WHEN (NEW.failures_in_a_row = 0 AND NEW.failed_sweeps <> '{}') EXECUTE FUNCTION end_failed_sweeps()"
    )
