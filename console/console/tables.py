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
    # Whether the state is that of undoing the import: its check, or the undo itself, whose outcome is `undo`, as JSON.
    sa.Column("undoes", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("undo", sa.Text, nullable=False, server_default="{}"),
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

# A list with filters that a person has saved under a name.
saved_view = sa.Table(
    "saved_view",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("company_id", sa.BigInteger, nullable=False),
    # As in the audit log, "administrator:7" or "staff:7".
    sa.Column("person", sa.Text, nullable=False),
    # The token of the form that saved it: a form that is sent twice saves one view.
    sa.Column("act", sa.Text, nullable=False),
    # The list's path in pages.py, and what its address has after "?".
    sa.Column("list", sa.Text, nullable=False),
    sa.Column("query", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("is_shared", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.UniqueConstraint("company_id", "act", name="saved_view_act"),
    sa.UniqueConstraint("company_id", "list", "person", "name", name="saved_view_name"),
)

# The view with which a list opens for a person: their own one, or one that is shared.
default_view = sa.Table(
    "default_view",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True),
    sa.Column("person", sa.Text, primary_key=True),
    sa.Column("list", sa.Text, primary_key=True),
    sa.Column("view_id", sa.BigInteger, sa.ForeignKey("saved_view.id", ondelete="CASCADE"), nullable=False),
)
sa.Index("default_view_of", default_view.c.view_id)

# A company whose first steps the first page shows no more: all are done, or an administrator has dismissed them.
first_steps = sa.Table(
    "first_steps",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("ended_at", TIME, nullable=False, server_default=CLOCK),
)

# What a person did to several records at once, for a day: Undo reads here what the records were before.
bulk_act = sa.Table(
    "bulk_act",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("company_id", sa.BigInteger, nullable=False),
    sa.Column("person", sa.Text, nullable=False),
    # The token of the form: each record's write has a key derived from it.
    sa.Column("act", sa.Text, nullable=False),
    # Its path in pages.py, and its name there: "/tickets/bulk", "assign".
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    # The changed fields of each record before and after it, as JSON; `after` is {} until all writes are over.
    sa.Column("before", sa.Text, nullable=False),
    sa.Column("after", sa.Text, nullable=False, server_default="{}"),
    sa.Column("began_at", TIME, nullable=False, server_default=CLOCK),
    sa.Column("ended_at", TIME),
    sa.Column("undone_at", TIME),
    sa.UniqueConstraint("company_id", "act", name="bulk_act_act"),
)
sa.Index("bulk_act_began", bulk_act.c.began_at)

# From where a person's act came, by the request's id, which its entries in the audit logs have. For a year.
act_address = sa.Table(
    "act_address",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("request_id", sa.Text, primary_key=True),
    sa.Column("address", sa.Text, primary_key=True),
    sa.Column("acted_at", TIME, nullable=False, server_default=CLOCK),
)
sa.Index("act_address_acted", act_address.c.acted_at)
