"""The SQL statements for stale tickets: thresholds, due tickets and their next due instants."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Interval, and_, case, func, literal_column, or_, select, text, update

from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany
from chassis.db.statements import TIME, Expression, Query, Statement, param
from svc_tickets.policy.rules import STALE_AFTER_HOURS
from svc_tickets.policy.tables import ticket_policy
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.queries.read import TICKETS
from svc_tickets.tickets.rules import staleness

_company_id = param("company_id", BigInteger)
_default = text(str(STALE_AFTER_HOURS))
_of_company = select(ticket_policy.c.stale_after_hours).where(ticket_policy.c.company_id == t.ticket.c.company_id)
_threshold = func.coalesce(_of_company.scalar_subquery(), _default)
# See `staleness.is_of_resident`.
_of_resident = or_(t.ticket.c.resident_asked, t.ticket.c.source == literal_column(f"'{staleness.RESIDENT_SOURCE}'"))
OF_RESIDENT = _of_resident.label("of_resident")
# The threshold of a resident's ticket; the policy is not read for other tickets.
THRESHOLD_OF_RESIDENTS = case((_of_resident, _threshold), else_=_default).label("stale_after_hours")
# The columns that the rules of staleness need, of a ticket that is changed.
FACTS = (OF_RESIDENT, THRESHOLD_OF_RESIDENTS)


def _restart() -> Statement:
    # All statements that lock several tickets lock them in the order of ids.
    held = (
        select(t.ticket.c.id)
        .where(t.ticket.c.company_id == _company_id, t.ticket.c.stale_due_at.is_not(None))
        .order_by(t.ticket.c.id)
        .with_for_update(key_share=True)
        .cte("held")
    )
    hour = literal_column("interval '1 hour'", Interval)
    before, threshold = (param(name, BigInteger) * hour for name in ("hours_before", "stale_after_hours"))
    quiet_since = t.ticket.c.quiet_since
    # The due time lies more than one old threshold after quiet_since only if a multiple of it has been announced.
    is_announced = t.ticket.c.stale_due_at - before > quiet_since
    until = case((is_announced, func.greatest(quiet_since, param("now", TIME))), else_=quiet_since)
    passed = func.floor(func.extract("epoch", until - quiet_since) / func.extract("epoch", threshold))
    return Statement(
        update(t.ticket)
        .where(
            t.ticket.c.company_id == _company_id,
            t.ticket.c.id == held.c.id,
            t.ticket.c.stale_due_at.is_not(None),
        )
        .values(stale_due_at=quiet_since + (passed + 1) * threshold)
    )


_RESTART = _restart()


async def restart(
    connection: Connection, company_id: int, hours_before: int, stale_after_hours: int, now: datetime.datetime
) -> None:
    """Recomputes when the company's open tickets become stale, from quiet_since and the old and the new threshold.

    A ticket that was not announced yet is due one new threshold after quiet_since, even if that has passed. One whose
    silence is announced, or counts as announced since its import, waits for the next multiple that lies ahead of `now`.
    """
    await connection.execute(
        _RESTART, company_id=company_id, hours_before=hours_before, stale_after_hours=stale_after_hours, now=now
    )


class StaleCount(NamedTuple):
    """The tickets of a company that are stale under a threshold, and those of them that it makes stale."""

    stale: int
    newly_stale: int


def _counts() -> Query[StaleCount]:
    hour = literal_column("interval '1 hour'", Interval)
    now = param("now", TIME)
    before, threshold = (param(name, BigInteger) * hour for name in ("hours_before", "stale_after_hours"))
    # See `_restart`: neither stale yet, nor announced under an earlier threshold.
    is_new = and_(t.ticket.c.stale_due_at > now, t.ticket.c.stale_due_at - before <= t.ticket.c.quiet_since)
    return Query(
        StaleCount,
        select(func.count().label("stale"), func.count().filter(is_new).label("newly_stale")).where(
            t.ticket.c.company_id == _company_id,
            t.ticket.c.stale_due_at.is_not(None),
            t.ticket.c.quiet_since + threshold <= now,
        ),
    )


_COUNTS = _counts()


async def counted(
    database: Database, company_id: int, hours_before: int, stale_after_hours: int, now: datetime.datetime
) -> StaleCount:
    """What `restart` with these thresholds would make stale at `now`. Reads the company's open tickets of residents."""
    values = {"hours_before": hours_before, "stale_after_hours": stale_after_hours, "now": now}
    counts = await _COUNTS.row(database, company_id=company_id, **values)
    assert counts is not None
    return counts


def due(_day: Expression, now: Expression) -> tuple[ColumnElement[bool], ...]:
    """See `chassis.schedule.overdue.Due`."""
    return (t.ticket.c.stale_due_at <= now,)


# For each due ticket: the rendered columns, then those that the rules need.
SHOWN = TICKETS.add_columns(
    t.ticket.c.company_id.label("company_id"),
    t.ticket.c.id.label("ticket_id"),
    t.ticket.c.status.label("status"),
    t.ticket.c.updated_at.label("last_updated_at"),
    t.ticket.c.quiet_since.label("quiet_since"),
    *FACTS,
)

# version and updated_at stay, because no rendered column changes.
MARK = UpdateMany(t.ticket, ("stale_due_at",))
