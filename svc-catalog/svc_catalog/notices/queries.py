"""Every SQL statement about notices, named for what it returns. The first parameter is the company."""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Record
from sqlalchemy import BigInteger, Integer, delete, func, select, true

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany
from chassis.db.statements import Statement, param
from chassis.imports.importer import ImportTable
from svc_catalog.notices.records import NOTICE
from svc_catalog.notices.tables import notice, notice_unit, units_of_notice
from svc_catalog.places.tables import property_, unit
from svc_catalog.schema import IDS, editable_columns
from svc_catalog.selects import by_id, refers_to

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
_LEAVE_UNITS = Statement(
    delete(notice_unit).where(
        notice_unit.c.company_id == _company_id, notice_unit.c.notice_id == func.any(param("notice_ids", IDS))
    )
)
_TAKE_UNITS = InsertMany(notice_unit, ("company_id", "notice_id", "unit_id", "property_id"))
_UNITS_OF_PROPERTY = Statement(
    select(unit.c.id)
    .where(
        unit.c.company_id == _company_id,
        unit.c.property_id == param("property_id", BigInteger),
        unit.c.id == func.any(param("ids", IDS)),
    )
    .order_by(unit.c.id)
    .with_for_update(read=True, key_share=True)
)


async def notices_by_ids(connection: Connection, company_id: int, ids: Sequence[int]) -> list[Record]:
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


async def units_of_property(
    connection: Connection, company_id: int, property_id: int, ids: Sequence[int]
) -> list[Record]:
    """The ids of those units that are in the property. They are locked, and stay in it, until the commit."""
    return await connection.rows(_UNITS_OF_PROPERTY, company_id=company_id, property_id=property_id, ids=ids)


async def put_units(connection: Connection, company_id: int, units: Sequence[tuple[int, int, Sequence[int]]]) -> None:
    """Replaces the units of each notice. units: for each notice its id, its property's id and its unit ids."""
    await connection.execute(_LEAVE_UNITS, company_id=company_id, notice_ids=[one for one, _, _ in units])
    rows = [
        {"company_id": company_id, "notice_id": notice_id, "unit_id": unit_id, "property_id": property_id}
        for notice_id, property_id, unit_ids in units
        for unit_id in unit_ids
    ]
    await _TAKE_UNITS.run(connection, rows)


NOTICES = ImportTable(notice, *editable_columns(notice))
