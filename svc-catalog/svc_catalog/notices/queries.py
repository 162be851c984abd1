"""Every SQL statement about notices, named for what it returns. The company comes first in each."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, and_, bindparam, cast, delete, func, literal_column, select, true, update
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by
from sqlalchemy.types import NullType

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany
from chassis.db.statements import TIME, Statement, param
from chassis.imports.importer import ImportTable
from svc_catalog.editing import Kept
from svc_catalog.notices.tables import notice, notice_unit
from svc_catalog.places import tables as t
from svc_catalog.schema import outbox
from svc_catalog.selects import named

_company_id = param("company_id", BigInteger)
_IDS = ARRAY(BigInteger)
CONTENT = ("property_id", "subject", "body", "when", "area")
KEPT = Kept(notice, *CONTENT)
PROPERTY = Kept(t.property_)

_unit = and_(t.unit.c.company_id == notice_unit.c.company_id, t.unit.c.id == notice_unit.c.unit_id)
_units = (
    select(
        # Of no type to Core, which would have a list of asyncpg's made anew.
        func.coalesce(
            func.array_agg(aggregate_order_by(t.unit.c.id, t.unit.c.id)),
            cast(literal_column("'{}'"), _IDS),
            type_=NullType(),
        ).label("ids"),
        func.min(t.unit.c.name).label("name"),
    )
    .select_from(notice_unit.join(t.unit, _unit))
    .where(notice_unit.c.company_id == notice.c.company_id, notice_unit.c.notice_id == notice.c.id)
    .correlate(notice)
    .lateral("units")
)
_notices = select(
    notice,
    t.property_.c.name.label("property_name"),
    _units.c.ids.label("unit_ids"),
    _units.c.name.label("unit_name"),
).select_from(notice.join(t.property_, named(notice, "property_id", t.property_)).join(_units, true()))

_BY_IDS = Statement(
    _notices.where(notice.c.company_id == _company_id, notice.c.id == func.any(param("ids", _IDS))).order_by(
        notice.c.id
    )
)
_page = (
    _notices.where(notice.c.company_id == _company_id, notice.c.id > param("after_id", BigInteger))
    .order_by(notice.c.id)
    .limit(param("rows", Integer))
)
_PAGE = Statement(_page)
_PAGE_OF_PROPERTY = Statement(_page.where(notice.c.property_id == param("property_id", BigInteger)))
_PUBLISH = Statement(
    update(notice)
    .where(notice.c.company_id == _company_id, notice.c.id == param("notice_id", BigInteger))
    .values(
        published_at=bindparam("at", type_=TIME), updated_at=bindparam("at", type_=TIME), version=notice.c.version + 1
    )
)
_LEAVE_UNITS = Statement(
    delete(notice_unit).where(
        notice_unit.c.company_id == _company_id, notice_unit.c.notice_id == func.any(param("notice_ids", _IDS))
    )
)
_TAKE_UNITS = InsertMany(notice_unit, ("company_id", "notice_id", "unit_id", "property_id"))
_UNITS_OF_PROPERTY = Statement(
    select(t.unit.c.id)
    .where(
        t.unit.c.company_id == _company_id,
        t.unit.c.property_id == param("property_id", BigInteger),
        t.unit.c.id == func.any(param("ids", _IDS)),
    )
    .order_by(t.unit.c.id)
    .with_for_update(read=True, key_share=True)
)


async def notices_by_ids(connection: Connection, company_id: int, ids: Sequence[int]) -> list[Record]:
    """Rows of the table, with property_name, unit_ids and the name of one of the units, ascending by id."""
    return await connection.rows(_BY_IDS, company_id=company_id, ids=ids) if ids else []


async def notices_page(
    database: Database, company_id: int, after_id: int, limit: int, property_id: int | None
) -> list[Record]:
    """The same rows, the next ones after an id."""
    values = {"company_id": company_id, "after_id": after_id, "rows": limit}
    if property_id is None:
        return await database.rows(_PAGE, **values)
    return await database.rows(_PAGE_OF_PROPERTY, **values, property_id=property_id)


async def publish(connection: Connection, company_id: int, notice_id: int, at: datetime.datetime) -> None:
    await connection.execute(_PUBLISH, company_id=company_id, notice_id=notice_id, at=at)


async def units_of_property(
    connection: Connection, company_id: int, property_id: int, ids: Sequence[int]
) -> list[Record]:
    """The id of each of the units that lies in the property, which stays there until the commit."""
    return await connection.rows(_UNITS_OF_PROPERTY, company_id=company_id, property_id=property_id, ids=ids)


async def put_units(connection: Connection, company_id: int, units: Sequence[tuple[int, int, Sequence[int]]]) -> None:
    """units: of each notice its id, its property's and those of the units that it is for from now on."""
    await connection.execute(_LEAVE_UNITS, company_id=company_id, notice_ids=[one for one, _, _ in units])
    rows = [
        {"company_id": company_id, "notice_id": notice_id, "unit_id": unit_id, "property_id": property_id}
        for notice_id, property_id, unit_ids in units
        for unit_id in unit_ids
    ]
    await _TAKE_UNITS.run(connection, rows)


# Of an import

NOTICES = ImportTable(notice, *CONTENT, "published_at", "created_at")
INSERT_EVENTS = InsertMany(outbox, ("event_id", "subject", "message"))
