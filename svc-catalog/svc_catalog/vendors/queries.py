"""Every SQL statement about vendors, named for what it returns. The first parameter is the company."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, ColumnElement, Text, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from chassis.changes.documents import Documents
from chassis.changes.feed import Changes
from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany, UpdateMany
from chassis.db.statements import TEXTS, Expression, Query, Statement, param
from chassis.imports.importer import ImportTable
from chassis.imports.undo import Beside
from chassis.lists.paging import Pages
from makeready.catalog.v1.vendors_pb2 import ListVendorsRequest
from svc_catalog.references import ReferenceRows
from svc_catalog.schema import IDS, company, editable_columns
from svc_catalog.selects import by_id, refers_to
from svc_catalog.vendors.records import VENDOR
from svc_catalog.vendors.rules import VendorCompliance
from svc_catalog.vendors.tables import VENDOR_NAME, business, vendor

_company_id = param("company_id", BigInteger)

WITH_BUSINESS = vendor.join(business, refers_to(vendor, "business_id", business))
_vendors = VENDOR.select(WITH_BUSINESS)
ONE_VENDOR = by_id(_vendors, vendor)
VENDOR_DOCUMENTS = Documents(VENDOR, _vendors, vendor)
VENDORS_PAGE = Pages(VENDOR_DOCUMENTS.rows, vendor.c.id, {}, request=ListVendorsRequest)
VENDOR_CHANGES = Changes("vendor", VENDOR_DOCUMENTS)

VENDOR_REFERENCES = ReferenceRows(
    "vendors",
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

VENDORS = ImportTable(vendor, *editable_columns(vendor))
WEBSITES = Beside(business, "website")

_COMPLIANCE = tuple(field.name for field in dataclasses.fields(VendorCompliance))


def compliance_of(row: Record | Mapping[str, Any]) -> VendorCompliance:
    """The compliance that a vendor's columns store."""
    return VendorCompliance(**{name: row[name] for name in _COMPLIANCE})


class StoredBusiness(NamedTuple):
    """is_shared: whether vendors outside the batch refer to it."""

    company_id: int
    id: int
    legal_name: str
    website: str | None
    is_shared: bool


_BUSINESSES = Query(
    StoredBusiness,
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
                vendor.c.external_id != func.all(param("external_ids", TEXTS)),
            ),
        )
        .label("is_shared"),
    )
    .where(
        business.c.company_id == _company_id,
        or_(
            business.c.id == func.any(param("ids", IDS)),
            business.c.legal_name == func.any(param("legal_names", TEXTS)),
        ),
    )
    .order_by(business.c.id)
    .with_for_update(of=business),
)
_INSERT_BUSINESSES = InsertMany(business, ("company_id", "legal_name", "website"), business.c.id, business.c.legal_name)
_UPDATE_BUSINESSES = UpdateMany(business, ("website",))


async def businesses(
    connection: Connection,
    company_id: int,
    ids: Collection[int],
    legal_names: Collection[str],
    external_ids: Collection[str],
) -> list[StoredBusiness]:
    """Businesses that have one of the ids or legal names. external_ids: the batch's vendors; see is_shared."""
    return await _BUSINESSES.rows(
        connection,
        company_id=company_id,
        ids=sorted(ids),
        legal_names=sorted(legal_names),
        external_ids=list(external_ids),
    )


async def insert_businesses(connection: Connection, rows: Sequence[Mapping[str, object]]) -> dict[str, int]:
    """Returns the ids by legal name. rows: company_id, legal_name, website."""
    return {row["legal_name"]: row["id"] for row in await _INSERT_BUSINESSES.run(connection, rows)}


async def save_websites(connection: Connection, rows: Sequence[StoredBusiness]) -> None:
    await _UPDATE_BUSINESSES.run(connection, [row._asdict() for row in rows])


# Inserts the business if it is new; the update on conflict makes a concurrent insert wait, and returns the id.
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
    """Locks the company's business with this legal name, created if missing, and returns its id."""
    business_id: int = await connection.value(_BUSINESS, company_id=company_id, legal_name=legal_name)
    return business_id


async def save_website(connection: Connection, company_id: int, business_id: int, website: str | None) -> None:
    await connection.execute(_SAVE_WEBSITE, company_id=company_id, business_id=business_id, website=website)


class HeldVendor(NamedTuple):
    vendor_id: int
    name: str
    reason: str
    held_at: datetime.datetime
    insurance_expires_on: datetime.date | None


_HOLDS = Query(
    HeldVendor,
    select(
        vendor.c.id.label("vendor_id"),
        VENDOR_NAME.label("name"),
        vendor.c.hold_reason.label("reason"),
        vendor.c.held_at,
        vendor.c.insurance_expires_on,
    )
    .select_from(WITH_BUSINESS)
    .where(vendor.c.company_id == _company_id, vendor.c.on_hold)
    .order_by(vendor.c.id),
)


async def vendors_on_hold(database: Database, company_id: int) -> list[HeldVendor]:
    return await _HOLDS.rows(database, company_id=company_id)


# Statements of the sweep


def insurance_due(day: Expression, _now: Expression) -> tuple[ColumnElement[bool], ...]:
    """The condition for vendors whose compliance may differ on this day."""
    return (vendor.c.compliance_due_on <= day,)


# The columns that the snapshot reads, those that other contexts replicate, and the company's timezone.
DUE_VENDORS = select(
    vendor.c.company_id,
    vendor.c.id,
    vendor.c.version,
    vendor.c.external_id,
    vendor.c.held_at,
    *(vendor.c[name] for name in _COMPLIANCE),
    VENDOR_NAME.label("name"),
    company.c.timezone,
).select_from(WITH_BUSINESS.join(company, company.c.id == vendor.c.company_id))
_SAVE_COMPLIANCE = UpdateMany(vendor, ("version", "held_at", *_COMPLIANCE))


async def save_compliance(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """rows: key, version, held_at and the columns of `VendorCompliance`, with the new values."""
    await _SAVE_COMPLIANCE.run(connection, rows)
