"""The SQL of replays: what a range holds, the batches that make deliveries due, and what became of them."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Integer,
    Text,
    and_,
    case,
    delete,
    func,
    literal_column,
    null,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Selection, Statement, param
from chassis.writes.idempotency import IdempotentInsert
from chassis.writes.resuming import ResumableWrite
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.rules.deliveries import ALL, ONLY_FAILED, ONLY_PARKED
from svc_webhooks.schema import Instant, Uuid, as_list, company, idempotency
from svc_webhooks.subscriptions.records import EVENTS
from svc_webhooks.tables.deliveries import attempt, delivery, replay
from svc_webhooks.tables.events import event, feed_entry
from svc_webhooks.tables.subscriptions import HAS_FILTER, passes, subscription

CREATE_REPLAY = IdempotentInsert(idempotency, replay)
TEST = ResumableWrite(idempotency)

_company = param("company_id", BigInteger)
_sub = param("sub_id", BigInteger)


class Target(NamedTuple):
    """A subscription that a replay or a test is for. active, clock_offset: of its company; null if the replica lacks
    the company. has_filter: whether some events may not pass."""

    company_id: int
    events: Sequence[str]
    health: str
    active: bool | None
    clock_offset: datetime.timedelta | None
    has_filter: bool


_target = (
    select(
        subscription.c.company_id,
        EVENTS,
        subscription.c.health,
        company.c.active,
        company.c.clock_offset,
        literal_column(HAS_FILTER.format(subscription="subscription"), Boolean).label("has_filter"),
    )
    .select_from(subscription.outerjoin(company, company.c.id == subscription.c.company_id))
    .where(subscription.c.id == _sub, subscription.c.company_id == _company)
)
_TARGET = Query(Target, _target)
# So that the subscription is not deleted until its deliveries are there to be deleted with it.
_TARGET_LOCKED = Query(Target, _target.with_for_update(read=True, key_share=True, of=subscription))


async def target(database: Database, company_id: int, sub_id: int) -> Target | None:
    """The company's subscription with that id."""
    return await _TARGET.row(database, company_id=company_id, sub_id=sub_id)


async def target_locked(connection: Connection, company_id: int, sub_id: int) -> Target | None:
    return await _TARGET_LOCKED.row(connection, company_id=company_id, sub_id=sub_id)


# What a range holds

_in_range = and_(
    feed_entry.c.company_id == _company,
    feed_entry.c.position > param("after", BigInteger),
    feed_entry.c.position <= param("until", BigInteger),
    feed_entry.c.event == func.any(param("events", ARRAY(Text))),
)
_its = and_(
    delivery.c.event_id == feed_entry.c.event_id,
    delivery.c.subscription_id == _sub,
)
# As a replay selects them: see `_chosen`.
_of_state = {
    ONLY_PARKED: text("delivery.state = 'parked'"),
    ONLY_FAILED: text("(delivery.state = 'parked' OR delivery.state = 'waiting' AND delivery.attempts > 0)"),
}
_in_reach: Selection = select(literal_column("1").label("one")).select_from(feed_entry).where(_in_range)
COUNT = Statement(select(func.count()).select_from(_in_reach.limit(param("rows", Integer)).subquery("in_reach")))
COUNTS_IN_STATE: dict[str, Statement] = {
    state: Statement(select(func.count()).select_from(feed_entry.join(delivery, _its)).where(_in_range, having))
    for state, having in _of_state.items()
}


async def counted(
    database: Database, company_id: int, events: Sequence[str], after: int, until: int, rows_max: int
) -> int:
    """Events with these keys after one number up to another; more than `rows_max` are not counted."""
    at = {"company_id": company_id, "events": list(events), "after": after, "until": until}
    async with database.transaction(BY_INDEX, writes=False) as connection:
        count: int = await connection.value(COUNT, **at, rows=rows_max + 1)
    return count


async def counted_in_state(
    database: Database, company_id: int, sub_id: int, events: Sequence[str], after: int, until: int, state: str
) -> int:
    """The subscription's deliveries of such events that a replay of `state` is about."""
    at = {"company_id": company_id, "sub_id": sub_id, "events": list(events), "after": after, "until": until}
    async with database.transaction(BY_INDEX, writes=False) as connection:
        count: int = await connection.value(COUNTS_IN_STATE[state], **at)
    return count


# A replay


class Replay(NamedTuple):
    """A row of the table: see tables/deliveries.py."""

    id: int
    company_id: int
    subscription_id: int
    since: datetime.datetime
    until: datetime.datetime
    events: Sequence[str]
    state: str
    after_position: int
    until_position: int
    matched: int
    queued: int
    created_at: datetime.datetime
    created_by: str
    finished_at: datetime.datetime | None
    succeeded: int
    failed: int

    @property
    def is_queued(self) -> bool:
        """Whether all its deliveries have been made due."""
        return self.after_position >= self.until_position


_events = as_list(replay.c.events)
_all = [_events if name == "events" else replay.c[name] for name in Replay._fields]
_id = replay.c.id == param("id", BigInteger)
_OF_SUBSCRIPTION = Query(
    Replay, select(*_all).where(_id, replay.c.subscription_id == _sub, replay.c.company_id == _company)
)
_UNDER_WAY = Query(Replay, select(*_all).where(replay.c.finished_at.is_(None)).order_by(replay.c.id))
_UNDER_WAY_OF = Query(Replay, select(*_all).where(replay.c.finished_at.is_(None), replay.c.subscription_id == _sub))
_TAKEN = Query(Replay, select(*_all).where(_id, replay.c.finished_at.is_(None)).with_for_update(skip_locked=True))


async def replay_of(database: Database, company_id: int, sub_id: int, replay_id: int) -> Replay | None:
    return await _OF_SUBSCRIPTION.row(database, company_id=company_id, sub_id=sub_id, id=replay_id)


async def under_way(database: Database) -> list[Replay]:
    """Of all companies, ascending by id."""
    return await _UNDER_WAY.rows(database)


async def is_under_way(connection: Connection, sub_id: int) -> bool:
    return await _UNDER_WAY_OF.row(connection, sub_id=sub_id) is not None


async def replay_taken(connection: Connection, replay_id: int) -> Replay | None:
    """Locks a replay that is under way; None if another process works on it, or if it has finished."""
    return await _TAKEN.row(connection, id=replay_id)


# A batch


class Entry(NamedTuple):
    """An event of the feed."""

    position: int
    event_id: uuid.UUID
    event: str


_ENTRIES = Query(
    Entry,
    select(feed_entry.c.position, feed_entry.c.event_id, feed_entry.c.event)
    .where(
        feed_entry.c.company_id == _company,
        feed_entry.c.position > param("after", BigInteger),
        feed_entry.c.position <= param("until", BigInteger),
    )
    .order_by(feed_entry.c.position)
    .limit(param("rows", Integer)),
)


class Candidate(NamedTuple):
    """A delivery of the subscription. It `is_chosen` if the replay is about deliveries in its state."""

    event_id: uuid.UUID
    is_chosen: bool


def _chosen() -> ColumnElement[bool]:
    state = param("state", Text)
    return or_(
        state == literal_column(f"'{ALL}'"),
        and_(state == literal_column(f"'{ONLY_PARKED}'"), _of_state[ONLY_PARKED]),
        and_(state == literal_column(f"'{ONLY_FAILED}'"), _of_state[ONLY_FAILED]),
    )


_ids = param("event_ids", ARRAY(Uuid))
_of_ids = and_(
    delivery.c.subscription_id == _sub,
    delivery.c.event_id == func.any(_ids),
    # These limit any plan to the days concerned.
    delivery.c.event_id >= param("first", Uuid),
    delivery.c.event_id <= param("last", Uuid),
)
_is_busy = and_(delivery.c.leased_until.is_not(None), delivery.c.leased_until >= func.now())
_CANDIDATES = Query(Candidate, select(delivery.c.event_id, _chosen().label("is_chosen")).where(_of_ids))
# What another statement changes at this moment is left out, never waited for.
LOCK_FREE = Statement(
    select(delivery.c.event_id).where(_of_ids, ~_is_busy, _chosen()).with_for_update(skip_locked=True)
)
_due = {
    "due_at": param("due_at", Instant),
    "requested_by": param("requested_by", Text),
    "replay_id": param("replay_id", BigInteger),
}
MAKE_DUE = Statement(
    update(delivery)
    .where(_of_ids)
    .values(
        state=text("'waiting'"),
        settled_at=null(),
        resumes_at=case((text("delivery.state = 'waiting'"), delivery.c.due_at), else_=null()),
        **_due,
    )
)
# An event whose day was dropped at this moment has no delivery any more.
_new = select(
    event.c.event_id, _sub.label("subscription_id"), *(value.label(name) for name, value in _due.items())
).where(
    event.c.event_id == func.any(_ids),
    event.c.event_id >= param("first", Uuid),
    event.c.event_id <= param("last", Uuid),
)
ADD = Statement(
    insert(delivery)
    .from_select(["event_id", "subscription_id", *_due], _new, include_defaults=False)
    .on_conflict_do_nothing()
    .returning(delivery.c.event_id)
)
PASSING = Statement(
    select(event.c.event_id)
    .join_from(event, subscription, subscription.c.id == _sub)
    .where(
        event.c.event_id == func.any(_ids),
        event.c.event_id >= param("first", Uuid),
        event.c.event_id <= param("last", Uuid),
        text(passes("subscription", "event")),
    )
)
_ADVANCE = Statement(
    update(replay)
    .where(_id)
    .values(
        after_position=param("after_position", BigInteger),
        queued=replay.c.queued + param("queued", BigInteger),
        matched=replay.c.matched - param("filtered", BigInteger),
    )
)


async def entries(connection: Connection, replay: Replay, rows: int) -> list[Entry]:
    """The next events of the replay's range, with any key."""
    at = {"company_id": replay.company_id, "after": replay.after_position, "until": replay.until_position}
    return await _ENTRIES.rows(connection, **at, rows=rows)


async def candidates(connection: Connection, replay: Replay, event_ids: Sequence[uuid.UUID]) -> list[Candidate]:
    """The subscription's deliveries of these events."""
    if not event_ids:
        return []
    return await _CANDIDATES.rows(connection, sub_id=replay.subscription_id, state=replay.state, **_bounds(event_ids))


async def free_locked(connection: Connection, replay: Replay, event_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Locks those of the deliveries that the replay is about and that nothing changes or attempts at this moment."""
    if not event_ids:
        return set()
    rows = await connection.rows(LOCK_FREE, sub_id=replay.subscription_id, state=replay.state, **_bounds(event_ids))
    return {uuid.UUID(int=row["event_id"].int) for row in rows}


async def passing(connection: Connection, replay: Replay, event_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the events that pass the subscription's filter."""
    if not event_ids:
        return set()
    rows = await connection.rows(PASSING, sub_id=replay.subscription_id, **_bounds(event_ids))
    return {uuid.UUID(int=row["event_id"].int) for row in rows}


async def made_due(
    connection: Connection, replay: Replay, event_ids: Sequence[uuid.UUID], due_at: datetime.datetime
) -> None:
    """Makes deliveries due that are locked."""
    if not event_ids:
        return
    values = {"due_at": due_at, "requested_by": replay.created_by, "replay_id": replay.id}
    await connection.execute(MAKE_DUE, sub_id=replay.subscription_id, **values, **_bounds(event_ids))


async def added(
    connection: Connection, replay: Replay, event_ids: Sequence[uuid.UUID], due_at: datetime.datetime
) -> int:
    """Adds deliveries of events that had none; returns how many."""
    if not event_ids:
        return 0
    values = {"due_at": due_at, "requested_by": replay.created_by, "replay_id": replay.id}
    return len(await connection.rows(ADD, sub_id=replay.subscription_id, **values, **_bounds(event_ids)))


def _bounds(event_ids: Sequence[uuid.UUID]) -> dict[str, object]:
    return {"event_ids": list(event_ids), "first": min(event_ids), "last": max(event_ids)}


async def advanced(connection: Connection, replay: Replay, after_position: int, queued: int, filtered: int) -> None:
    """filtered: deliveries that were matched when it was requested, and whose events do not pass the filter."""
    at = {"id": replay.id, "after_position": after_position}
    await connection.execute(_ADVANCE, **at, queued=queued, filtered=filtered)


# What became of it


class Outcome(NamedTuple):
    """Attempts that were made for a replay."""

    succeeded: int
    failed: int


# Clocks of two processes may differ.
_since = param("since", Instant) - literal_column("interval '5 minutes'")
_OUTCOME = Query(
    Outcome,
    select(
        func.count().filter(attempt.c.error == text("''")).label("succeeded"),
        func.count().filter(attempt.c.error != text("''")).label("failed"),
    ).where(
        attempt.c.subscription_id == _sub,
        attempt.c.started_at >= _since,
        attempt.c.replay_id == param("replay_id", BigInteger),
    ),
)
_WAITING = Statement(
    select(func.count()).where(
        delivery.c.subscription_id == _sub,
        text("delivery.state = 'waiting'"),
        delivery.c.replay_id == param("replay_id", BigInteger),
    )
)
_FINISH = Statement(
    update(replay)
    .where(_id, replay.c.finished_at.is_(None))
    .values(
        finished_at=param("finished_at", Instant),
        succeeded=param("succeeded", BigInteger),
        failed=param("failed", BigInteger),
    )
)
_FORGET = Statement(delete(replay).where(_id))
_is_old = replay.c.finished_at < param("before", Instant)
_FORGET_OLD, _FORGET_OLD_OF = (
    Statement(delete(replay).where(_is_old, *of_company)) for of_company in ((), (replay.c.company_id == _company,))
)


async def progress(database: Database, replay: Replay) -> tuple[int, Outcome]:
    """The deliveries that wait for their attempt, and the attempts so far."""
    async with database.transaction(BY_INDEX, writes=False) as connection:
        # What waits is counted first: an attempt that is recorded meanwhile counts twice rather than not at all.
        waiting = await connection.value(_WAITING, sub_id=replay.subscription_id, replay_id=replay.id)
        at = {"sub_id": replay.subscription_id, "since": replay.created_at, "replay_id": replay.id}
        outcome = await _OUTCOME.row(connection, **at)
    assert outcome is not None
    return waiting, outcome


async def finished(database: Database, replay: Replay, at: datetime.datetime, outcome: Outcome) -> None:
    await database.execute(_FINISH, id=replay.id, finished_at=at, succeeded=outcome.succeeded, failed=outcome.failed)


async def forgotten(on: Database | Connection, replay_id: int) -> None:
    await on.execute(_FORGET, id=replay_id)


async def old_forgotten(database: Database, before: datetime.datetime, sandbox_id: int | None = None) -> None:
    """Of all companies, or of one sandbox, whose clock is never behind the others'."""
    if sandbox_id is None:
        await database.execute(_FORGET_OLD, before=before)
    else:
        await database.execute(_FORGET_OLD_OF, before=before, company_id=sandbox_id)


# Tests

_RECENT = Statement(
    select(func.count()).where(
        event.c.company_id == _company,
        event.c.entity_id == _sub,
        event.c.event == text("'webhook.test'"),
        event.c.event_id >= param("since", Uuid),
    )
)


async def tests_since(connection: Connection, company_id: int, sub_id: int, since: uuid.UUID) -> int:
    """The tests of a subscription that were made from an id on."""
    count: int = await connection.value(_RECENT, company_id=company_id, sub_id=sub_id, since=since)
    return count
