"""Makes PostgreSQL's planner use the indexes of deliveries, whatever its statistics say."""

from __future__ import annotations

from sqlalchemy import ColumnElement, FromClause, Table, and_, tuple_

from chassis.db.database import IN_ORDER, ONE_PLAN

# Millions of rows become due and cease to be due between two runs of ANALYZE. Each of thirty-odd days has a partition,
# and the newest one is empty when a statement is planned. Without these settings the planner reads whole partitions and
# plans for longer than it executes (a claim of 16 rows took 4.8 ms of CPU instead of 1.0). These statements find every
# row through an index, one at a time, and due rows in the order of `delivery_due`. Only due rows may use that partial
# index: a statement names the state as a literal where the index may serve, and as a parameter where another index
# finds the row.
BY_INDEX = f"{IN_ORDER}; SET LOCAL plan_cache_mode = {ONE_PLAN}"


def same_delivery(row: Table, key: FromClause) -> ColumnElement[bool]:
    """The delivery with this key, found in its own partition by either index that has both columns.

    With an equation the planner may read all deliveries and look up their keys, which it estimated as cheaper when
    statistics covered few of them: a claim of 256 read a million rows. A range of one value can't be reversed like
    that.
    """
    event_id, subscription_id = row.c.event_id, row.c.subscription_id
    by_event = tuple_(event_id, subscription_id), tuple_(key.c.event_id, key.c.subscription_id)
    by_subscription = tuple_(subscription_id, event_id), tuple_(key.c.subscription_id, key.c.event_id)
    ranges = ((event_id, key.c.event_id), by_event, by_subscription)
    return and_(
        *(columns >= key_columns for columns, key_columns in ranges),
        *(columns <= key_columns for columns, key_columns in ranges),
    )
