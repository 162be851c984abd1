"""A company as other contexts keep it."""

from __future__ import annotations

import datetime

from asyncpg import Record

from chassis.messaging.outbox import Outbox, OutboxEvent
from makeready.events.v1.events_pb2 import CompanyReference, References


def company_reference(outbox: Outbox, row: Record, occurred_at: datetime.datetime, request_id: str = "") -> OutboxEvent:
    """The event with a row of the companies, for their replicas."""
    reference = CompanyReference(
        id=row["id"],
        version=row["version"],
        name=row["name"],
        active=row["active"],
        timezone=row["timezone"],
        is_sandbox=row["is_sandbox"],
        ended=row["ended_at"] is not None,
    )
    reference.clock_offset.FromTimedelta(row["clock_offset"])
    return outbox.references(
        References(companies=[reference]), company_id=row["id"], occurred_at=occurred_at, request_id=request_id
    )
