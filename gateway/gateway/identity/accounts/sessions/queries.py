"""The SQL statements about sessions, named for what they return or do."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from asyncpg import Record

from chassis.db.database import Connection, Database
from chassis.db.statements import CLOCK, TIME, Statement, param
from gateway.identity.accounts import rules
from gateway.identity.accounts.queries import PEOPLE, PERSON
from gateway.identity.accounts.sessions.tables import session
from gateway.identity.accounts.tables import account, ceremony, link, sign_in_delay, sign_in_failure

_account_id = param("account_id", sa.BigInteger)
_session_id = param("session_id", sa.BigInteger)
_digest = param("digest", sa.LargeBinary)
_now = param("now", TIME)

_NEW = Statement(
    sa.insert(session)
    .values(
        {
            name: param(name, session.c[name].type)
            for name in ("account_id", "digest", "ends_at", "method", "address", "user_agent")
        }
        | dict.fromkeys(("started_at", "last_seen_at", "stepped_up_at"), _now)
    )
    .returning(session.c.id)
)
_BY_DIGEST = Statement(
    sa.select(
        session.c.id.label("session_id"),
        session.c.started_at,
        session.c.last_seen_at,
        session.c.stepped_up_at,
        session.c.ends_at,
        *PERSON,
    )
    .select_from(PEOPLE.join(session, session.c.account_id == account.c.id))
    .where(session.c.digest == _digest)
)
_SEEN = Statement(sa.update(session).where(session.c.id == _session_id).values(last_seen_at=_now))
_STEPPED_UP = Statement(
    sa.update(session)
    .where(session.c.digest == _digest)
    .values(digest=param("new_digest", sa.LargeBinary), stepped_up_at=_now, last_seen_at=_now)
    .returning(session.c.id)
)
_STEPPED_UP_BY_ID = Statement(
    sa.update(session)
    .where(session.c.account_id == _account_id, session.c.id == _session_id)
    .values(digest=param("new_digest", sa.LargeBinary), stepped_up_at=_now, last_seen_at=_now)
    .returning(session.c.id)
)
_END = Statement(
    sa.delete(session).where(session.c.account_id == _account_id, session.c.id == _session_id).returning(session.c.id)
)
_END_BY_DIGEST = Statement(sa.delete(session).where(session.c.digest == _digest).returning(*session.c))
_END_OTHERS = Statement(
    sa.delete(session)
    .where(session.c.account_id == _account_id, session.c.id != _session_id)
    .returning(session.c.ends_at > CLOCK)
)
# The account's other sessions, those that were idle for longest last.
_others = sa.select(session.c.id).where(session.c.account_id == _account_id, session.c.id != _session_id)
_idlest_last = _others.order_by(session.c.last_seen_at.desc(), session.c.id.desc())
_DISPLACE = Statement(
    sa.update(session)
    .where(session.c.id.in_(_idlest_last.where(session.c.ends_at > _now).offset(rules.SESSIONS_MAX - 1)))
    .values(ends_at=_now)
    .returning(session.c.id)
)
_FORGET_DISPLACED = Statement(
    sa.delete(session).where(session.c.id.in_(_idlest_last.where(session.c.ends_at <= _now).offset(rules.SESSIONS_MAX)))
)
_OF_ACCOUNT = Statement(
    sa.select(session)
    .where(session.c.account_id == _account_id)
    .order_by(session.c.last_seen_at.desc(), session.c.id.desc())
)


async def new_session(
    connection: Connection,
    account_id: int,
    digest: bytes,
    *,
    now: datetime.datetime,
    ends_at: datetime.datetime,
    method: str,
    address: str,
    user_agent: str,
) -> int:
    session_id: int = await connection.value(
        _NEW,
        account_id=account_id,
        digest=digest,
        now=now,
        ends_at=ends_at,
        method=method,
        address=address,
        user_agent=user_agent,
    )
    return session_id


async def session_by_digest(on: Connection | Database, digest: bytes) -> Record | None:
    """The session with its person, over or not."""
    return await on.row(_BY_DIGEST, digest=digest)


async def seen(database: Database, session_id: int, now: datetime.datetime) -> None:
    """Raises ClockSkew."""
    async with database.transaction() as connection:
        await connection.execute(_SEEN, session_id=session_id, now=now)


async def stepped_up(connection: Connection, digest: bytes, new_digest: bytes, now: datetime.datetime) -> bool:
    """Whether there was such a session; it has a new text."""
    return await connection.row(_STEPPED_UP, digest=digest, new_digest=new_digest, now=now) is not None


async def stepped_up_by_id(
    connection: Connection, account_id: int, session_id: int, new_digest: bytes, now: datetime.datetime
) -> bool:
    """As `stepped_up`, for one of the account's sessions."""
    values = {"account_id": account_id, "session_id": session_id, "new_digest": new_digest, "now": now}
    return await connection.row(_STEPPED_UP_BY_ID, **values) is not None


async def end_session(connection: Connection, account_id: int, session_id: int) -> bool:
    return await connection.row(_END, account_id=account_id, session_id=session_id) is not None


async def end_session_by_digest(connection: Connection, digest: bytes) -> Record | None:
    return await connection.row(_END_BY_DIGEST, digest=digest)


async def end_other_sessions(connection: Connection, account_id: int, session_id: int | None) -> int:
    """Ends all sessions of the account, except this one if it is named; returns how many had not ended before."""
    ended = await connection.rows(_END_OTHERS, account_id=account_id, session_id=session_id or 0)
    return sum(had_not_ended for (had_not_ended,) in ended)


async def displace(connection: Connection, account_id: int, session_id: int, now: datetime.datetime) -> list[int]:
    """Ends the account's idlest sessions, so that SESSIONS_MAX are left with this one; returns their ids.

    They stay on record as ended, the last SESSIONS_MAX of them. The account is locked by this transaction.
    """
    values = {"account_id": account_id, "session_id": session_id, "now": now}
    displaced = [row["id"] for row in await connection.rows(_DISPLACE, **values)]
    if displaced:
        await connection.execute(_FORGET_DISPLACED, **values)
    return displaced


async def sessions_of(database: Database, account_id: int) -> list[Record]:
    return await database.rows(_OF_ACCOUNT, account_id=account_id)


_idle_since = param("idle_since", TIME)
_PURGES = (
    # A gateway whose clock is behind takes a passkey's challenge for longer: its use is on record until then.
    Statement(sa.delete(ceremony).where(ceremony.c.expires_at <= param("unused_since", TIME))),
    Statement(sa.delete(link).where(link.c.expires_at <= _now)),
    Statement(sa.delete(session).where(session.c.ends_at <= param("ended_since", TIME))),
    Statement(sa.delete(sign_in_failure).where(sign_in_failure.c.failed_at <= _idle_since)),
    Statement(sa.delete(sign_in_delay).where(sign_in_delay.c.last_at <= _idle_since)),
)


async def purge(database: Database, now: datetime.datetime) -> None:
    """Deletes what is over: ceremonies, links, sessions, failures."""
    for statement in _PURGES:
        values = {
            "now": now,
            "unused_since": now - rules.AHEAD_MAX,
            "idle_since": now - rules.FAILURES_KEPT,
            "ended_since": now - rules.ENDED_KEPT,
        }
        await database.execute(statement, **{name: values[name] for name in statement.parameters})
