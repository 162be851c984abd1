"""The schema of this context's tables: platform tables, replicas, column types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, DateTime, MetaData, type_coerce
from sqlalchemy.dialects.postgresql import UUID
from sqlalchemy.types import NullType

from chassis.messaging.consumer import inbox_table
from chassis.replicas.tables import company_replica
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger

Uuid = UUID(as_uuid=True)
Instant = DateTime(timezone=True)

# `event`, `delivery` and `attempt` are partitioned by event id, whose first bits are the time when it was made, so
# retention drops partitions instead of deleting rows, `delivery` first, so that a claim never reads a delivery without
# its event. events/partitions.py makes the partitions. There are no foreign keys among the three, or to `subscription`:
# they would prevent dropping partitions.
PARTITIONED = ("delivery", "attempt", "event")
BY_EVENT_ID = "RANGE (event_id)"

metadata = MetaData()

idempotency = ledger(metadata)
audit = audit_table(metadata)
inbox = inbox_table(metadata)

# The replica of the gateway's companies, by their own ids. A company that has not arrived counts as active.
company = company_replica(metadata)


def as_list(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """An array column as the list that asyncpg returns; with its type SQLAlchemy Core would copy the list."""
    return type_coerce(column, NullType()).label(column.key)


def listed(values: Iterable[str]) -> str:
    """The values as literals, for a check constraint."""
    return ", ".join(f"'{value}'" for value in values)
