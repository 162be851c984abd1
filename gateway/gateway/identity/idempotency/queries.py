"""The SQL statements about notes of idempotency keys, named for what they return or do.

Claims run by PostgreSQL's clock. No statement waits for the disk: a crash loses notes of its last instants.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    Text,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Database
from chassis.db.rows import array_rows, columns_of_tuples
from chassis.db.statements import TIME, Query, SqlType, Statement, param
from chassis.writes.retention import KEPT
from gateway.identity.idempotency.tables import note

DIGEST_BYTES = 16
# Longer than any claim. One that has longer to go was taken while PostgreSQL's clock was ahead, and is over.
CLAIM_SECONDS_MAX = 300


def digest(api_key_id: int, idempotency_key: str) -> bytes:
    """What notes are found by."""
    return hashlib.blake2b(f"{api_key_id}/{idempotency_key}".encode(), digest_size=DIGEST_BYTES).digest()


class Taking(NamedTuple):
    """Requests that are about to be sent to a service, all with one key."""

    digest: bytes
    service: str
    seconds: float
    """How long a request of them may be under way."""
    requests: int = 1


class Note(NamedTuple):
    service: str
    leased_until: datetime.datetime
    is_living: bool
    """Whether a request may be under way."""


_CLOCK: ColumnElement[datetime.datetime] = func.clock_timestamp(type_=DateTime(timezone=True))
_SECOND: ColumnElement[datetime.timedelta] = literal_column("interval '1 second'")
_TRUE: ColumnElement[bool] = literal_column("true")
_UNHURRIED = select(func.set_config("synchronous_commit", "off", True).label("unhurried")).cte("settings")
_of_digest = note.c.digest == param("digest", LargeBinary)


def _take() -> Statement:
    kinds: dict[str, SqlType] = {"digest": LargeBinary(), "service": Text(), "seconds": Float(), "requests": Integer()}
    takings = array_rows("takings", kinds)
    rows = select(takings.c.digest, takings.c.service, takings.c.requests, _CLOCK + takings.c.seconds * _SECOND)
    # All gateways lock notes in one order.
    in_order = rows.select_from(takings.join(_UNHURRIED, _TRUE)).order_by(takings.c.digest)
    form = insert(note).from_select(["digest", "service", "requests", "leased_until"], in_order)
    new = form.excluded
    return Statement(
        form.on_conflict_do_update(
            index_elements=[note.c.digest],
            set_={
                "requests": note.c.requests + new.requests,
                "leased_until": func.greatest(note.c.leased_until, new.leased_until),
            },
            where=note.c.service == new.service,
        ).returning(note.c.digest, note.c.leased_until)
    )


_TAKE = _take()


async def take(database: Database, takings: Sequence[Taking]) -> dict[bytes, datetime.datetime]:
    """Notes that the requests go to their services, if no note says another one. takings: each digest once.

    Returns, by digest, until when a request of the noted ones may be under way.
    """
    rows = await database.rows(_TAKE, **columns_of_tuples(takings))
    return {row["digest"]: row["leased_until"] for row in rows}


_NOTE = Query(
    Note,
    select(
        note.c.service,
        note.c.leased_until,
        note.c.leased_until.between(_CLOCK, _CLOCK + CLAIM_SECONDS_MAX * _SECOND).label("is_living"),
    ).where(_of_digest),
)


async def note_of(database: Database, digest: bytes) -> Note | None:
    return await _NOTE.row(database, digest=digest)


_TAKE_OVER = Statement(
    update(note)
    .where(
        _of_digest,
        note.c.service == param("old_service", Text),
        note.c.leased_until == param("old_leased_until", TIME),
        select(_UNHURRIED.c.unhurried).scalar_subquery() == literal_column("'off'"),
    )
    .values(
        service=param("service", Text),
        requests=literal_column("1"),
        leased_until=_CLOCK + param("seconds", Float) * _SECOND,
    )
    .returning(note.c.leased_until)
)


async def take_over(database: Database, taking: Taking, old: Note) -> datetime.datetime | None:
    """Notes the request in place of those of an old note. Returns until when it may be under way; None if the note has
    changed since."""
    taken: datetime.datetime | None = await database.value(
        _TAKE_OVER,
        digest=taking.digest,
        service=taking.service,
        seconds=taking.seconds,
        old_service=old.service,
        old_leased_until=old.leased_until,
    )
    return taken


def _release() -> Statement:
    # Locked at its newest version, so that of two requests that are refused at once one sees the other gone.
    mine = select(note.c.digest, note.c.requests).where(
        _of_digest,
        note.c.service == param("service", Text),
        # After that, the note may be another request's.
        param("leased_until", TIME) > _CLOCK,
        select(_UNHURRIED.c.unhurried).scalar_subquery() == literal_column("'off'"),
    )
    held = mine.with_for_update(of=note).cte("held").prefix_with("MATERIALIZED")
    last = held.c.requests == literal_column("1")
    gone = delete(note).where(note.c.digest == held.c.digest, last).cte("gone")
    fewer = {"requests": note.c.requests - literal_column("1")}
    less = update(note).where(note.c.digest == held.c.digest, ~last).values(fewer)
    return Statement(less.add_cte(gone))


_RELEASE = _release()


async def release(database: Database, digest: bytes, service: str, leased_until: datetime.datetime) -> None:
    """Forgets one request of a note, and the note with its last one. leased_until: from `take`."""
    await database.execute(_RELEASE, digest=digest, service=service, leased_until=leased_until)


DELETED_AT_ONCE = 5000
_due: Column[datetime.datetime] = note.c.leased_until
_OLDEST = select(note.c.digest).where(_due < param("before", TIME)).order_by(_due).limit(DELETED_AT_ONCE)
# The time is checked again: a request may have prolonged the claim meanwhile.
_DELETE = Statement(delete(note).where(note.c.digest.in_(_OLDEST), _due < param("before", TIME)))


async def delete_old(database: Database, now: datetime.datetime) -> int:
    """Deletes notes that are as old as the ledgers' claims become, in small batches; returns how many."""
    deleted = 0
    batch = DELETED_AT_ONCE
    while batch == DELETED_AT_ONCE:
        batch = int((await database.execute(_DELETE, before=now - KEPT)).split()[-1])
        deleted += batch
    return deleted
