"""The SQL about days of events: their tables, the database's clock, and what is about to go."""

from __future__ import annotations

import datetime
import uuid

from sqlalchemy import func, select, text

from chassis.db.database import Database
from chassis.db.partitions import DayTables
from chassis.db.statements import Statement, param
from svc_webhooks.days import day_of, first_id
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.schema import PARTITIONED, Uuid
from svc_webhooks.tables.deliveries import delivery

DAYS = DayTables(PARTITIONED, "event_id", lambda day: str(first_id(day)), lambda bound: day_of(uuid.UUID(bound)))
_CLOCK = Statement(select(func.now()))
_soon = delivery.c.event_id < param("before", Uuid)
# The states are literals, so that the partial indexes serve.
_UNDELIVERED = Statement(
    select(
        *(
            select(func.count())
            .select_from(delivery)
            .where(_soon, text(f"delivery.state = '{state}'"))
            .scalar_subquery()
            .label(state)
            for state in (rules.WAITING, rules.PARKED)
        )
    )
)


async def clock(database: Database) -> datetime.datetime:
    now: datetime.datetime = await database.value(_CLOCK)
    return now


async def undelivered_before(database: Database, before: uuid.UUID) -> dict[str, int]:
    """The number of waiting and parked deliveries of events before `before`, by state."""
    row = await database.row(_UNDELIVERED, before=before)
    return dict(row or {})
