"""Every SQL statement about vendors, named for what it returns. The company comes first in each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Text, bindparam, exists, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany, UpdateMany
from chassis.db.statements import Statement
from chassis.imports.importer import ImportTable
from chassis.lists.paging import Pages
from svc_catalog.queries import by_id, named, rows_of
from svc_catalog.tables_vendors import business, vendor

_company_id = bindparam("company_id", type_=BigInteger)
VENDOR_NAME = func.coalesce(vendor.c.nickname, business.c.legal_name)

# In the order in which `records_vendors.VendorLinks` takes them.
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


# The fields of the message VendorReference in makeready.events.v1.
ALL_VENDOR_REFERENCES = select(
    vendor.c.id,
    vendor.c.version,
    vendor.c.company_id,
    VENDOR_NAME.label("name"),
    vendor.c.external_id,
    vendor.c.on_hold,
).select_from(WITH_BUSINESS)
VENDOR_REFERENCES = Statement(
    ALL_VENDOR_REFERENCES.where(
        vendor.c.company_id == _company_id,
        or_(
            vendor.c.id == func.any(bindparam("ids", type_=ARRAY(BigInteger))),
            vendor.c.external_id == func.any(bindparam("external_ids", type_=ARRAY(Text))),
        ),
    )
)

# rules_vendors_desk.Standing
STANDING = (
    "on_hold",
    "hold_reason",
    "insurance_tracked",
    "insurance_expires_on",
    "lapse_held_for",
    "compliance_due_on",
    "last_compliance_state",
)

# Of an import

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
