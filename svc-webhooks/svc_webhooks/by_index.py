"""What keeps PostgreSQL's planner to the indexes of deliveries, whatever its statistics say."""

from __future__ import annotations

from sqlalchemy import ColumnElement, FromClause, Table, and_, tuple_

# Rows become due, and cease to be, by the million between two looks that statistics take, and there is a partition for
# each of thirty-odd days, the newest of them empty when a statement is planned: left to choose, the planner reads whole
# partitions and plans for longer than it runs (a claim of 16 rows took 4.8 ms of CPU instead of 1.0). All that these
# statements meet is found by an index, a row at a time, and what is due in the order of `delivery_due`. That index is
# for those alone: the state stands as a literal where it may serve, and as a parameter where another one finds the row.
BY_INDEX = (
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off;"
    " SET LOCAL enable_mergejoin = off; SET LOCAL plan_cache_mode = force_generic_plan"
)


def same_delivery(row: Table, key: FromClause) -> ColumnElement[bool]:
    """The delivery of a key, found in its own partition by either index that holds both its columns.

    An equation would let the planner read all deliveries and look for their keys, which it took for cheaper where
    statistics knew few of them: a claim of 256 met a million. A range of one has no such second side.
    """
    event_id, subscription_id = row.c.event_id, row.c.subscription_id
    by_event = tuple_(event_id, subscription_id), tuple_(key.c.event_id, key.c.subscription_id)
    by_subscription = tuple_(subscription_id, event_id), tuple_(key.c.subscription_id, key.c.event_id)
    ranges = ((event_id, key.c.event_id), by_event, by_subscription)
    return and_(*(left >= right for left, right in ranges), *(left <= right for left, right in ranges))
