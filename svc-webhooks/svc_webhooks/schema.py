"""The schema that all tables of this context belong to: platform tables, replicas, types of columns."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import DateTime, MetaData
from sqlalchemy.dialects.postgresql import UUID

from chassis.messaging.consumer import inbox_table
from chassis.replicas.tables import company_replica
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger

Uuid = UUID(as_uuid=True)
Instant = DateTime(timezone=True)

# `event`, `delivery` and `attempt` are partitioned by event id, whose first bits are the time it was made: retention
# drops partitions instead of deleting rows. Their partitions lie in a schema of their own and are made by
# events/partitions.py; a foreign key among the three, or to `subscription`, would stand in the way of dropping them.
PARTITIONS = "partitions"
PARTITIONED = ("event", "delivery", "attempt")
BY_EVENT_ID = "RANGE (event_id)"

metadata = MetaData()

idempotency = ledger(metadata)
audit = audit_table(metadata)
inbox = inbox_table(metadata)

# A replica: rows of the gateway by their own ids. A company that has not arrived yet counts as active.
company = company_replica(metadata)


def listed(values: Iterable[str]) -> str:
    """The values as literals, for the list of a check constraint."""
    return ", ".join(f"'{value}'" for value in values)
