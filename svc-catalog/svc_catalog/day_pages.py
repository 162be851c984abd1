"""Pages of lists for people: in the order of a day or an id, either way round, for any combination of states.

A record's state is a text made of the columns that a search filters by, for example "Completed failed". The index of a
list begins with a hash of a place and of the state. A page merges the index entries of each state that is wanted: at
most the page's length of each. Its cost depends neither on the table nor on how rare a state is.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from google.protobuf.message import Message
from sqlalchemy.dialects.postgresql import array

from chassis.db.database import Database
from chassis.db.statements import TEXTS, Expression, Selection, Statement, param
from chassis.lists.updated_since import Having, is_of, status_key
from chassis.refusals import invalid_request

PAGE, PAGE_MAX = 50, 200
COUNT_MAX = 1000
LAST_ID = 2**63 - 1
FIRST_DAY, NO_DAY = datetime.date.min, datetime.date.max
"""asyncpg reads and writes them as -infinity and infinity."""
INFINITY = sa.literal_column("'infinity'::date", sa.Date)


class Days(NamedTuple):
    """A range of days, both included. `EVERY_DAY` has the records without a day, too."""

    first: datetime.date
    last: datetime.date


EVERY_DAY = Days(FIRST_DAY, NO_DAY)


class DaySearch(NamedTuple):
    """What a list shows. places: the ids of places, by the name of the filter."""

    states: Sequence[str]
    days: Days
    places: Mapping[str, int]


class Position(NamedTuple):
    """A record's place in a list: the list goes on after it."""

    day: datetime.date
    id: int

    def __str__(self) -> str:
        return f"{self.day.isoformat()}.{self.id}"


def position_of(text: str) -> Position:
    """The position that `next` of a page has spelled. Raises Refusal 400."""
    day, _, number = text.partition(".")
    try:
        if len(number) > 19 or not (number.isascii() and number.isdigit()):
            raise ValueError(number)
        return Position(datetime.date.fromisoformat(day), min(int(number), LAST_ID))
    except ValueError:
        raise invalid_request("after is not the `next` of a page of this list.", "after") from None


def day_of(text: str, field: str) -> datetime.date:
    """The day that a request names as YYYY-MM-DD. Raises Refusal 400."""
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        day = NO_DAY
    if day in (FIRST_DAY, NO_DAY) or day.isoformat() != text:
        raise invalid_request(f"{field} must be a date like 2027-01-31.", field)
    return day


def label_of(value: int, labels: Sequence[str], field: str) -> str:
    """The word of an enum's value, where the first value is unspecified. Raises Refusal 400."""
    if not 1 <= value <= len(labels):
        raise invalid_request(f"{field} must be one of {', '.join(labels)}.", field)
    return labels[value - 1]


class DayPages:
    """One list by day and id.

    Parameters of a statement: company_id, those of place_value and checks, states, from_day, to_day, after_day,
    after_id, rows.
    """

    def __init__(
        self,
        table: sa.Table,
        day: Expression,
        state: sa.ColumnElement[str],
        place: sa.ColumnElement[int],
        place_value: sa.ColumnElement[int],
        checks: Having,
        visible: sa.ColumnElement[bool] | None = None,
    ) -> None:
        """day: orders the list. state: see the module. place: leads the index of the list, with the value place_value.
        checks: columns of each row, with their values. visible: the condition of a partial index."""
        states = sa.func.unnest(param("states", TEXTS)).table_valued("state", name="states").render_derived()
        key = status_key(place, state)
        from_day, to_day = param("from_day", sa.Date), param("to_day", sa.Date)
        position = sa.tuple_(param("after_day", sa.Date), param("after_id", sa.BigInteger))
        row = sa.tuple_(day, table.c.id)
        # As `chassis.lists.updated_since.stretch`: an array of one, so that the key counts in the order.
        conditions = [
            sa.true() if visible is None else visible,
            key == sa.any_(array([status_key(place_value, states.c.state)])),
            day >= from_day,
            day <= to_day,
            *is_of([*checks, (state, states.c.state)]),
        ]

        def selected(*, newest_first: bool) -> Selection:
            order = [column.desc() if newest_first else column for column in (key, day, table.c.id)]
            matches = (
                sa.select(day.label("day"), table.c.id.label("id"))
                .where(*conditions, row < position if newest_first else row > position)
                .order_by(*order)
                .limit(param("rows", sa.Integer))
                .correlate(states)
                .lateral("matches")
            )
            merged = sa.select(matches.c.day, matches.c.id).select_from(states.join(matches, sa.true()))
            sorts = [column.desc() if newest_first else column for column in (matches.c.day, matches.c.id)]
            return merged.order_by(*sorts).limit(param("rows", sa.Integer))

        self.statements = {newest: Statement(selected(newest_first=newest)) for newest in (False, True)}
        self.count = Statement(sa.select(sa.func.count()).select_from(selected(newest_first=False).subquery("counted")))

    async def page(
        self,
        database: Database,
        company_id: int,
        search: DaySearch,
        limit: int,
        after: Position | None,
        *,
        newest_first: bool,
    ) -> list[Position]:
        """Up to limit + 1 positions; the extra one means that another page follows."""
        start = after or (Position(NO_DAY, LAST_ID) if newest_first else Position(FIRST_DAY, 0))
        # PostgreSQL begins at the day's bound, not at the position: a deep page would read all that is before it.
        first, last = search.days
        if newest_first:
            last = min(last, start.day)
        else:
            first = max(first, start.day)
        rows = await database.rows(
            self.statements[newest_first],
            company_id=company_id,
            states=search.states,
            from_day=first,
            to_day=last,
            rows=limit + 1,
            after_day=start.day,
            after_id=start.id,
            **search.places,
        )
        return [Position(*row) for row in rows]

    async def counted(self, database: Database, company_id: int, search: DaySearch) -> int:
        """How many records there are, COUNT_MAX at most."""
        count: int = await database.value(
            self.count,
            company_id=company_id,
            states=search.states,
            from_day=search.days.first,
            to_day=search.days.last,
            rows=COUNT_MAX,
            after_day=FIRST_DAY,
            after_id=0,
            **search.places,
        )
        return count


def days_between(request: Message, from_field: str, to_field: str) -> Days:
    """The days that two fields of a request name. A record without a day is in no range. Raises Refusal 400."""
    first, last = (
        day_of(getattr(request, name), name) if request.HasField(name) else None for name in (from_field, to_field)
    )
    if first and last and first > last:
        raise invalid_request(f"{to_field} is before {from_field}.", to_field)
    open_end = NO_DAY - datetime.timedelta(days=1) if first else NO_DAY
    return Days(first or FIRST_DAY, last or open_end)
