"""The tables of the request log. The rows name keys without a foreign key, which would lock the keys' rows.

`request` is partitioned by day: its ids are microseconds since 1970 of the instant of storing, each taken once.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)

from chassis.db.belonging import to_no_company
from gateway.identity.schema import metadata

WRITTEN = "method <> ALL (ARRAY['GET', 'HEAD']) AND status < 400"
"""Writes that succeeded."""

request = Table(
    "request",
    metadata,
    Column("id", BigInteger, nullable=False),
    Column("company_id", BigInteger, nullable=False),
    Column("api_key_id", BigInteger, nullable=False),
    Column("requested_at", DateTime(timezone=True), nullable=False),
    Column("request_id", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("route", Text, nullable=False),
    Column("status", SmallInteger, nullable=False),
    # Of the error envelope; empty if there is none.
    Column("code", Text, nullable=False),
    # The fields by which nobody filters: `records.Details` as JSON, which costs less than a column each.
    Column("details", Text, nullable=False),
    # In sandboxes alone, redacted by the contract's schema; null: none was sent, or none is stored.
    Column("request_body", Text),
    Column("response_body", Text),
    PrimaryKeyConstraint("company_id", "id"),
    postgresql_partition_by="RANGE (id)",
)
Index("request_of_key", request.c.company_id, request.c.api_key_id, request.c.id)
Index("request_refused", request.c.company_id, request.c.id, postgresql_where=text("status >= 400"))
Index("request_written", request.c.company_id, request.c.id, postgresql_where=text(WRITTEN))
Index("request_request_id", request.c.request_id)

# One row, whose lock the gateways' stores take in turn: ids become visible in their order.
request_end = Table(
    "request_end",
    metadata,
    Column("is_only", Boolean, primary_key=True),
    # The last id.
    Column("id", BigInteger, nullable=False),
    CheckConstraint("is_only", name="request_end_is_only"),
    info=to_no_company("one row about the table"),
)
