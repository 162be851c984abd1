"""The SQL statements that show subscriptions to administrators, with what waits, and that create, change and delete."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Integer,
    Text,
    and_,
    exists,
    func,
    literal_column,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Statement, param
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.rules.deliveries import BY_RETRY, DELIVERY_STATES, WAITING
from svc_webhooks.schema import Instant, Uuid, as_list, company
from svc_webhooks.subscriptions.queries.erasure import DELETED
from svc_webhooks.subscriptions.records import EVENTS
from svc_webhooks.tables.deliveries import attempt, delivery
from svc_webhooks.tables.events import event
from svc_webhooks.tables.subscriptions import subscription

_own = subscription.c.id == param("sub_id", BigInteger)


class DetailedSubscription(NamedTuple):
    """A subscription without its secret. active: of the company; null if the replica lacks it. waiting, parked: counts
    of deliveries; next_due_at: of the waiting ones."""

    id: int
    company_id: int
    destination_url: str
    events: Sequence[str]
    health: str
    failures_in_a_row: int
    failing_since: datetime.datetime | None
    created_at: datetime.datetime
    source: str
    created_by: str | None
    secret_prefix: str
    secret_since: datetime.datetime
    paused_at: datetime.datetime | None
    paused_by: str
    pause_reason: str
    property_ids: Sequence[int] | None
    categories: Sequence[str] | None
    priorities: Sequence[str] | None
    active: bool | None
    waiting: int
    next_due_at: datetime.datetime | None
    parked: int


_columns = [
    as_list(subscription.c[name]) if isinstance(subscription.c[name].type, ARRAY) else subscription.c[name]
    for name in DetailedSubscription._fields
    if name in subscription.c
]
_of_it = delivery.c.subscription_id == subscription.c.id
# One range of a partial index each, which holds nothing else.
_waiting = (
    select(func.count().label("waiting"), func.min(delivery.c.due_at).label("next_due_at"))
    .where(_of_it, text("delivery.state = 'waiting'"))
    .lateral("waiting")
)
_parked = select(func.count().label("parked")).where(_of_it, text("delivery.state = 'parked'")).lateral("parked")
_detailed = (
    select(*_columns, company.c.active, _waiting.c.waiting, _waiting.c.next_due_at, _parked.c.parked)
    .select_from(subscription.join(_waiting, true()).join(_parked, true()))
    .outerjoin(company, company.c.id == subscription.c.company_id)
)
DETAILS = Query(DetailedSubscription, _detailed.where(_own))
DETAILS_PAGE = Query(
    DetailedSubscription,
    _detailed.where(
        subscription.c.company_id == param("company_id", BigInteger), subscription.c.id > param("after_id", BigInteger)
    )
    .order_by(subscription.c.id)
    .limit(param("rows", Integer)),
)


async def details(database: Database, sub_id: int) -> DetailedSubscription | None:
    async with database.transaction(BY_INDEX, writes=False) as connection:
        return await DETAILS.row(connection, sub_id=sub_id)


async def details_page(database: Database, company_id: int, after_id: int, rows: int) -> list[DetailedSubscription]:
    """Ascending by id."""
    async with database.transaction(BY_INDEX, writes=False) as connection:
        return await DETAILS_PAGE.rows(connection, company_id=company_id, after_id=after_id, rows=rows)


# Changes

_names = (
    "id", "company_id", "destination_url", "events", "health", "secret_prefix", "secret_key_id", "secret_sealed",
    "secret_since", "created_at", "created_by", "source",
)  # fmt: skip
_INSERT = Statement(insert(subscription).values({name: param(name, subscription.c[name].type) for name in _names}))


async def subscription_inserted(connection: Connection, values: Mapping[Any, Any]) -> None:
    await connection.execute(_INSERT, **{column.name: value for column, value in values.items()})


class ChangeableSubscription(NamedTuple):
    """The fields that an administrator changes."""

    destination_url: str
    events: Sequence[str]


_CHANGEABLE = Query(
    ChangeableSubscription, select(subscription.c.destination_url, EVENTS).where(_own).with_for_update(key_share=True)
)
_CHANGE = Statement(
    update(subscription)
    .where(_own)
    .values(destination_url=param("destination_url", Text), events=param("events", ARRAY(Text)))
)


async def changeable_for_update(connection: Connection, sub_id: int) -> ChangeableSubscription | None:
    return await _CHANGEABLE.row(connection, sub_id=sub_id)


async def subscription_changed(connection: Connection, sub_id: int, after: ChangeableSubscription) -> None:
    await connection.execute(_CHANGE, sub_id=sub_id, destination_url=after.destination_url, events=list(after.events))


class History(NamedTuple):
    """The deliveries of a subscription, and those of them that wait or are parked."""

    deliveries: int
    undelivered: int


_its = delivery.c.subscription_id == param("sub_id", BigInteger)
HISTORY = Query(
    History,
    select(
        select(func.count()).select_from(delivery).where(_its).scalar_subquery().label("deliveries"),
        (
            select(func.count()).select_from(delivery).where(_its, text("state = 'waiting'")).scalar_subquery()
            + select(func.count()).select_from(delivery).where(_its, text("state = 'parked'")).scalar_subquery()
        ).label("undelivered"),
    ),
)


async def subscription_removed(connection: Connection, company_id: int, sub_id: int) -> bool:
    """As `subscription_deleted`, in the caller's transaction."""
    return await connection.value(DELETED, company_id=company_id, sub_id=sub_id) is not None


async def history(database: Database, sub_id: int) -> History:
    async with database.transaction(BY_INDEX, writes=False) as connection:
        row = await HISTORY.row(connection, sub_id=sub_id)
    assert row is not None
    return row


class CountedDeliveries(NamedTuple):
    """Deliveries, and the oldest and the newest event of them; null if there are none."""

    deliveries: int
    first_event_id: str | None
    last_event_id: str | None


def _counting(state: str | None, *, has_key: bool) -> Query[CountedDeliveries]:
    # PostgreSQL 17 has no min() of a uuid; their texts are in the same order.
    event_id = delivery.c.event_id.cast(Text)
    statement = select(
        func.count().label("deliveries"),
        func.min(event_id).label("first_event_id"),
        func.max(event_id).label("last_event_id"),
    )
    # The index of what waits is not by event. With a plain range of ids the planner prefers the one of all deliveries.
    place = func.coalesce(delivery.c.event_id, delivery.c.event_id) if state == WAITING else delivery.c.event_id
    statement = statement.where(_its, place >= param("since", Uuid), place < param("before", Uuid))
    if state is not None:  # as a literal, which a partial index can serve
        statement = statement.where(text(f"delivery.state = '{state}'"))
    if has_key:
        statement = statement.where(
            exists().where(event.c.event_id == delivery.c.event_id, event.c.event == param("event", Text))
        )
    return Query(CountedDeliveries, statement)


COUNTS = {
    (state, has_key): _counting(state, has_key=has_key)
    for state in (None, *DELIVERY_STATES)
    for has_key in (False, True)
}


async def deliveries_counted(
    database: Database, sub_id: int, state: str | None, key: str | None, since: uuid.UUID, before: uuid.UUID
) -> CountedDeliveries:
    """Of events from `since` on and before `before`, in the state and with the key unless null."""
    values = {"event": key} if key else {}
    async with database.transaction(BY_INDEX, writes=False) as connection:
        row = await COUNTS[state, key is not None].row(connection, sub_id=sub_id, since=since, before=before, **values)
    assert row is not None
    return row


class RetriedAttempts(NamedTuple):
    """Attempts of retries."""

    succeeded: int
    failed: int


RETRIED = Query(
    RetriedAttempts,
    select(
        func.count().filter(attempt.c.error == text("''")).label("succeeded"),
        func.count().filter(attempt.c.error != text("''")).label("failed"),
    ).where(
        attempt.c.subscription_id == param("sub_id", BigInteger),
        attempt.c.started_at >= param("since", Instant),
        text(f"attempt.cause = '{BY_RETRY}'"),
    ),
)
RETRIES_WAITING = Statement(
    select(func.count()).where(
        _its,
        text("delivery.state = 'waiting'"),
        delivery.c.due_at <= param("due_by", Instant),
        delivery.c.requested_by.is_not(None),
    ),
)


async def retries(
    database: Database, sub_id: int, since: datetime.datetime, due_by: datetime.datetime
) -> tuple[RetriedAttempts, int]:
    """The attempts of retries since an instant, and the deliveries that wait for theirs and are due by another."""
    async with database.transaction(BY_INDEX, writes=False) as connection:
        # What waits is counted first: an attempt that is recorded meanwhile counts twice rather than not at all.
        waiting = await connection.value(RETRIES_WAITING, sub_id=sub_id, due_by=due_by)
        attempts = await RETRIED.row(connection, sub_id=sub_id, since=since)
    assert attempts is not None
    return attempts, waiting


# Statistics


class StepCounts(NamedTuple):
    """Attempts of a step, or of all if `began_at` is null. median, p95: milliseconds to the first byte."""

    began_at: datetime.datetime | None
    succeeded: int
    failed: int
    median: int | None
    p95: int | None


class AnswerCounts(NamedTuple):
    """Attempts that ended alike."""

    status: int | None
    error: str
    attempts: int


_of_period = and_(
    attempt.c.subscription_id == param("sub_id", BigInteger),
    attempt.c.started_at >= param("since", Instant),
    attempt.c.started_at < param("until", Instant),
    text("attempt.cause <> 'test'"),
)
# The steps begin at midnight UTC.
_began_at = func.date_trunc(param("step", Text), attempt.c.started_at, text("'UTC'"), type_=Instant)
_step = select(
    _began_at.label("began_at"), attempt.c.error, attempt.c.first_byte_milliseconds
).where(_of_period).subquery("step")  # fmt: skip
_first_byte = _step.c.first_byte_milliseconds


def _percentile(part: str, name: str):  # type: ignore[no-untyped-def]
    return func.percentile_disc(literal_column(part), type_=Integer).within_group(_first_byte).label(name)


STATS = Query(
    StepCounts,
    select(
        _step.c.began_at,
        func.count().filter(_step.c.error == text("''")).label("succeeded"),
        func.count().filter(_step.c.error != text("''")).label("failed"),
        _percentile("0.5", "median"),
        _percentile("0.95", "p95"),
    ).group_by(func.grouping_sets(_step.c.began_at, text("()"))),
)
ANSWERS = Query(
    AnswerCounts,
    select(attempt.c.status, attempt.c.error, func.count().label("attempts"))
    .where(_of_period)
    .group_by(attempt.c.status, attempt.c.error)
    .order_by(func.count().desc(), attempt.c.error, attempt.c.status)
    .limit(param("rows", Integer)),
)
# They sort and hash what the index has found; a whole partition is never read.
NO_SCAN = "SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan"


async def stats(
    database: Database, sub_id: int, step: str, since: datetime.datetime, until: datetime.datetime, answers: int
) -> tuple[list[StepCounts], list[AnswerCounts]]:
    """The steps that have attempts, and all of them together; and the most frequent answers."""
    async with database.transaction(NO_SCAN, writes=False) as connection:
        steps = await STATS.rows(connection, sub_id=sub_id, step=step, since=since, until=until)
        return steps, await ANSWERS.rows(connection, sub_id=sub_id, since=since, until=until, rows=answers)
