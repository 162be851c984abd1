"""The SQL statement that names actors."""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Record
from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Table,
    bindparam,
    cast,
    func,
    literal,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Database
from chassis.db.statements import Expression, Selection, Statement
from gateway.identity.keys.tables import api_key
from gateway.identity.tables.administrators import administrator
from gateway.identity.tables.companies import company
from gateway.identity.tables.staff import staff

_company_id = bindparam("company_id", type_=BigInteger)


_no_name = literal("").label("administrator_name")
_no_state = cast(null(), Boolean).label("administrator_active")


# Administrators of a live company work in its sandboxes.
_live_company_id = select(company.c.sandbox_of).where(company.c.id == _company_id).scalar_subquery()


def _of_company(kind: str, table: Table, active: ColumnElement[bool], ids: str, *more: Expression) -> Selection:
    is_of_company = table.c.company_id == _company_id
    if table is administrator:
        is_of_company = or_(is_of_company, table.c.company_id == _live_company_id)
    return select(literal(kind).label("kind"), table.c.id, table.c.name, active.label("active"), *more).where(
        is_of_company, table.c.id == func.any(bindparam(ids, type_=ARRAY(BigInteger)))
    )


_minter = administrator.alias("minter")
_ACTORS = Statement(
    union_all(
        _of_company("administrator", administrator, administrator.c.active, "administrator_ids", _no_name, _no_state),
        _of_company("staff", staff, staff.c.active, "staff_ids", _no_name, _no_state),
        _of_company(
            "key",
            api_key,
            api_key.c.revoked_at.is_(None),
            "key_ids",
            func.coalesce(_minter.c.name, literal("")).label("administrator_name"),
            _minter.c.active.label("administrator_active"),
        ).outerjoin_from(api_key, _minter, _minter.c.id == api_key.c.administrator_id),
    )
)


async def actors(
    database: Database,
    company_id: int,
    administrator_ids: Sequence[int],
    staff_ids: Sequence[int],
    key_ids: Sequence[int],
) -> list[Record]:
    """kind ("administrator", "staff", "key"), id, name and active of those of the company that exist; of a key also
    administrator_name and administrator_active, empty and None if no administrator is on record."""
    return await database.rows(
        _ACTORS,
        company_id=company_id,
        administrator_ids=list(administrator_ids),
        staff_ids=list(staff_ids),
        key_ids=list(key_ids),
    )
