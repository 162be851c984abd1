"""The SQL statements around tickets that have been quiet: whose threshold, which are due, what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Interval, case, func, literal_column, select, text, update

from chassis.db.database import Connection, Database
from chassis.db.rows import UpdateMany
from chassis.db.statements import Statement, param
from svc_tickets import rules, rules_quiet
from svc_tickets import tables as t
from svc_tickets.queries import TICKETS

# What goes with a change of a ticket and is not served.
QUIET = ("quiet_since", "stale_due_at")

_company_id = param("company_id", BigInteger)
_default = text(str(rules.STALE_AFTER_HOURS))
_of_company = select(t.ticket_policy.c.stale_after_hours).where(t.ticket_policy.c.company_id == t.ticket.c.company_id)
_threshold = func.coalesce(_of_company.scalar_subquery(), _default)
# Of a ticket that a resident filed; the policy is not looked at for any other.
THRESHOLD_OF_RESIDENTS = case(
    (t.ticket.c.source == literal_column(f"'{rules_quiet.QUIET_SOURCE}'"), _threshold), else_=_default
).label("stale_after_hours")

_THRESHOLD = Statement(select(t.ticket_policy.c.stale_after_hours).where(t.ticket_policy.c.company_id == _company_id))


async def stale_after_hours(connection: Connection | Database, company_id: int) -> int:
    """The company's threshold."""
    found: int | None = await connection.value(_THRESHOLD, company_id=company_id)
    return rules.STALE_AFTER_HOURS if found is None else found


def _reckon_anew() -> Statement:
    # In the order of their ids, in which everybody locks many.
    held = (
        select(t.ticket.c.id)
        .where(t.ticket.c.company_id == _company_id, t.ticket.c.stale_due_at.is_not(None))
        .order_by(t.ticket.c.id)
        .with_for_update(key_share=True)
        .cte("held")
    )
    threshold = param("stale_after_hours", BigInteger) * literal_column("interval '1 hour'", Interval)
    return Statement(
        update(t.ticket)
        .where(
            t.ticket.c.company_id == _company_id,
            t.ticket.c.id == held.c.id,
            t.ticket.c.stale_due_at.is_not(None),
        )
        .values(stale_due_at=t.ticket.c.quiet_since + threshold)
    )


_RECKON_ANEW = _reckon_anew()


async def reckon_anew(connection: Connection, company_id: int, stale_after_hours: int) -> None:
    """Makes the company's open tickets due by a new threshold, counted from when they fell quiet."""
    await connection.execute(_RECKON_ANEW, company_id=company_id, stale_after_hours=stale_after_hours)


def due(_day: Any, now: Any) -> tuple[Any, ...]:
    """See `chassis.schedule.overdue.Due`."""
    return (t.ticket.c.stale_due_at <= now,)


# Of a ticket that is due: the columns that are served, then what the rules ask.
SHOWN = TICKETS.add_columns(
    t.ticket.c.company_id.label("company_id"),
    t.ticket.c.id.label("ticket_id"),
    t.ticket.c.status.label("status"),
    t.ticket.c.source.label("source"),
    t.ticket.c.updated_at.label("last_updated_at"),
    t.ticket.c.quiet_since.label("quiet_since"),
    THRESHOLD_OF_RESIDENTS,
)

_SAVE = UpdateMany(t.ticket, ("stale_due_at",))


async def save_stale_due_at(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """rows: company_id, id, stale_due_at. Neither version nor updated_at moves: nothing that is served did."""
    await _SAVE.run(connection, rows)
