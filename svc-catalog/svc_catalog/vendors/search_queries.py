"""The statements of people's lists of vendors, named for what they return. The first parameter is the company."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import BigInteger, Integer, Text, func, literal_column, select, true
from sqlalchemy.dialects.postgresql import array

from chassis.db.database import Database
from chassis.db.statements import TEXTS, Expression, Query, Statement, param
from chassis.lists.updated_since import is_of, status_key
from chassis.writes.audit import CLOCK_STEP_MAX
from svc_catalog.day_pages import FIRST_DAY, LAST_ID, NO_DAY, DayPages, Days, DaySearch, Position
from svc_catalog.schema import IDS, audit
from svc_catalog.vendors import words
from svc_catalog.vendors.queries import WITH_BUSINESS
from svc_catalog.vendors.tables import (
    BUSINESS_WORDS,
    INSURED_UNTIL,
    SEARCH_STATE,
    VENDOR_NAME,
    VENDOR_TEXT,
    VENDOR_WORDS,
    business,
    vendor,
)

_company_id = param("company_id", BigInteger)
_states, _rows = param("states", TEXTS), param("rows", Integer)

BY_INSURANCE = DayPages(
    vendor,
    INSURED_UNTIL,
    SEARCH_STATE,
    vendor.c.company_id,
    _company_id,
    [(vendor.c.company_id, _company_id)],
)


class FoundVendor(NamedTuple):
    id: int
    name: str
    legal_name: str
    website: str | None
    avg_rating: float | None
    rating_count: int
    is_active: bool
    property_visibility: str
    onboarded_at: datetime.datetime
    retired_at: datetime.datetime | None
    last_compliance_state: str | None
    insurance_tracked: bool
    insurance_expires_on: datetime.date | None
    on_hold: bool
    hold_reason: str | None
    held_at: datetime.datetime | None
    external_id: str | None
    source: str


_JOINED: dict[str, Expression] = {
    "name": VENDOR_NAME.label("name"),
    "legal_name": business.c.legal_name,
    "website": business.c.website,
}
_columns = (_JOINED[name] if name in _JOINED else vendor.c[name] for name in FoundVendor._fields)
_mine = select(*_columns).select_from(WITH_BUSINESS).where(vendor.c.company_id == _company_id)
_BY_IDS = Query(FoundVendor, _mine.where(vendor.c.id == func.any(param("ids", IDS))))
_ONE = Query(FoundVendor, _mine.where(vendor.c.id == param("vendor_id", BigInteger)))
_EXTERNAL = Statement(
    select(vendor.c.id).where(
        vendor.c.company_id == _company_id,
        vendor.c.external_id == param("external_id", Text),
        sa.any_(_states) == SEARCH_STATE,
    )
)


def _newest() -> Statement:
    """As `DayPages`, by id alone."""
    states = func.unnest(_states).table_valued("state", name="states").render_derived()
    key = status_key(vendor.c.company_id, SEARCH_STATE)
    matches = (
        select(vendor.c.id)
        .where(
            key == sa.any_(array([status_key(_company_id, states.c.state)])),
            vendor.c.id < param("before_id", BigInteger),
            *is_of([(vendor.c.company_id, _company_id), (SEARCH_STATE, states.c.state)]),
        )
        .order_by(key.desc(), vendor.c.id.desc())
        .limit(_rows)
        .correlate(states)
        .lateral("matches")
    )
    return Statement(
        select(matches.c.id).select_from(states.join(matches, true())).order_by(matches.c.id.desc()).limit(_rows)
    )


def _named(*, by_insurance: bool) -> Statement:
    """Vendors by words. Its cost grows with the vendors that have them, not with the table."""
    text = param("words", Text)
    query = words.query_of(_company_id, text)
    of_vendor = select(vendor.c.id).where(
        VENDOR_WORDS.op("@@")(query), vendor.c.company_id == _company_id, words.holds(VENDOR_TEXT, text)
    )
    of_business = (
        select(vendor.c.id)
        .select_from(WITH_BUSINESS)
        .where(
            BUSINESS_WORDS.op("@@")(query),
            business.c.company_id == _company_id,
            words.holds(business.c.legal_name, text),
        )
    )
    ids = sa.union(of_vendor, of_business).subquery("named")
    vendors = select(INSURED_UNTIL.label("day"), vendor.c.id).where(
        vendor.c.company_id == _company_id,
        vendor.c.id == func.any(func.array(select(ids.c.id).scalar_subquery())),
        sa.any_(_states) == SEARCH_STATE,
    )
    after_id = param("after_id", BigInteger)
    if not by_insurance:
        return Statement(vendors.where(vendor.c.id < after_id).order_by(vendor.c.id.desc()).limit(_rows))
    is_in = (param("from_day", sa.Date) <= INSURED_UNTIL, param("to_day", sa.Date) >= INSURED_UNTIL)
    is_after = sa.tuple_(INSURED_UNTIL, vendor.c.id) > sa.tuple_(param("after_day", sa.Date), after_id)
    return Statement(vendors.where(*is_in, is_after).order_by(INSURED_UNTIL, vendor.c.id).limit(_rows))


NEWEST = _newest()
NAMED_NEWEST, NAMED_BY_INSURANCE = _named(by_insurance=False), _named(by_insurance=True)


class VendorSearch(NamedTuple):
    """What a search shows. words: None for all names. states: see rules.search_states."""

    words: str | None
    states: list[str]
    days: Days
    by_insurance: bool


async def page(
    database: Database, company_id: int, search: VendorSearch, limit: int, after: Position | None
) -> list[Position]:
    """Up to limit + 1 positions; the extra one means that another page follows. Without an order by insurance, their
    day is NO_DAY."""
    if search.by_insurance and search.words is None:
        by_day = DaySearch(search.states, search.days, {})
        return await BY_INSURANCE.page(database, company_id, by_day, limit, after, newest_first=False)
    values = {"company_id": company_id, "states": search.states, "rows": limit + 1}
    if search.by_insurance:
        start = after or Position(FIRST_DAY, 0)
        rows = await database.rows(
            NAMED_BY_INSURANCE,
            words=search.words,
            from_day=search.days.first,
            to_day=search.days.last,
            after_day=start.day,
            after_id=start.id,
            **values,
        )
        return [Position(*row) for row in rows]
    before_id = after.id if after else LAST_ID
    if search.words is None:
        rows = await database.rows(NEWEST, before_id=before_id, **values)
    else:
        rows = await database.rows(NAMED_NEWEST, after_id=before_id, words=search.words, **values)
    return [Position(NO_DAY, row["id"]) for row in rows]


async def with_external_id(database: Database, company_id: int, external_id: str, states: list[str]) -> list[Position]:
    """The vendor with this external id, if it has one of the states."""
    rows = await database.rows(_EXTERNAL, company_id=company_id, external_id=external_id, states=states)
    return [Position(NO_DAY, row["id"]) for row in rows]


async def vendors_by_ids(database: Database, company_id: int, ids: list[int]) -> list[FoundVendor]:
    """In the order of the ids."""
    if not ids:
        return []
    by_id = {row.id: row for row in await _BY_IDS.rows(database, company_id=company_id, ids=ids)}
    return [by_id[vendor_id] for vendor_id in ids if vendor_id in by_id]


async def vendor_by_id(database: Database, company_id: int, vendor_id: int) -> FoundVendor | None:
    return await _ONE.row(database, company_id=company_id, vendor_id=vendor_id)


async def counted(database: Database, company_id: int, states: list[str], days: Days) -> int:
    """How many vendors there are in these states with insurance that ends in these days, COUNT_MAX at most."""
    return await BY_INSURANCE.counted(database, company_id, DaySearch(states, days, {}))


# The newest entry about the vendor's hold, since the hold began by the service's clock; entries have PostgreSQL's.
_HELD_BY = Statement(
    select(audit.c.actor)
    .where(
        audit.c.company_id == _company_id,
        audit.c.subject == literal_column("'vendor'"),
        audit.c.subject_id == param("vendor_id", BigInteger),
        audit.c.action == literal_column("'vendor.held'"),
        audit.c.recorded_at >= param("since", sa.DateTime(timezone=True)),
    )
    .order_by(audit.c.id.desc())
    .limit(literal_column("1"))
)


async def held_by(database: Database, company_id: int, vendor_id: int, since: datetime.datetime) -> str | None:
    """Who placed the hold or gave its present reason, as the audit log spells it; None if no entry says so. since: an
    instant of the log at or before the hold."""
    actor: str | None = await database.value(
        _HELD_BY, company_id=company_id, vendor_id=vendor_id, since=since - CLOCK_STEP_MAX
    )
    return actor
