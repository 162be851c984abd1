"""Every SQL statement of the back office about vendors, and of the sweep. The company comes first in each."""

from __future__ import annotations

from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Text, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from svc_catalog.queries_vendors import STANDING, VENDOR, VENDOR_NAME, WITH_BUSINESS
from svc_catalog.tables_vendors import business, vendor

_company_id, _vendor_id = param("company_id", BigInteger), param("vendor_id", BigInteger)

_RECORD = (
    "business_id",
    "nickname",
    "avg_rating",
    "rating_count",
    "is_active",
    "property_visibility",
    "retired_at",
    "external_id",
)
_CHANGEABLE = (*_RECORD, *STANDING, "held_at")

_NEW = ("company_id", *_RECORD, "onboarded_at", "source")
_INSERT = Statement(
    insert(vendor).values({name: param(name, vendor.c[name].type) for name in _NEW}).returning(vendor.c.id)
)
_same_vendor = (vendor.c.company_id == _company_id, vendor.c.id == _vendor_id)
# By a statement of its own: one that has waited for the lock sees the vendor as it is by then, and its business as it
# was before, and finds nothing where the vendor is another business by now.
_LOCK = Statement(select(vendor.c.id).where(*_same_vendor).with_for_update(key_share=True))
_VENDOR = Statement(
    select(vendor.c.id, vendor.c.version, *(vendor.c[name] for name in _CHANGEABLE), business.c.legal_name)
    .add_columns(business.c.website, VENDOR_NAME.label("name"))
    .select_from(WITH_BUSINESS)
    .where(*_same_vendor)
)
_UPDATE = Statement(
    update(vendor)
    .where(*_same_vendor)
    .values({name: param(name, vendor.c[name].type) for name in _CHANGEABLE} | {"version": vendor.c.version + 1})
)


async def add_vendor(connection: Connection, **values: Any) -> int:
    """The id of a vendor with these values. Raises UniqueViolationError for an external_id that another one has."""
    made: int = await connection.value(_INSERT, **values)
    return made


async def vendor_for_update(connection: Connection, company_id: int, vendor_id: int) -> dict[str, Any] | None:
    """All that the back office may change of a vendor, which is locked, with its name, legal_name and website."""
    await connection.execute(_LOCK, company_id=company_id, vendor_id=vendor_id)
    row = await connection.row(_VENDOR, company_id=company_id, vendor_id=vendor_id)
    return None if row is None else dict(row)


async def save_vendor(connection: Connection, company_id: int, vendor_id: int, values: dict[str, Any]) -> None:
    """values: as `vendor_for_update` returns them. Raises UniqueViolationError as `add_vendor` does."""
    changeable = {name: values[name] for name in _CHANGEABLE}
    await connection.execute(_UPDATE, company_id=company_id, vendor_id=vendor_id, **changeable)


async def vendor_row(connection: Connection, company_id: int, vendor_id: int) -> Record:
    """A row of queries_vendors.VENDOR_COLUMNS of a vendor that is there."""
    row = await connection.row(VENDOR, company_id=company_id, entity_id=vendor_id)
    assert row is not None
    return row


# Made where nobody named it before; whoever names it first at the same moment waits for the other.
_new_business = upsert(business).values(company_id=_company_id, legal_name=param("legal_name", Text))
_BUSINESS = Statement(
    _new_business.on_conflict_do_update(
        constraint="business_legal_name", set_={"legal_name": _new_business.excluded.legal_name}
    ).returning(business.c.id)
)
_SAVE_WEBSITE = Statement(
    update(business)
    .where(business.c.company_id == _company_id, business.c.id == param("business_id", BigInteger))
    .values(website=param("website", Text))
)


async def business_named(connection: Connection, company_id: int, legal_name: str) -> int:
    """The id of the company's business with this legal name, which is locked."""
    found: int = await connection.value(_BUSINESS, company_id=company_id, legal_name=legal_name)
    return found


async def save_website(connection: Connection, company_id: int, business_id: int, website: str | None) -> None:
    await connection.execute(_SAVE_WEBSITE, company_id=company_id, business_id=business_id, website=website)


_HOLDS = Statement(
    select(
        vendor.c.id.label("vendor_id"),
        VENDOR_NAME.label("name"),
        vendor.c.hold_reason.label("reason"),
        vendor.c.held_at,
        vendor.c.insurance_expires_on,
    )
    .select_from(WITH_BUSINESS)
    .where(vendor.c.company_id == _company_id, vendor.c.on_hold)
    .order_by(vendor.c.id)
)


async def vendors_on_hold(database: Database, company_id: int) -> list[Record]:
    return await database.rows(_HOLDS, company_id=company_id)
