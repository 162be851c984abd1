"""Every SQL statement about notices, named for what it returns. The first parameter is the company."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, delete, func, literal_column, select, true, tuple_
from sqlalchemy.dialects.postgresql import array

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany
from chassis.db.statements import TIME, Statement, param
from chassis.imports.importer import ImportTable
from chassis.lists.updated_since import stretch
from svc_catalog.day_pages import COUNT_MAX, LAST_ID
from svc_catalog.notices.records import NOTICE
from svc_catalog.notices.tables import PUBLISHED_OR_COMPOSING, notice, notice_unit, units_of_notice
from svc_catalog.places.tables import property_, unit
from svc_catalog.schema import IDS, editable_columns
from svc_catalog.selects import by_id, refers_to

# asyncpg reads and writes the infinite instants as these, which have no timezone.
EVER, NEVER = datetime.datetime.min, datetime.datetime.max
LAST_INSTANT = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)

_company_id = param("company_id", BigInteger)

_notices = NOTICE.select(
    notice.join(property_, refers_to(notice, "property_id", property_)).join(units_of_notice, true())
)
ONE_NOTICE = by_id(_notices, notice)
_BY_IDS = Statement(
    _notices.where(notice.c.company_id == _company_id, notice.c.id == func.any(param("ids", IDS))).order_by(notice.c.id)
)
_page = (
    _notices.where(notice.c.company_id == _company_id, notice.c.id > param("after_id", BigInteger))
    .order_by(notice.c.id)
    .limit(param("rows", Integer))
)
_PAGE = Statement(_page)
_PAGE_OF_PROPERTY = Statement(_page.where(notice.c.property_id == param("property_id", BigInteger)))


def _newest(*, of_property: bool) -> Statement:
    """Notices that are being composed, then those published from `from_at` to `to_at`, the newest first."""
    having = [(notice.c.company_id, _company_id)]
    if of_property:
        having.append((notice.c.property_id, param("property_id", BigInteger)))
    conditions, order = stretch(having, [])
    order = [*order, PUBLISHED_OR_COMPOSING, notice.c.id]
    at = tuple_(param("after_at", TIME), param("after_id", BigInteger))
    rows = (
        select(notice.c.id, PUBLISHED_OR_COMPOSING.label("at"))
        .where(
            *conditions,
            param("from_at", TIME) <= PUBLISHED_OR_COMPOSING,
            param("to_at", TIME) >= PUBLISHED_OR_COMPOSING,
            tuple_(PUBLISHED_OR_COMPOSING, notice.c.id) < at,
        )
        .order_by(*(column.desc() for column in order))
        .limit(param("rows", Integer))
    )
    return Statement(rows)


NEWEST = {of_property: _newest(of_property=of_property) for of_property in (False, True)}
_COUNT = Statement(
    select(func.count()).select_from(
        select(notice.c.id)
        .where(
            notice.c.company_id == func.any(array([_company_id])),
            param("from_at", TIME) <= PUBLISHED_OR_COMPOSING,
            param("to_at", TIME) >= PUBLISHED_OR_COMPOSING,
        )
        .order_by(notice.c.company_id, PUBLISHED_OR_COMPOSING, notice.c.id)
        .limit(literal_column(str(COUNT_MAX)))
        .subquery("counted")
    )
)
_UNITS = Statement(
    select(unit.c.id, unit.c.name)
    .select_from(
        notice_unit.join(unit, (unit.c.company_id == notice_unit.c.company_id) & (unit.c.id == notice_unit.c.unit_id))
    )
    .where(notice_unit.c.company_id == _company_id, notice_unit.c.notice_id == param("notice_id", BigInteger))
    .order_by(unit.c.name, unit.c.id)
)
_LEAVE_UNITS = Statement(
    delete(notice_unit).where(
        notice_unit.c.company_id == _company_id, notice_unit.c.notice_id == func.any(param("notice_ids", IDS))
    )
)
_TAKE_UNITS = InsertMany(notice_unit, ("company_id", "notice_id", "unit_id", "property_id"))
_in_property = (
    unit.c.company_id == _company_id,
    unit.c.property_id == param("property_id", BigInteger),
    unit.c.id == func.any(param("ids", IDS)),
)
_UNITS_OF_PROPERTY = Statement(
    select(unit.c.id).where(*_in_property).order_by(unit.c.id).with_for_update(read=True, key_share=True)
)
_NAMED_UNITS = Statement(select(unit.c.id, unit.c.name).where(*_in_property).order_by(unit.c.name, unit.c.id))
_PROPERTY_NAME = Statement(
    select(property_.c.name).where(
        property_.c.company_id == _company_id, property_.c.id == param("property_id", BigInteger)
    )
)
_DELETE = Statement(
    delete(notice).where(notice.c.company_id == _company_id, notice.c.id == param("notice_id", BigInteger))
)


async def notices_by_ids(connection: Connection | Database, company_id: int, ids: Sequence[int]) -> list[Record]:
    """Rows of NOTICE, ascending by id."""
    return await connection.rows(_BY_IDS, company_id=company_id, ids=ids) if ids else []


async def notices_page(
    database: Database, company_id: int, after_id: int, limit: int, property_id: int | None
) -> list[Record]:
    """Rows of NOTICE with an id above after_id."""
    values = {"company_id": company_id, "after_id": after_id, "rows": limit}
    if property_id is None:
        return await database.rows(_PAGE, **values)
    return await database.rows(_PAGE_OF_PROPERTY, **values, property_id=property_id)


class Newest(NamedTuple):
    """A notice's place in the list of the newest ones. at: when it was published; NEVER while it is being composed."""

    id: int
    at: datetime.datetime


async def newest_notices(
    database: Database,
    company_id: int,
    limit: int,
    after: Newest | None,
    property_id: int | None,
    published: bool | None,
) -> list[Newest]:
    """Up to limit + 1 places; the extra one means that another page follows."""
    start = after or Newest(LAST_ID, NEVER)
    place = {} if property_id is None else {"property_id": property_id}
    last = LAST_INSTANT if published else NEVER
    rows = await database.rows(
        NEWEST[property_id is not None],
        company_id=company_id,
        from_at=NEVER if published is False else EVER,
        # PostgreSQL begins at this bound, not at the place.
        to_at=last if start.at == NEVER else start.at,
        after_at=start.at,
        after_id=start.id,
        rows=limit + 1,
        **place,
    )
    return [Newest(*row) for row in rows]


async def counted_notices(
    database: Database, company_id: int, from_at: datetime.datetime, to_at: datetime.datetime
) -> int:
    """How many notices were published in this time, COUNT_MAX at most. From NEVER on: those being composed."""
    count: int = await database.value(_COUNT, company_id=company_id, from_at=from_at, to_at=to_at)
    return count


async def units_of(database: Database, company_id: int, notice_id: int) -> list[Record]:
    """The id and the name of each unit that a notice is for."""
    return await database.rows(_UNITS, company_id=company_id, notice_id=notice_id)


async def units_of_property(
    connection: Connection, company_id: int, property_id: int, ids: Sequence[int]
) -> list[Record]:
    """The ids of those units that are in the property. They are locked, and stay in it, until the commit."""
    return await connection.rows(_UNITS_OF_PROPERTY, company_id=company_id, property_id=property_id, ids=ids)


async def named_units(database: Database, company_id: int, property_id: int, ids: Sequence[int]) -> list[Record]:
    """The id and the name of each of those units that is in the property, by name."""
    return await database.rows(_NAMED_UNITS, company_id=company_id, property_id=property_id, ids=ids)


async def property_name(database: Database, company_id: int, property_id: int) -> str | None:
    """The property's name; None if the company has no such property."""
    row = await database.row(_PROPERTY_NAME, company_id=company_id, property_id=property_id)
    return None if row is None else str(row["name"])


async def delete_notice(connection: Connection, company_id: int, notice_id: int) -> None:
    """Deletes the notice and its audience."""
    await connection.execute(_LEAVE_UNITS, company_id=company_id, notice_ids=[notice_id])
    await connection.execute(_DELETE, company_id=company_id, notice_id=notice_id)


async def put_units(connection: Connection, company_id: int, units: Sequence[tuple[int, int, Sequence[int]]]) -> None:
    """Replaces the units of each notice. units: for each notice its id, its property's id and its unit ids."""
    await connection.execute(_LEAVE_UNITS, company_id=company_id, notice_ids=[notice_id for notice_id, _, _ in units])
    rows = [
        {"company_id": company_id, "notice_id": notice_id, "unit_id": unit_id, "property_id": property_id}
        for notice_id, property_id, unit_ids in units
        for unit_id in unit_ids
    ]
    await _TAKE_UNITS.run(connection, rows)


NOTICES = ImportTable(notice, *editable_columns(notice))
