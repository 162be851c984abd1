"""Pages of lists for people: in the order of a day or an id, either way round, for any combination of states.

A record's state is a text made of the columns that a search filters by, for example "Completed failed". The index of a
list begins with a hash of a place and of the state. A page merges the index entries of each state that is wanted: at
most the page's length of each. Its cost depends neither on the table nor on how rare a state is.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import array

from chassis.db.database import Database
from chassis.db.statements import TEXTS, Statement, param
from chassis.lists.updated_since import is_of, status_key
from chassis.refusals import invalid_request

PAGE, PAGE_MAX = 50, 200
COUNT_MAX = 1000
LAST_ID = 2**63 - 1
FIRST_DAY, NO_DAY = datetime.date.min, datetime.date.max
"""asyncpg reads and writes them as -infinity and infinity."""
INFINITY = sa.literal_column("'infinity'::date", sa.Date)


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


def limit_of(request: Any, longest: int = PAGE_MAX, default: int = PAGE) -> int:
    """The page's length. Raises Refusal 400."""
    limit = int(request.limit) if request.HasField("limit") else default
    if not 1 <= limit <= longest:
        raise invalid_request(f"limit must be from 1 to {longest}.", "limit")
    return limit


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

    day: the expression that orders it; state: see the module; place: the columns that lead the index, with the
    parameters of the same names. Parameters of a statement: company_id, those of place and checks, states, from_day,
    to_day, day and id of the position, rows.
    """

    def __init__(
        self,
        table: sa.Table,
        day: sa.ColumnElement[Any],
        state: sa.ColumnElement[str],
        place: sa.ColumnElement[int],
        place_asked: sa.ColumnElement[int],
        checks: Sequence[tuple[Any, Any]],
        visible: sa.ColumnElement[bool] | None = None,
    ) -> None:
        asked: Any = sa.func.unnest(param("states", TEXTS)).table_valued("state", name="asked").render_derived()
        key = status_key(place, state)
        from_day, to_day = param("from_day", sa.Date), param("to_day", sa.Date)
        at = sa.tuple_(param("after_day", sa.Date), param("after_id", sa.BigInteger))
        here = sa.tuple_(day, table.c.id)
        # As `chassis.lists.updated_since.stretch`: an array of one, so that the key counts in the order.
        conditions = [
            sa.true() if visible is None else visible,
            key == sa.any_(array([status_key(place_asked, asked.c.state)])),
            day >= from_day,
            day <= to_day,
            *is_of([*checks, (state, asked.c.state)]),
        ]

        def made(*, newest_first: bool) -> sa.Select[Any]:
            order = [one.desc() if newest_first else one for one in (key, day, table.c.id)]
            found = (
                sa.select(day.label("day"), table.c.id.label("id"))
                .where(*conditions, here < at if newest_first else here > at)
                .order_by(*order)
                .limit(param("rows", sa.Integer))
                .correlate(asked)
                .lateral("found")
            )
            merged = sa.select(found.c.day, found.c.id).select_from(asked.join(found, sa.true()))
            sorts = [one.desc() if newest_first else one for one in (found.c.day, found.c.id)]
            return merged.order_by(*sorts).limit(param("rows", sa.Integer))

        self.statements = {newest: Statement(made(newest_first=newest)) for newest in (False, True)}
        self.count = Statement(sa.select(sa.func.count()).select_from(made(newest_first=False).subquery("counted")))

    async def page(
        self, database: Database, limit: int, after: Position | None, *, newest_first: bool, **values: Any
    ) -> list[Position]:
        """Up to limit + 1 positions; the extra one means that another page follows."""
        start = after or (Position(NO_DAY, LAST_ID) if newest_first else Position(FIRST_DAY, 0))
        # PostgreSQL begins at the day's bound, not at the position: a deep page would read all that is before it.
        if newest_first:
            values["to_day"] = min(values["to_day"], start.day)
        else:
            values["from_day"] = max(values["from_day"], start.day)
        statement = self.statements[newest_first]
        rows = await database.rows(statement, rows=limit + 1, after_day=start.day, after_id=start.id, **values)
        return [Position(*row) for row in rows]

    async def counted(self, database: Database, **values: Any) -> int:
        """How many records there are, COUNT_MAX at most."""
        found: int = await database.value(self.count, rows=COUNT_MAX, after_day=FIRST_DAY, after_id=0, **values)
        return found


def days_between(request: Any, from_field: str, to_field: str) -> dict[str, datetime.date]:
    """The parameters from_day and to_day. A record without a day is in no range. Raises Refusal 400."""
    first, last = (
        day_of(getattr(request, name), name) if request.HasField(name) else None for name in (from_field, to_field)
    )
    if first and last and first > last:
        raise invalid_request(f"{to_field} is before {from_field}.", to_field)
    open_end = NO_DAY - datetime.timedelta(days=1) if first else NO_DAY
    return {"from_day": first or FIRST_DAY, "to_day": last or open_end}
