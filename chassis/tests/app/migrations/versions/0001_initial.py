"""The tables of svc-echo."""

from alembic import op

revision = "0001_initial"
down_revision = None


def upgrade() -> None:
    op.get_context().opts["target_metadata"].create_all(op.get_bind())
