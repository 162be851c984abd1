"""The SQL statements about administrators, named for what they return."""

from __future__ import annotations

from asyncpg import Record
from sqlalchemy import BigInteger, Boolean, Text, bindparam, func, insert, or_, select, update

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from gateway.identity.accounts.tables import account, passkey
from gateway.identity.tables.administrators import administrator as _administrator
from gateway.identity.tables.companies import company

_NEW_ADMINISTRATOR = Statement(
    insert(_administrator)
    .from_select(
        ["company_id", "email", "name"],
        select(company.c.id, bindparam("email", type_=Text), bindparam("name", type_=Text)).where(
            company.c.id == bindparam("company_id", type_=BigInteger), company.c.ended_at.is_(None)
        ),
    )
    .returning(_administrator.c.id)
)
_ADMINISTRATOR_BY_EMAIL = Statement(
    select(_administrator.c.id, _administrator.c.company_id, _administrator.c.active, company.c.is_sandbox)
    .join_from(_administrator, company, company.c.id == _administrator.c.company_id)
    .where(_administrator.c.email == bindparam("email", type_=Text))
)

# Those who administer a company: its own administrators, and those of the live company whose sandbox it is.
_administered_id = bindparam("company_id", type_=BigInteger)
_live_company_id = select(company.c.sandbox_of).where(company.c.id == _administered_id).scalar_subquery()
_administers = or_(
    _administrator.c.company_id == _administered_id,
    _administrator.c.company_id == _live_company_id,
)
_ID_OF_ONE_WHO_ADMINISTERS = Statement(
    select(_administrator.c.id).where(
        or_(
            _administrator.c.email == bindparam("email", type_=Text),
            _administrator.c.id == bindparam("administrator_id", type_=BigInteger),
        ),
        _administers,
    )
)
_ADMINISTRATOR_BY_ID = Statement(
    select(_administrator.c.id, _administrator.c.company_id, _administrator.c.active).where(
        _administrator.c.id == bindparam("administrator_id", type_=BigInteger)
    )
)


async def new_administrator_id(connection: Connection, company_id: int, email: str, name: str) -> int | None:
    """None if there is no such company. Raises UniqueViolationError `administrator_email`."""
    new_id: int | None = await connection.value(_NEW_ADMINISTRATOR, company_id=company_id, email=email, name=name)
    return new_id


async def administrator(connection: Connection | Database, email: str) -> Record | None:
    """id, company_id and active of the administrator with this email; no two have the same."""
    return await connection.row(_ADMINISTRATOR_BY_EMAIL, email=email)


async def administrator_by_id(connection: Connection, administrator_id: int) -> Record | None:
    """id, company_id and active."""
    return await connection.row(_ADMINISTRATOR_BY_ID, administrator_id=administrator_id)


async def id_of_administrator(
    on: Connection | Database, company_id: int, *, email: str | None = None, administrator_id: int | None = None
) -> int | None:
    """The administrator with this email or id, if they administer the company: as one of its own, or as one of the live
    company whose sandbox it is."""
    known_id: int | None = await on.value(
        _ID_OF_ONE_WHO_ADMINISTERS, company_id=company_id, email=email, administrator_id=administrator_id
    )
    return known_id


_id = bindparam("administrator_id", type_=BigInteger)
_company_id = bindparam("company_id", type_=BigInteger)
_passkeys = select(func.count()).where(passkey.c.account_id == account.c.id).scalar_subquery()
_ADMINISTRATORS = Statement(
    select(
        *(_administrator.c[name] for name in ("id", "email", "name", "active", "created_at")),
        account.c.password.is_not(None).label("has_password"),
        account.c.totp_since.is_not(None).label("has_totp"),
        _passkeys.label("passkeys"),
        account.c.last_sign_in_at,
    )
    .outerjoin_from(_administrator, account, account.c.administrator_id == _administrator.c.id)
    .where(_administrator.c.company_id == _company_id)
    .order_by(_administrator.c.id)
)
_FOR_UPDATE = Statement(
    select(_administrator)
    .where(_administrator.c.company_id == _company_id, _administrator.c.id == _id)
    .with_for_update(key_share=True)
)
_CHANGE = Statement(
    update(_administrator)
    .where(_administrator.c.id == _id)
    .values(
        name=bindparam("new_name", type_=Text),
        email=func.coalesce(bindparam("new_email", type_=Text), _administrator.c.email),
    )
)
_SET_ACTIVE = Statement(
    update(_administrator).where(_administrator.c.id == _id).values(active=bindparam("new_active", type_=Boolean))
)


async def administrators(on: Connection | Database, company_id: int) -> list[Record]:
    """The company's administrators ascending by id, with how they sign in."""
    return await on.rows(_ADMINISTRATORS, company_id=company_id)


async def administrator_for_update(connection: Connection, company_id: int, administrator_id: int) -> Record | None:
    return await connection.row(_FOR_UPDATE, company_id=company_id, administrator_id=administrator_id)


async def change_administrator(connection: Connection, administrator_id: int, name: str, email: str | None) -> None:
    """email: None leaves it. Raises UniqueViolationError `administrator_email`."""
    await connection.execute(_CHANGE, administrator_id=administrator_id, new_name=name, new_email=email)


async def set_active(connection: Connection, administrator_id: int, active: bool) -> None:
    await connection.execute(_SET_ACTIVE, administrator_id=administrator_id, new_active=active)
