"""The tables of events, which are partitioned by day (see schema.py), and of their order in a company's feed."""

from __future__ import annotations

import sqlalchemy.event
from sqlalchemy import (
    DDL,
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

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
    # W3C traceparent of the work that caused it; null for events that a release before 0.3.0 published or stored.
    Column("traceparent", Text),
    # The envelope: exactly the bytes that every attempt sends.
    Column("body", LargeBinary, nullable=False),
    Column("stored_at", Instant, nullable=False, server_default=text("clock_timestamp()")),
    postgresql_partition_by=BY_EVENT_ID,
)
# For administrators, newest first: the events with a key, about a record, and of a request.
Index("event_of_kind", event.c.company_id, event.c.event, event.c.event_id)
Index("event_of_record", event.c.company_id, event.c.entity_id, event.c.event_id)
Index(
    "event_of_request",
    event.c.company_id,
    event.c.request_id,
    event.c.event_id,
    postgresql_where=text("request_id <> ''"),
)

# A company's feed: its events are numbered 1, 2, 3 and so on in the order in which they were stored. The transaction
# that stores events holds the row until its end, so numbers become visible in their order. The trigger `event_is_fed`
# on `event` numbers them, whichever release stores them (migration 0005).
feed = Table(
    "feed",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    # The newest event's number, and when it was stored: never earlier than the one before.
    Column("position", BigInteger, nullable=False),
    Column("stored_at", Instant, nullable=False),
    # Up to which number the events are deleted, and the last of these.
    Column("begins_after", BigInteger, nullable=False, server_default=text("0")),
    Column("begins_after_event_id", Uuid, server_default=text("NULL")),
    CheckConstraint("0 <= begins_after AND begins_after <= position", name="feed_begins_after"),
)
# Not partitioned by day: a reader goes by number, from one day to the next. Retention deletes the oldest numbers.
feed_entry = Table(
    "feed_entry",
    metadata,
    Column("company_id", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("stored_at", Instant, nullable=False),
    Column("event_id", Uuid, nullable=False),
    Column("event", Text, nullable=False),
    Column("entity_id", BigInteger, nullable=False),
    # The envelope of an event that was stored after the day of its id: that day is dropped before the entry.
    Column("body", LargeBinary),
    PrimaryKeyConstraint("company_id", "position"),
)
Index("feed_entry_of_kind", feed_entry.c.company_id, feed_entry.c.event, feed_entry.c.position)
Index("feed_entry_of_record", feed_entry.c.company_id, feed_entry.c.entity_id, feed_entry.c.position)

# Companies in the order of their ids, so that two transactions never wait for each other in turn. The instant is that
# of the company's clock, taken under the row's lock, so it never goes back. A test is no event of the company's.
_AHEAD = "coalesce((SELECT c.clock_offset FROM company c WHERE c.id = {}.company_id), '0')"
_FEED_EVENTS = f"""CREATE FUNCTION feed_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH added AS (
        SELECT company_id, event_id, event, entity_id, body,
               row_number() OVER (PARTITION BY company_id ORDER BY event_id) AS number,
               count(*) OVER (PARTITION BY company_id) AS numbers
        FROM stored WHERE event <> 'webhook.test'
    ), counted AS (
        INSERT INTO feed AS f (company_id, position, stored_at)
        SELECT company_id, count(*), clock_timestamp() + {_AHEAD.format("added")}
        FROM added GROUP BY company_id ORDER BY company_id
        ON CONFLICT (company_id) DO UPDATE
        SET position = f.position + excluded.position,
            stored_at = greatest(f.stored_at, clock_timestamp() + {_AHEAD.format("excluded")})
        RETURNING f.company_id, f.position, f.stored_at
    )
    INSERT INTO feed_entry (company_id, position, stored_at, event_id, event, entity_id, body)
    SELECT a.company_id, c.position - a.numbers + a.number, c.stored_at, a.event_id, a.event, a.entity_id,
           CASE WHEN a.event_id < (
               lpad(to_hex((extract(epoch FROM date_trunc('day', c.stored_at, 'UTC')) * 1000)::bigint), 12, '0')
               || repeat('0', 20)
           )::uuid THEN a.body END
    FROM added a JOIN counted c USING (company_id);
    RETURN NULL;
END $$"""  # noqa: S608 - of constants
_EVENT_IS_FED = """CREATE TRIGGER event_is_fed AFTER INSERT ON event REFERENCING NEW TABLE AS stored
FOR EACH STATEMENT EXECUTE FUNCTION feed_events()"""
for statement in (_FEED_EVENTS, _EVENT_IS_FED):
    sqlalchemy.event.listen(metadata, "after_create", DDL(statement))  # type: ignore[no-untyped-call]
