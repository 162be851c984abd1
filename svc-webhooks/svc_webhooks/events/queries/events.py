"""The SQL that stores events, each with a delivery for every subscription that names it and lets it pass."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, LargeBinary, Text
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection
from chassis.db.rows import columns_of_tuples
from chassis.db.statements import Statement, sql
from svc_webhooks.schema import Instant, Uuid
from svc_webhooks.tables.subscriptions import passes


class StoredEvent(NamedTuple):
    """An event to be stored."""

    event_id: uuid.UUID
    company_id: int
    event: str
    entity_id: int
    occurred_at: datetime.datetime
    request_id: str
    traceparent: str | None
    body: bytes
    due_at: datetime.datetime
    """By the real clock. In a sandbox it is due when it occurred by the sandbox's clock, or now if that lies ahead."""


# KEY SHARE: a subscription can't be deleted between the match and the commit, but its health may change.
_STORE_EVENTS = Statement(
    sql(
        f"""
        WITH offered AS (
            SELECT
                row.*,
                coalesce((SELECT clock_offset FROM company WHERE company.id = row.company_id), '0') AS ahead
            FROM unnest(
                :event_id, :company_id, :event, :entity_id, :occurred_at, :request_id, :traceparent, :body, :due_at
            ) AS row(event_id, company_id, event, entity_id, occurred_at, request_id, traceparent, body, due_at)
        ),
        stored AS (
            INSERT INTO event (
                event_id, company_id, event, entity_id, occurred_at, request_id, traceparent, body, stored_at
            )
            SELECT
                event_id, company_id, event, entity_id, occurred_at, request_id, traceparent, body,
                clock_timestamp() + ahead
            FROM offered
        ),
        matching AS (
            SELECT id, company_id, events, property_ids, categories, priorities FROM subscription
            WHERE company_id IN (SELECT company_id FROM offered)
            FOR KEY SHARE OF subscription
        )
        INSERT INTO delivery (event_id, subscription_id, due_at)
        SELECT
            offered.event_id, matching.id,
            least(date_trunc('second', offered.occurred_at), offered.due_at + offered.ahead)
        FROM offered
        JOIN matching ON matching.company_id = offered.company_id AND offered.event = ANY(matching.events)
        WHERE {passes("matching", "offered")}
        """,  # noqa: S608 - of constants
        event_id=ARRAY(Uuid),
        company_id=ARRAY(BigInteger),
        event=ARRAY(Text),
        entity_id=ARRAY(BigInteger),
        occurred_at=ARRAY(Instant),
        request_id=ARRAY(Text),
        traceparent=ARRAY(Text),
        body=ARRAY(LargeBinary),
        due_at=ARRAY(Instant),
    )
)


async def store_events(connection: Connection, events: Sequence[StoredEvent]) -> None:
    """Inserts events, and a delivery for every subscription of the company that names the event and lets it pass."""
    await connection.execute(_STORE_EVENTS, **columns_of_tuples(events))
