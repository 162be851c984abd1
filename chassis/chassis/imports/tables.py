"""The table of what imports did, a row for each batch: by it an import is undone."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from chassis.changes.tables import Xid8
from chassis.db.statements import CLOCK, TIME

IMPORT_BATCH = "import_batch"


def import_table(metadata: sa.MetaData) -> sa.Table:
    """The batches of the imports of 30 days. What was undone is taken out of them."""
    table = sa.Table(
        IMPORT_BATCH,
        metadata,
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("recorded_at", TIME, nullable=False, server_default=CLOCK),
        sa.Column("company_id", sa.BigInteger, nullable=False),
        sa.Column("import_key", sa.Text, nullable=False),
        # As files have it: "units".
        sa.Column("kind", sa.Text, nullable=False),
        # The records that the batch created or changed, and the version that it left of each; 0 without versions.
        sa.Column("ids", ARRAY(sa.BigInteger), nullable=False),
        sa.Column("versions", ARRAY(sa.BigInteger), nullable=False),
        # By the ids of those that it changed: the values of before.
        sa.Column("before", JSONB, nullable=False),
        # What else it changed, as the kind's undo needs it.
        sa.Column("beside", JSONB, nullable=False),
        # Records that an undo is about to withdraw; null for none.
        sa.Column("leaving", ARRAY(sa.BigInteger)),
        sa.Column("xid", Xid8(), nullable=False, server_default=sa.text("pg_current_xact_id()")),
    )
    sa.Index("import_batch_of", table.c.company_id, table.c.import_key, table.c.kind, table.c.id)
    sa.Index("import_batch_leaving", table.c.company_id, postgresql_where=table.c.leaving.is_not(None))
    sa.Index("import_batch_recorded", table.c.recorded_at)
    return table


def is_leaving(table: sa.Table, kind: str) -> sa.ColumnElement[bool]:
    """Whether an undo is about to withdraw a row of the table: it is given to no other context any more."""
    batch = table.metadata.tables[IMPORT_BATCH].c
    return sa.exists().where(
        batch.company_id == table.c.company_id,
        batch.kind == sa.literal_column(f"'{kind}'", sa.Text),
        batch.leaving.is_not(None),
        table.c.id == sa.func.any(batch.leaving),
    )
