"""The table of notes. A note holds nothing of a request: neither its key nor its body."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, Index, Integer, LargeBinary, Table, Text

from chassis.db.belonging import to_no_company
from gateway.identity.schema import metadata

note = Table(
    "idempotency_note",
    metadata,
    # Of the API key's id and the Idempotency-Key.
    Column("digest", LargeBinary, primary_key=True),
    Column("service", Text, nullable=False),
    # Requests that were sent to the service and not refused.
    Column("requests", Integer, nullable=False),
    # Until then, one of them may be under way.
    Column("leased_until", DateTime(timezone=True), nullable=False),
    info=to_no_company("digests of keys of writes, which expire"),
)
Index("idempotency_note_leased_until", note.c.leased_until)
