"""Tables of deliveries and their attempts, partitioned by day: see schema.py. Constraints enforce the rules."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    Interval,
    LargeBinary,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.belonging import through, to_no_company
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.schema import BY_EVENT_ID, Instant, Uuid, listed, metadata

delivery = Table(
    "delivery",
    metadata,
    Column("event_id", Uuid, nullable=False),
    # No foreign key: the fan-out, which locks the subscription's row, and `erasure` maintain the reference.
    Column("subscription_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False, server_default=text("'waiting'")),
    Column("due_at", Instant),
    # attempts: all that were made. rung: those that were steps of the ladder; internal faults are not.
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("rung", SmallInteger, nullable=False, server_default=text("0")),
    # Every claim increments it, so a sender whose claim ran out can't record over the next one.
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("leased_until", Instant),
    Column("settled_at", Instant),
    # Who requested that a parked delivery waits again, until its next attempt is recorded.
    Column("requested_by", Text),
    # The replay for which it waits, until its attempt is recorded; and when its ladder goes on if that attempt fails:
    # null if it is then parked.
    Column("replay_id", BigInteger),
    Column("resumes_at", Instant),
    PrimaryKeyConstraint("event_id", "subscription_id"),
    CheckConstraint(f"state IN ({listed(rules.DELIVERY_STATES)})", name="delivery_state"),
    CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="delivery_due_at"),
    CheckConstraint("(state = 'waiting') = (settled_at IS NULL)", name="delivery_settled_at"),
    CheckConstraint("state <> 'parked' OR leased_until IS NULL", name="delivery_leased_until"),
    CheckConstraint("0 <= rung AND rung <= attempts", name="delivery_rung"),
    postgresql_partition_by=BY_EVENT_ID,
    info=through("event_id", "event.event_id"),
)
Index(
    "delivery_due",
    delivery.c.subscription_id,
    delivery.c.due_at,
    postgresql_where=text("state = 'waiting'"),
)
Index("delivery_of_subscription", delivery.c.subscription_id, delivery.c.event_id)
Index(
    "delivery_parked",
    delivery.c.subscription_id,
    delivery.c.event_id,
    postgresql_where=text("state = 'parked'"),
)

attempt = Table(
    "attempt",
    metadata,
    Column("event_id", Uuid, nullable=False),
    Column("subscription_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("cause", Text, nullable=False, server_default=text("'sweep'")),
    # Who requested it, as `Identity.actor` spells it; empty if the ladder did.
    Column("actor", Text, nullable=False, server_default=text("''")),
    Column("started_at", Instant, nullable=False),
    # duration: of the whole attempt. connect: until the connection stood. tls: from then until TLS was agreed upon.
    # Both are null for a reused connection. first_byte: from the start to the first byte of the response.
    Column("duration_milliseconds", Integer, nullable=False),
    Column("connect_milliseconds", Integer),
    Column("tls_milliseconds", Integer),
    Column("first_byte_milliseconds", Integer),
    # The dialled address; null if no address was dialled.
    Column("address", Text),
    Column("status", SmallInteger),
    Column("error", Text, nullable=False),
    Column("response_excerpt", LargeBinary, nullable=False),
    # The replay that it was made for.
    Column("replay_id", BigInteger),
    # How far its sandbox's clock was ahead of the real one, which the signature has; null for a live company.
    Column("clock_offset", Interval),
    # The delivery's state and due time after this attempt.
    Column("state", Text, nullable=False),
    Column("due_at", Instant),
    PrimaryKeyConstraint("event_id", "subscription_id", "number"),
    CheckConstraint(f"cause IN ({listed(rules.ATTEMPT_CAUSES)})", name="attempt_cause"),
    CheckConstraint(f"state IN ({listed(rules.DELIVERY_STATES)})", name="attempt_state"),
    CheckConstraint("(state = 'waiting') = (due_at IS NOT NULL)", name="attempt_due_at"),
    CheckConstraint("number > 0", name="attempt_number"),
    # A 2xx status alone is no success: a response that never ends is a timeout.
    CheckConstraint("error <> '' OR (status IS NOT NULL AND status BETWEEN 200 AND 299)", name="attempt_succeeded"),
    postgresql_partition_by=BY_EVENT_ID,
    info=through("event_id", "event.event_id"),
)

# For statistics: the attempts of a period, whatever the days of their events.
Index("attempt_of_subscription", attempt.c.subscription_id, attempt.c.started_at)

# Host names and addresses that have answered 2xx, ever: those that have not may not want any deliveries. Never deleted.
answered_receiver = Table(
    "answered_receiver",
    metadata,
    Column("receiver", Text, primary_key=True),
    Column("answered_at", Instant, nullable=False, server_default=text("clock_timestamp()")),
    info=to_no_company("hosts, which companies share"),
)

replay_id = Sequence("replay_id", metadata=metadata, data_type=BigInteger)

# Requests to send the events of a period to a subscription again. Deleted 30 days after they have finished.
replay = Table(
    "replay",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("company_id", BigInteger, nullable=False),
    Column("subscription_id", BigInteger, nullable=False),
    Column("since", Instant, nullable=False),
    Column("until", Instant, nullable=False),
    Column("events", ARRAY(Text), nullable=False),
    # Of which deliveries: see ReplayState.
    Column("state", Text, nullable=False),
    # The numbers of the feed that are to be queued, exclusive and inclusive; the first one advances.
    Column("after_position", BigInteger, nullable=False),
    Column("until_position", BigInteger, nullable=False),
    # The deliveries that it was about when it was requested, and those that have been queued.
    Column("matched", BigInteger, nullable=False),
    Column("queued", BigInteger, nullable=False, server_default=text("0")),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    # When all were attempted, with what became of them.
    Column("finished_at", Instant, server_default=text("NULL")),
    Column("succeeded", BigInteger, nullable=False, server_default=text("0")),
    Column("failed", BigInteger, nullable=False, server_default=text("0")),
    CheckConstraint(f"state IN ({listed(rules.REPLAY_STATES)})", name="replay_state"),
)
# At most one of a subscription is under way.
Index("replay_under_way", replay.c.subscription_id, unique=True, postgresql_where=text("finished_at IS NULL"))
Index("replay_finished", replay.c.finished_at)
