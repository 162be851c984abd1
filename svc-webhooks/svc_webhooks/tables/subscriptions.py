"""Tables of subscriptions. Constraints enforce the rules."""

from __future__ import annotations

import sqlalchemy
from sqlalchemy import (
    DDL,
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    Sequence,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.belonging import to_no_company
from svc_webhooks.rules import filters
from svc_webhooks.rules import subscriptions as rules
from svc_webhooks.schema import Instant, listed, metadata

subscription_id = Sequence("subscription_id", metadata=metadata, data_type=BigInteger)

subscription = Table(
    "subscription",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("company_id", BigInteger, nullable=False),
    Column("destination_url", Text, nullable=False),
    Column("events", ARRAY(Text), nullable=False),
    Column("health", Text, nullable=False, server_default=text("'healthy'")),
    Column("failures_in_a_row", Integer, nullable=False, server_default=text("0")),
    # When the first of these failures was recorded. Null where it is not known, as before this column was there.
    Column("failing_since", Instant, server_default=text("NULL")),
    # See SubscriptionHealth.
    Column("failed_sweeps", ARRAY(Instant), nullable=False, server_default=text("'{}'")),
    Column("delivering_sweep", Instant, server_default=text("NULL")),
    Column("paused_at", Instant, server_default=text("NULL")),
    Column("paused_by", Text, nullable=False, server_default=text("''")),
    Column("pause_reason", Text, nullable=False, server_default=text("''")),
    Column("secret_prefix", Text, nullable=False),
    # The id of the vault's key that sealed the secret, for key rotation. The database never holds the key itself.
    Column("secret_key_id", Text, nullable=False),
    Column("secret_sealed", LargeBinary, nullable=False),
    Column("secret_since", Instant, nullable=False, server_default=text("clock_timestamp()")),
    Column("created_at", Instant, nullable=False),
    # As `Identity.actor` spells it. Null where it is not known, as before this column was there.
    Column("created_by", Text),
    Column("source", Text, nullable=False),
    # Its filter: null where it has none. See `passes`.
    Column("property_ids", ARRAY(BigInteger), server_default=text("NULL")),
    Column("categories", ARRAY(Text), server_default=text("NULL")),
    Column("priorities", ARRAY(Text), server_default=text("NULL")),
    CheckConstraint(f"health IN ({listed(rules.HEALTHS)})", name="subscription_health"),
    CheckConstraint(f"source IN ({listed(rules.SOURCES)})", name="subscription_source"),
    CheckConstraint(f"cardinality(events) > 0 AND events <@ ARRAY[{listed(rules.EVENTS)}]", name="subscription_events"),
    CheckConstraint("cardinality(property_ids) > 0", name="subscription_property_ids"),
    CheckConstraint(
        f"cardinality(categories) > 0 AND categories <@ ARRAY[{listed(filters.CATEGORIES)}]",
        name="subscription_categories",
    ),
    CheckConstraint(
        f"cardinality(priorities) > 0 AND priorities <@ ARRAY[{listed(filters.PRIORITIES)}]",
        name="subscription_priorities",
    ),
    CheckConstraint("(health = 'paused') = (paused_at IS NOT NULL)", name="subscription_paused_at"),
    CheckConstraint(
        "(failures_in_a_row = 0) = (health IN ('healthy', 'paused'))", name="subscription_failures_in_a_row"
    ),
)
Index("subscription_page", subscription.c.company_id, subscription.c.id)

HAS_FILTER = "num_nonnulls({subscription}.property_ids, {subscription}.categories, {subscription}.priorities) > 0"
_PASSES = """CASE WHEN {has_filter} THEN
    coalesce(CAST({record} #>> '{{property,id}}' AS bigint) = ANY({subscription}.property_ids), true)
    AND (NOT starts_with({event}.event, 'ticket.')
        OR coalesce({record} ->> 'category' = ANY({subscription}.categories), true)
        AND coalesce({record} ->> 'priority' = ANY({subscription}.priorities), true))
ELSE true END"""


def passes(subscription: str, event: str) -> str:
    """The SQL condition that an event passes a subscription's filter: the aliases of both, the event with its body.

    An event without a property's id passes `property_ids`; `categories` and `priorities` are about tickets alone. The
    body is read only if there is a filter.
    """
    return _PASSES.format(
        has_filter=HAS_FILTER.format(subscription=subscription),
        # PostgreSQL reads no JSON with an escaped NUL; the filter needs no text that could hold one.
        record=rf"(CAST(replace(convert_from({event}.body, 'UTF8'), '\u0000', '\u0001') AS json) -> 'data')",
        subscription=subscription,
        event=event,
    )


# A success, a pause and a resume end the row of failed sweeps, those of the release before too, which knows none.
_END_FAILED_SWEEPS = """CREATE FUNCTION end_failed_sweeps() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.failed_sweeps := '{}';
    RETURN NEW;
END $$"""
_FAILED_SWEEPS_END = """CREATE TRIGGER failed_sweeps_end BEFORE UPDATE ON subscription FOR EACH ROW
WHEN (NEW.failures_in_a_row = 0 AND NEW.failed_sweeps <> '{}') EXECUTE FUNCTION end_failed_sweeps()"""
for statement in (_END_FAILED_SWEEPS, _FAILED_SWEEPS_END):
    sqlalchemy.event.listen(metadata, "after_create", DDL(statement))  # type: ignore[no-untyped-call]

# Deleted subscriptions whose deliveries and attempts are still being deleted.
erasure = Table(
    "erasure",
    metadata,
    Column("subscription_id", BigInteger, primary_key=True, autoincrement=False),
    Column("asked_at", Instant, nullable=False, server_default=text("clock_timestamp()")),
    info=to_no_company("ids of deleted subscriptions; each goes with its history"),
)
