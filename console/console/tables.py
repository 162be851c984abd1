"""All tables of the database `console`. Constraints enforce the rules."""

from __future__ import annotations

import sqlalchemy as sa

from chassis.db.statements import CLOCK, TIME

metadata = sa.MetaData()

# An import of one file. Its task is done by one process at a time, the one that has claimed it.
job = sa.Table(
    "job",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("company_id", sa.BigInteger, nullable=False),
    # The token of the form that brought the file: a form that is sent twice makes one job.
    sa.Column("act", sa.Text, nullable=False),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("file_name", sa.Text, nullable=False),
    sa.Column("file_bytes", sa.BigInteger, nullable=False),
    # Its name in the store of files.
    sa.Column("stored_as", sa.Text, nullable=False),
    # How the file is read, as JSON; empty texts are found in the file.
    sa.Column("reading", sa.Text, nullable=False, server_default="{}"),
    sa.Column("state", sa.Text, nullable=False, server_default="reading"),
    # The state in which the job stopped or was cancelled.
    sa.Column("stopped_in", sa.Text, nullable=False, server_default=""),
    sa.Column("fault", sa.Text, nullable=False, server_default=""),
    # A kind, or "all". Empty until it is chosen.
    sa.Column("kind", sa.Text, nullable=False, server_default=""),
    # TOML. Empty: the columns have the fields' names.
    sa.Column("mapping", sa.Text, nullable=False, server_default=""),
    sa.Column("events", sa.Boolean, nullable=False, server_default=sa.false()),
    # The file's columns with samples, as JSON.
    sa.Column("facts", sa.Text, nullable=False, server_default="{}"),
    # The outcome so far, as JSON, and the part of the file in bytes that was read in the pass under way.
    sa.Column("outcome", sa.Text, nullable=False, server_default="{}"),
    sa.Column("position", sa.BigInteger, nullable=False, server_default="0"),
    # Counts the runs and dry runs: a batch of another run is another batch.
    sa.Column("run", sa.Integer, nullable=False, server_default="0"),
    sa.Column("cancels", sa.Boolean, nullable=False, server_default=sa.false()),
    # With it the gateway issues tokens of the administrator who started the task.
    sa.Column("permit", sa.Text, nullable=False, server_default=""),
    sa.Column("runner", sa.Text, nullable=False, server_default=""),
    sa.Column("lease_until", TIME),
    # How often the task was taken up since it last made progress.
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("uploaded_at", TIME, nullable=False, server_default=CLOCK),
    sa.Column("started_at", TIME),
    sa.Column("ended_at", TIME),
    sa.UniqueConstraint("company_id", "act", name="job_act"),
    sa.CheckConstraint(
        "state IN ('reading', 'mapping', 'checking', 'checked', 'running', 'done', 'stopped', 'cancelled')",
        name="job_state",
    ),
)
sa.Index("job_of_company", job.c.company_id, job.c.id)
sa.Index("job_uploaded", job.c.uploaded_at)
sa.Index(
    "job_to_do", job.c.id, postgresql_where=sa.text("state = 'reading' OR state = 'checking' OR state = 'running'")
)

# Rejected rows of a job, in parts: those of one batch. kind: of the record, numbered if a mapping has it several times.
reject = sa.Table(
    "reject",
    metadata,
    sa.Column("job_id", sa.BigInteger, sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    # UTF-8 with lone surrogates for bytes that are no text.
    sa.Column("text", sa.LargeBinary, nullable=False),
)
