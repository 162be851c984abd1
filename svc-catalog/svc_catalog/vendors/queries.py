"""Every SQL statement about vendors, named for what it returns. The company comes first in each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Text, bindparam, exists, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany, UpdateMany
from chassis.db.statements import Statement, param
from chassis.imports.importer import ImportTable
from chassis.lists.paging import Pages
from svc_catalog.references import ReferenceRows
from svc_catalog.schema import company
from svc_catalog.selects import by_id, named, rows_of
from svc_catalog.vendors.tables import business, vendor

_company_id = param("company_id", BigInteger)
VENDOR_NAME = func.coalesce(vendor.c.nickname, business.c.legal_name)

# In the order in which `records.VendorLinks` takes them.
VENDOR_COLUMNS: tuple[ColumnElement[Any], ...] = (
    vendor.c.id,
    VENDOR_NAME,
    business.c.id,
    business.c.legal_name,
    business.c.website,
    vendor.c.avg_rating,
    vendor.c.rating_count,
    vendor.c.is_active,
    vendor.c.property_visibility,
    vendor.c.onboarded_at,
    vendor.c.retired_at,
    vendor.c.last_compliance_state,
    vendor.c.version,
)

WITH_BUSINESS = vendor.join(business, named(vendor, "business_id", business))
_vendors = rows_of(VENDOR_COLUMNS, WITH_BUSINESS)
VENDOR = by_id(_vendors, vendor)

VENDORS_PAGE = Pages(_vendors, vendor.c.company_id, vendor.c.id, {})


async def vendor_of(database: Database, company_id: int, vendor_id: int) -> Record | None:
    """A row of VENDOR_COLUMNS."""
    return await database.row(VENDOR, company_id=company_id, entity_id=vendor_id)


VENDOR_REFERENCES = ReferenceRows(
    vendor,
    select(
        vendor.c.id,
        vendor.c.version,
        vendor.c.company_id,
        VENDOR_NAME.label("name"),
        vendor.c.external_id,
        vendor.c.on_hold,
    ).select_from(WITH_BUSINESS),
)

# rules.Standing
STANDING = (
    "on_hold",
    "hold_reason",
    "insurance_tracked",
    "insurance_expires_on",
    "lapse_held_for",
    "compliance_due_on",
    "last_compliance_state",
)

VENDORS = ImportTable(
    vendor,
    "business_id",
    "nickname",
    "avg_rating",
    "rating_count",
    "is_active",
    "property_visibility",
    "onboarded_at",
    "retired_at",
    "held_at",
    *STANDING,
)

_BUSINESSES = Statement(
    select(
        business.c.company_id,
        business.c.id,
        business.c.legal_name,
        business.c.website,
        exists()
        .where(
            vendor.c.company_id == business.c.company_id,
            vendor.c.business_id == business.c.id,
            or_(
                vendor.c.external_id.is_(None),
                vendor.c.external_id != func.all(bindparam("external_ids", type_=ARRAY(Text))),
            ),
        )
        .label("is_shared"),
    )
    .where(
        business.c.company_id == _company_id,
        or_(
            business.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))),
            business.c.legal_name == func.any(bindparam("legal_names", type_=ARRAY(Text))),
        ),
    )
    .order_by(business.c.id)
    .with_for_update(of=business)
)
_INSERT_BUSINESSES = InsertMany(business, ("company_id", "legal_name", "website"), business.c.id, business.c.legal_name)
_UPDATE_BUSINESSES = UpdateMany(business, ("website",))


async def businesses(
    connection: Connection,
    company_id: int,
    ids: Collection[int],
    legal_names: Collection[str],
    external_ids: Collection[str],
) -> list[Record]:
    """Those that have one of the ids or legal names; is_shared tells whether vendors other than these name it."""
    return await connection.rows(
        _BUSINESSES,
        company_id=company_id,
        ids=sorted(ids),
        legal_names=sorted(legal_names),
        external_ids=list(external_ids),
    )


async def insert_businesses(connection: Connection, rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The id of each, by its legal name."""
    return {row["legal_name"]: row["id"] for row in await _INSERT_BUSINESSES.run(connection, rows)}


async def save_websites(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    await _UPDATE_BUSINESSES.run(connection, rows)


_vendor_id = param("vendor_id", BigInteger)

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
    """A row of VENDOR_COLUMNS of a vendor that is there."""
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


# Of the sweep


def to_be_looked_at(day: Any, _now: Any) -> tuple[Any, ...]:
    """Vendors of whose insurance the day may say something new."""
    return (vendor.c.compliance_due_on <= day,)


# The standing, and what is told of the vendor, with the timezone of its company.
DUE_VENDORS = select(
    vendor.c.company_id,
    vendor.c.id,
    vendor.c.version,
    vendor.c.external_id,
    vendor.c.held_at,
    *(vendor.c[name] for name in STANDING),
    VENDOR_NAME.label("name"),
    company.c.timezone,
).select_from(WITH_BUSINESS.join(company, company.c.id == vendor.c.company_id))
_SAVE_STANDINGS = UpdateMany(vendor, ("version", "held_at", *STANDING))


async def save_standings(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """rows: the key, version, held_at and the standing of vendors as they will be."""
    await _SAVE_STANDINGS.run(connection, rows)
