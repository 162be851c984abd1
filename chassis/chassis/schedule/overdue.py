"""Finds rows that time alone makes due, company by company: rows whose day is over at the company's morning, or whose
instant has passed.

It skips inactive companies, and companies whose replica row has not arrived yet. Sandboxes have their own time: a
search finds rows of all live companies, or of one sandbox.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from asyncpg import LockNotAvailableError, Record
from sqlalchemy import Table
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection, Database, DatabaseUnavailable
from chassis.db.rows import array_rows, columns_of
from chassis.db.statements import TEXTS, TIME, Expression, NewValues, Selection, Statement, param
from chassis.runtime.failpoints import failpoint
from chassis.schedule.clocks import LIVE, Companies, is_swept
from chassis.schedule.instants import day_begins, local_date, morning_after, overdue_before

ROWS_AT_ONCE = 100  # locked and written in one transaction
WAITS_MAX = 5  # for rows that other transactions hold, of one lock_timeout each

_KEY = {"company_id": sa.BigInteger(), "id": sa.BigInteger()}
# After all others.
_LAST_DAY: Expression = sa.literal_column("'infinity'::date")
_LAST_INSTANT: Expression = sa.literal_column("'infinity'::timestamptz")

# The conditions under which a row is due, from two columns: the company's day (earlier dates are over) and the sweep's
# instant. An index beginning with company_id must answer them.
Due = Callable[[Any, Any], Sequence[sa.ColumnElement[bool]]]
Work = Callable[[Connection, Sequence[Record]], Awaitable[None]]


class Days(NamedTuple):
    """Which of a company's days counts at an instant, and from which instant on a date is due. Both take the company's
    timezone."""

    day_of: Callable[[datetime.datetime, str], datetime.date]
    due_from: Callable[[datetime.date, str], datetime.datetime]


MORNINGS = Days(overdue_before, morning_after)
"""A date is due on the morning after it."""
BEGINNINGS = Days(local_date, day_begins)
"""A date is due when it begins."""


class FallsDue(NamedTuple):
    """When rows of a table fall due."""

    at: Expression
    """Their column, a date or an instant."""
    days: Days = MORNINGS
    """How the day that is passed to `due` comes from an instant."""
    order: Sequence[Expression] = ()
    """The columns, after company_id, of the index that answers `due`; needed if the planner might prefer another."""
    dates: Selection | None = None
    """Selects when the next row of a company falls due, where that is not the least of `at`: see `NextDue`."""


class NextDue:
    """Finds when the next row of one company falls due."""

    def __init__(self, database: Database, company: Table, dates: Selection, days: Days = MORNINGS) -> None:
        """`dates` has one row at most with the column `due`, a date or an instant, for the company of the replica's
        row. An index must answer it."""
        self._database, self._days = database, days
        earliest = dates.correlate(company).lateral("earliest")
        self._find = Statement(
            sa.select(company.c.timezone, earliest.c.due)
            .select_from(company.join(earliest, sa.true()))
            .where(company.c.id == param("company_id", sa.BigInteger), *is_swept(company))
        )

    async def of(self, company_id: int) -> datetime.datetime | None:
        """The instant; one that has passed means that something is due already. None if nothing will be due by time
        alone."""
        row = await self._database.row(self._find, company_id=company_id)
        if row is None or row["due"] is None:
            return None
        due = row["due"]
        return due if isinstance(due, datetime.datetime) else self._days.due_from(due, row["timezone"])


class Overdue:
    """Finds the due rows of one table, locks them and passes them on.

    The table's key is company_id and id. Every company costs one index look-up; all other cost grows with the due rows.
    """

    def __init__(
        self,
        database: Database,
        company: Table,
        table: Table,
        due: Due,
        rows_query: Selection,
        falls_due: FallsDue,
        *,
        first: sa.ColumnElement[int] | None = None,
    ) -> None:
        """The table `company` is the replica. The work gets the columns of `rows_query`; only rows of `table` are
        locked. The foreign key `first` of `table` never changes; every writer locks the rows that it names before those
        of `table`. They are locked first here too, in the order of their ids."""
        at, days, order, dates = falls_due
        self._database, self._days = database, days
        of_company = table.c.company_id == company.c.id
        if dates is None:
            ever = due(_LAST_DAY, _LAST_INSTANT)
            dates = sa.select(at.label("due")).where(of_company, *ever).order_by(*(order or (at,)))
            dates = dates.limit(sa.literal_column("1"))
        self._next = NextDue(database, company, dates, days)
        live = (*is_swept(company), sa.not_(company.c.is_sandbox))
        of_sandbox = (*is_swept(company), company.c.is_sandbox, company.c.id == param("sandbox_id", sa.BigInteger))
        zones_of = sa.select(company.c.timezone).distinct()
        self._zones, self._zone_of_sandbox = Statement(zones_of.where(*live)), Statement(zones_of.where(*of_sandbox))
        zones = sa.func.unnest(param("zones", TEXTS), param("days", ARRAY(sa.Date)))
        zone = zones.table_valued("timezone", "day").render_derived(name="zone")
        now = param("now", TIME)
        probe = sa.select(table.c.id).where(of_company, *due(zone.c.day, now)).order_by(*order)
        probe = probe.limit(param("rows", sa.Integer))
        due_row = probe.lateral("found")
        rows = (
            sa.select(company.c.id.label("company_id"), due_row.c.id, zone.c.day)
            .select_from(company.join(zone, zone.c.timezone == company.c.timezone).join(due_row, sa.true()))
            .where(company.c.id >= param("first_company_id", sa.BigInteger))
            .order_by(company.c.id)
            .limit(param("rows", sa.Integer))
        )
        self._find, self._find_in_sandbox = Statement(rows.where(*live)), Statement(rows.where(*of_sandbox))
        self._hold_first = None if first is None else _hold_first(table, first)
        named = array_rows("named", {**_KEY, "day": sa.Date()}, numbered=True)
        same = (table.c.company_id == named.c.company_id, table.c.id == named.c.id)
        # Checked again under the lock: another transaction may have changed the row since.
        due_yet = sa.select(table.c.company_id, table.c.id).where(*same, *due(named.c.day, now))
        self._hold = _of_each(named, due_yet.with_for_update(key_share=True))
        # A separate statement reads the rows: a statement that waited for a lock sees the other tables as they were
        # before. It reads by keys only, whatever the statistics: OFFSET prevents joins of whole tables.
        named = array_rows("named", _KEY, numbered=True)
        row = rows_query.where(table.c.company_id == named.c.company_id, table.c.id == named.c.id)
        self._read = _of_each(named, row.offset(sa.literal_column("0")))

    async def next_due(self, company_id: int) -> datetime.datetime | None:
        """See `NextDue.of`."""
        return await self._next.of(company_id)

    async def each(self, now: datetime.datetime, work: Work, companies: Companies = LIVE) -> int:
        """Does the work for all rows of the companies due at `now`, a few in each transaction; returns how many.

        The work must leave none of its rows due; what it counts must come after its last statement, since it is called
        again for rows whose locks it could not get. Any number of callers may run at once: each row is passed on once.
        """
        scope, zones_of, find = dict[str, object](), self._zones, self._find
        if companies.sandbox_id is not None:
            scope = {"sandbox_id": companies.sandbox_id}
            zones_of, find = self._zone_of_sandbox, self._find_in_sandbox
        zones = [row["timezone"] for row in await self._database.rows(zones_of, **scope)]
        days = [self._days.day_of(now, zone) for zone in zones]
        values = {"zones": zones, "days": days, "rows": ROWS_AT_ONCE, **scope}
        at = {"now": now} if "now" in find.parameters else {}
        first_company_id, done, waits = 0, 0, 0
        while True:
            due = await self._database.rows(find, first_company_id=first_company_id, **values, **at)
            if due:
                # In the order in which all transactions lock many rows, so that they cannot deadlock.
                rows = sorted((row["company_id"], row["id"], row["day"]) for row in due)
                try:
                    done += await self._hand_on(rows, at, work)
                except DatabaseUnavailable as error:
                    waits += 1
                    if waits == WAITS_MAX or not isinstance(error.__cause__, LockNotAvailableError):
                        raise
                    # A file or another sweep holds the rows. They are looked for again: it may have changed them.
                    continue
                first_company_id, waits = rows[-1][0], 0
            if len(due) < ROWS_AT_ONCE:
                return done

    async def _hand_on(self, rows: Sequence[tuple[int, int, datetime.date]], at: NewValues, work: Work) -> int:
        """Does the work for those of the rows that are due yet, in one transaction; returns how many."""
        companies, ids, of_days = (list(column) for column in zip(*rows, strict=True))
        async with self._database.transaction() as connection:
            if self._hold_first is not None:
                await connection.execute(self._hold_first, company_id=companies, id=ids)
            held = await connection.rows(self._hold, company_id=companies, id=ids, day=of_days, **at)
            if held:
                key = columns_of(held, ("company_id", "id"))
                await work(connection, await connection.rows(self._read, **key))
                failpoint("sweep-before-commit")
        return len(held)


def _hold_first(table: Table, key: sa.ColumnElement[int]) -> Statement:
    """Locks the rows that the named rows of the table refer to by this key."""
    (reference,) = key.foreign_keys
    other = reference.column.table
    named = array_rows("named", _KEY)
    row = sa.select(key.label("key")).where(table.c.company_id == named.c.company_id, table.c.id == named.c.id)
    # By keys only, whatever the statistics: OFFSET prevents joins of whole tables.
    first = row.offset(sa.literal_column("0")).lateral("found")
    keys = sa.select(first.c.key).select_from(named.join(first, sa.true()))
    # An array, so that the planner can't make it a join.
    any_key = sa.any_(sa.func.array(keys.scalar_subquery()))
    return Statement(
        sa.select(other.c.id).where(other.c.id == any_key).order_by(other.c.id).with_for_update(key_share=True)
    )


def _of_each(named: sa.FromClause, rows: Selection) -> Statement:
    """A statement that returns the rows for each named key, in the order of the keys."""
    due_rows = rows.lateral("found")
    return Statement(sa.select(due_rows).select_from(named.join(due_rows, sa.true())).order_by(named.c.n))
