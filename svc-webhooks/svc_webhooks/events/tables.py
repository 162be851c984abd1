"""The table of events, partitioned by day: see schema.py."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, Table, Text, text

from svc_webhooks.schema import BY_EVENT_ID, Instant, Uuid, metadata

event = Table(
    "event",
    metadata,
    Column("event_id", Uuid, primary_key=True),
    Column("company_id", BigInteger, nullable=False),
    Column("event", Text, nullable=False),
    Column("entity_id", BigInteger, nullable=False),
    Column("occurred_at", Instant, nullable=False),
    # The id of the request that caused the event; empty if none did.
    Column("request_id", Text, nullable=False),
    # The envelope: exactly the bytes that every attempt sends.
    Column("body", LargeBinary, nullable=False),
    Column("stored_at", Instant, nullable=False, server_default=text("clock_timestamp()")),
    postgresql_partition_by=BY_EVENT_ID,
)
