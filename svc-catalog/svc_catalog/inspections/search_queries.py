"""The statements of people's lists of inspections, named for what they return. The first parameter is the company."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy import BigInteger, Integer, Text, func, literal_column, select, true
from sqlalchemy.dialects.postgresql import ARRAY, array, distinct_on

from chassis.db.database import Database
from chassis.db.statements import TEXTS, Expression, Query, Statement, param
from chassis.lists.updated_since import Having, is_of, status_key
from svc_catalog.day_pages import DayPages, DaySearch, Position
from svc_catalog.inspections.tables import (
    FOR_PEOPLE,
    INSPECTION_DAY,
    IS_CANCELLED,
    SEARCH_ASSIGNEE,
    SEARCH_LEADS,
    SEARCH_STATE,
    SERVED,
    assignee_key,
    inspection,
)
from svc_catalog.places.tables import property_, unit
from svc_catalog.schema import IDS, audit, staff
from svc_catalog.selects import refers_to

_company_id = param("company_id", BigInteger)
_PLACES = {
    "property_id": (inspection.c.property_id, param("property_id", BigInteger)),
    "unit_id": (inspection.c.unit_id, param("unit_id", BigInteger)),
    "assignee_id": (SEARCH_ASSIGNEE, param("assignee_id", BigInteger)),
}


def _lead(names: Collection[str]) -> tuple[Expression, Expression]:
    """The lead of the index that finds the fewest inspections, and its value."""
    if "unit_id" in names:
        return SEARCH_LEADS["unit"], _PLACES["unit_id"][1]
    assignee = _PLACES["assignee_id"][1]
    if {"property_id", "assignee_id"} <= set(names):
        return SEARCH_LEADS["assignee_in_property"], assignee_key(_PLACES["property_id"][1], assignee)
    if "assignee_id" in names:
        return SEARCH_LEADS["assignee"], assignee_key(_company_id, assignee)
    if "property_id" in names:
        return SEARCH_LEADS["property"], _PLACES["property_id"][1]
    return SEARCH_LEADS["company"], _company_id


def _checks(names: Collection[str]) -> Having:
    return [(inspection.c.company_id, _company_id), *(_PLACES[name] for name in sorted(names))]


@functools.cache
def pages_of(names: frozenset[str]) -> DayPages:
    """The list of inspections with these filters: property_id, unit_id, assignee_id."""
    return DayPages(inspection, INSPECTION_DAY, SEARCH_STATE, *_lead(names), _checks(names), SERVED)


@functools.cache
def cancelled_pages_of(names: frozenset[str]) -> DayPages:
    """The list of cancelled inspections with these filters. They are few: the filters are checked row by row."""
    return DayPages(inspection, INSPECTION_DAY, SEARCH_STATE, *_lead(()), _checks(names), IS_CANCELLED)


@functools.cache
def _days_of(names: frozenset[str]) -> Statement:
    """The first inspections of each day of a calendar, by state."""
    lead, value = _lead(names)
    searched = func.unnest(param("states", TEXTS)).table_valued("state", name="searched").render_derived()
    days = func.unnest(param("days", ARRAY(sa.Date))).table_valued("day", name="days").render_derived()
    key = status_key(lead, SEARCH_STATE)
    matches = (
        select(inspection.c.id)
        .where(
            SERVED,
            key == sa.any_(array([status_key(value, searched.c.state)])),
            sa.any_(array([days.c.day])) == INSPECTION_DAY,
            *is_of([*_checks(names), (SEARCH_STATE, searched.c.state)]),
        )
        .order_by(key, INSPECTION_DAY, inspection.c.id)
        .limit(param("rows", Integer))
        .correlate(searched, days)
        .lateral("matches")
    )
    rows = days.join(searched, true()).join(matches, true())
    return Statement(select(days.c.day, matches.c.id).select_from(rows).order_by(days.c.day, matches.c.id))


async def page(
    database: Database,
    company_id: int,
    search: DaySearch,
    limit: int,
    after: Position | None,
    *,
    newest_first: bool,
    cancelled: bool = False,
) -> list[Position]:
    """Up to limit + 1 positions. cancelled: of cancelled inspections alone."""
    pages = (cancelled_pages_of if cancelled else pages_of)(frozenset(search.places))
    return await pages.page(database, company_id, search, limit, after, newest_first=newest_first)


async def counted(database: Database, company_id: int, search: DaySearch) -> int:
    """How many inspections there are, COUNT_MAX at most."""
    return await pages_of(frozenset(search.places)).counted(database, company_id, search)


async def ids_by_day(
    database: Database,
    company_id: int,
    places: Mapping[str, int],
    states: Sequence[str],
    days: Sequence[datetime.date],
    rows: int,
) -> dict[datetime.date, list[int]]:
    """The ids of each day, ascending; of each state, `rows` at most."""
    ids_by_day: dict[datetime.date, list[int]] = {}
    statement = _days_of(frozenset(places))
    for day, inspection_id in await database.rows(
        statement, company_id=company_id, states=states, days=days, rows=rows, **places
    ):
        ids_by_day.setdefault(day, []).append(inspection_id)
    return ids_by_day


_EXTERNAL = Statement(
    select(INSPECTION_DAY.label("day"), inspection.c.id).where(
        FOR_PEOPLE, inspection.c.company_id == _company_id, inspection.c.external_id == param("external_id", Text)
    )
)


async def with_external_id(database: Database, company_id: int, external_id: str) -> list[Position]:
    rows = await database.rows(_EXTERNAL, company_id=company_id, external_id=external_id)
    return [Position(*row) for row in rows]


class FoundInspection(NamedTuple):
    id: int
    inspection_number: int | None
    title: str | None
    inspection_type: str | None
    published_status: str
    result: str | None
    property_id: int
    property_name: str
    unit_id: int | None
    unit_name: str | None
    scheduled_date: datetime.date | None
    completed_date: datetime.date | None
    assignee_id: int | None
    assignee_name: str | None
    is_compliance_inspection: bool
    compliance_type: str | None
    created_at: datetime.datetime
    external_id: str | None
    source: str
    stale_announced_at: datetime.datetime | None
    cancelled_at: datetime.datetime | None
    cancelled_by: str | None
    cancel_reason: str | None


_JOINED: dict[str, Expression] = {
    "property_name": property_.c.name.label("property_name"),
    "unit_name": unit.c.name.label("unit_name"),
    "assignee_name": staff.c.name.label("assignee_name"),
}
_for_people = (
    select(*(_JOINED[name] if name in _JOINED else inspection.c[name] for name in FoundInspection._fields))
    .select_from(
        inspection.join(property_, refers_to(inspection, "property_id", property_))
        .outerjoin(unit, refers_to(inspection, "unit_id", unit))
        .outerjoin(staff, refers_to(inspection, "assignee_id", staff))
    )
    .where(FOR_PEOPLE, inspection.c.company_id == _company_id)
)
_BY_IDS = Query(FoundInspection, _for_people.where(inspection.c.id == func.any(param("ids", IDS))))


async def inspections_by_ids(database: Database, company_id: int, ids: Sequence[int]) -> dict[int, FoundInspection]:
    """Those that people may open, by id."""
    if not ids:
        return {}
    return {row.id: row for row in await _BY_IDS.rows(database, company_id=company_id, ids=list(ids))}


# Who recorded the present result of each row: the newest entry about it.
_row_id = audit.c.after["row_id"].as_string()
_INSPECTED = Statement(
    select(_row_id.label("row_id"), audit.c.recorded_at, audit.c.actor)
    .ext(distinct_on(_row_id))
    .where(
        audit.c.company_id == _company_id,
        audit.c.subject == literal_column("'inspection'"),
        audit.c.subject_id == param("inspection_id", BigInteger),
        audit.c.action == func.any(param("actions", TEXTS)),
    )
    .order_by(_row_id, audit.c.id.desc())
)
_ACTIONS = ["inspection.row_passed", "inspection.row_failed"]


async def inspected(database: Database, company_id: int, inspection_id: int) -> dict[int, Record]:
    """When and by whom the result of each row was last recorded, by the row's id: recorded_at, actor."""
    rows = await database.rows(_INSPECTED, company_id=company_id, inspection_id=inspection_id, actions=_ACTIONS)
    return {int(row["row_id"]): row for row in rows if row["row_id"] is not None}
