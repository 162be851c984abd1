"""The cost of a page does not grow with the table, the depth or other companies' rows (spec 4.12)."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import BigInteger, func, select, text

from chassis.changes.feed import Changes
from chassis.changes.tracking import BATCH_ROWS, MARKS_MAX, ChangeTracking
from chassis.changes.triggers import AT_ONCE_ROWS, DEPENDANTS
from chassis.db.database import Database
from chassis.db.statements import Statement, param
from chassis.lists.lookup import LookupService
from svc_catalog.__main__ import CHANGES, IDENTIFIED
from svc_catalog.inspections import queries as inspections_queries
from svc_catalog.inspections import rules as inspection_rules
from svc_catalog.inspections import search_queries as inspection_searches
from svc_catalog.inspections import tables as inspection_tables
from svc_catalog.inspections.tables import inspection
from svc_catalog.meters import queries as meters_queries
from svc_catalog.notices import queries as notices_queries
from svc_catalog.places import queries
from svc_catalog.search import indexing
from svc_catalog.vendors import queries as vendors_queries
from svc_catalog.vendors import rules as vendor_rules
from svc_catalog.vendors import search_queries as vendor_searches
from testkit.plans import lists_of, statement_plan
from testkit.skewed_rows import (
    FIRST_ID,
    GAP,
    IN_ORDER,
    LIMIT,
    ROWS,
    SMALL,
    analyze,
    check_changes,
    check_pages,
    make_crowd,
)

pytestmark = pytest.mark.plans

_PLACES = "company_id, property_id, id, name) SELECT company_id, place, id, id::text"
# The words of all places are filled: the running service would do it meanwhile.
FILLS = (
    "property (company_id, id, name, address, created_at, source, searched_version)"
    " SELECT company_id, id, 'x', 'y', '2020-01-01', 'import', 1",
    f"building ({_PLACES}",
    f"floor ({_PLACES}",
    f"floorplan ({_PLACES}",
    f"location (location_type, {_PLACES.replace('SELECT', 'SELECT ' + repr('other') + ',')}",
    "staff (id, company_id, version, name) SELECT id, company_id, 1, 'x'",
    "unit (company_id, property_id, id, name, building_id, floor_id, floorplan_id, created_at, source,"
    " searched_version)"
    " SELECT company_id, place, id, 'x', place, place, place, '2020-01-01', 'import', 1",
    "asset (company_id, property_id, id, unit_id, name, category, make, model, status, created_at, updated_at, source,"
    " searched_version)"
    " SELECT company_id, place, id, place, 'x', 'c', 'm', 'm',"
    " (ARRAY['Active', 'Needs Service', 'Retired'])[1 + commonness], '2020-01-01', updated_at, 'import', 1",
    "business (company_id, id, legal_name) SELECT company_id, id, id::text",
    "vendor (company_id, id, business_id, rating_count, is_active, property_visibility, onboarded_at, source)"
    " SELECT company_id, id, id, 0, true, 'all_properties', '2020-01-01', 'import'",
    "meter (company_id, property_id, id, unit_id, name, utility_type, scope, is_active, created_at, updated_at, source,"
    " searched_version)"
    " SELECT company_id, place, id, place, 'x', 'water', 'unit', true, '2020-01-01', updated_at, 'import', 1",
    "reading (company_id, meter_id, id, period_start, period_end, consumption, created_at, is_estimated, source)"
    " SELECT company_id, place, id, '2020-01-01', '2020-02-01', 1, '2020-01-01', false, 'import'",
    'notice (company_id, property_id, id, subject, body, "when", created_at, updated_at, published_at, source)'
    " SELECT company_id, place, id, 'x', 'y', 'z', '2020-01-01', updated_at,"
    " CASE WHEN commonness < 2 THEN updated_at END, 'import'",
    # Half of them are cancelled, or consultants' walks, which no list includes.
    "inspection (company_id, property_id, id, unit_id, status, is_compliance_inspection, kind, created_at, source,"
    " cancelled_at, cancelled_by)"
    " SELECT company_id, place, id, place, (ARRAY['Scheduled', 'In Progress', 'Finalized'])[1 + commonness], false,"
    f" CASE WHEN n < {ROWS // 4} THEN 'operations' WHEN n < {ROWS * 3 // 8} THEN 'cancelled'"
    " ELSE 'consulting_walk' END,"
    " '2020-01-01', 'import', '2020-01-01', 'staff:1'",
)
STATUSES = {"asset": ("Active", "Retired"), "inspection": ("Scheduled", "Completed")}
LISTS = lists_of(queries, inspections_queries, meters_queries, vendors_queries)


@pytest.fixture(scope="module")
async def crowd(database: Database) -> Database:
    await make_crowd(database, FILLS)
    return database


@pytest.fixture(scope="module")
async def known_crowd(crowd: Database) -> Database:
    await analyze(crowd)
    return crowd


@pytest.mark.parametrize("kind", indexing.KINDS, ids=lambda kind: kind.name)
async def test_a_batch_of_words_reads_the_rows_that_it_fills(crowd: Database, kind: indexing.Kind) -> None:
    """Also while the statistics are older than the rows."""
    rows, joined = indexing.ROWS_AT_ONCE, 4
    # Away from the pages that other tests request: their bounds are of rows that nobody has changed.
    batch = f"SELECT id FROM {kind.name} WHERE id > {FIRST_ID + ROWS // 4 * GAP} ORDER BY id LIMIT {2 * rows}"
    behind = f"{indexing.BATCH}; UPDATE {kind.name} SET searched_version = 0 WHERE id IN ({batch})"
    plan = await statement_plan(crowd, kind.rows, behind)
    assert plan.returned == rows
    cost = f"{plan.rows_met} rows, {plan.buffers} buffers, {plan.indexes}"
    assert plan.rows_met <= joined * rows and plan.buffers <= 3 * joined * rows, cost
    assert not plan.whole_tables, plan.whole_tables


async def look_for_words(database: Database) -> None:
    """Each process looks once a second, mostly where no row has changed."""
    plan = await statement_plan(database, indexing._STALE)
    assert plan.rows_met <= len(indexing.KINDS), f"{plan.rows_met} rows, {plan.indexes}"
    assert not plan.whole_tables, plan.whole_tables


async def test_a_look_for_words_to_fill_reads_no_table_that_has_grown(crowd: Database) -> None:
    await look_for_words(crowd)


async def test_a_look_for_words_to_fill_reads_no_table(known_crowd: Database) -> None:
    await look_for_words(known_crowd)


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_costs_the_same_wherever_it_is(known_crowd: Database, name: str) -> None:
    statuses = STATUSES.get(LISTS[name].table.name, ())
    assert await check_pages(known_crowd, LISTS[name], statuses, {}, with_changes=True)


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: changes.kind)
async def test_a_page_of_changes_costs_its_rows_wherever_it_is(known_crowd: Database, changes: Changes) -> None:
    await check_changes(known_crowd, changes)


async def test_a_batch_of_moves_reads_the_rows_that_it_moves(known_crowd: Database) -> None:
    """However many marks wait and however many records each has."""
    marked_records = ChangeTracking(known_crowd, CHANGES)._marked_records
    marks = MARKS_MAX
    for (table, column), marked in marked_records.items():
        async with known_crowd.connection() as connection:
            place = await connection.raw.fetchval(
                f"SELECT {column} FROM {table} WHERE company_id = $1 GROUP BY 1 ORDER BY count(*) DESC LIMIT 1",
                IN_ORDER,
            )
        # Different ids, or the plan would reuse the rows that it has found for one mark.
        after_id = list(range(marks))
        values = {"company_id": [IN_ORDER] * marks, "refers_to": [place or 0] * marks, "after_id": after_id}
        plan = await statement_plan(known_crowd, marked.dependants, **values, since=[0] * marks)
        cost = f"{table}.{column}: {plan.rows_met} rows, {plan.buffers} buffers, {plan.indexes}"
        assert plan.returned <= BATCH_ROWS and plan.rows_met <= 2 * BATCH_ROWS + marks, cost
        assert not plan.whole_tables, cost
        # What the trigger asks in the transaction of a change.
        condition = inspection_tables.SERVED if table == "inspection" else "true"
        query = DEPENDANTS.format(record=table, refers_by=column, served=condition)
        for number, name in enumerate(("company_id", "refers_to"), start=1):
            query = query.replace(f"${number}", f"CAST(:{name} AS bigint)")
        plan = await statement_plan(known_crowd, Statement(text(query)), company_id=IN_ORDER, refers_to=place or 0)
        cost = f"{table}.{column}: {plan.rows_met} rows, {plan.buffers} buffers, {plan.indexes}"
        assert plan.rows_met <= 2 * (AT_ONCE_ROWS + 1) and not plan.whole_tables, cost


async def test_readings_are_found_by_their_periods_one_look_up_each(known_crowd: Database) -> None:
    """In the meter with most readings, which are all of one period: the newest of them is found."""
    sql = "SELECT meter_id FROM reading WHERE company_id = $1 GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
    async with known_crowd.connection() as connection:
        meter_id = await connection.raw.fetchval(sql, IN_ORDER)
    starts, ends = ["2020-01-01 00:00+00", "2021-01-01 00:00+00"], ["2020-02-01 00:00+00", "2021-02-01 00:00+00"]
    values = {"company_id": IN_ORDER, "meter_id": meter_id, "period_start": starts, "period_end": ends}
    plan = await statement_plan(known_crowd, meters_queries.IDS_OF_PERIODS, **values)
    assert (plan.returned, plan.rows_met, plan.indexes) == (1, 1, ["reading_periods"]), plan.whole_tables


# People's searches: at most the page's rows of each state, in the index and in the table.


async def check(database: Database, statement: Statement, many: int, /, **values: Any) -> int:
    """Returns how many rows it found. many: the states that it merges."""
    plan = await statement_plan(database, statement, **values)
    cost = f"{values}: {plan.rows_met} rows, {plan.buffers} buffers, {plan.indexes}"
    assert plan.rows_met <= (many + 1) * (LIMIT + 1) and plan.buffers <= many * 3 * (LIMIT + 1), cost
    assert not plan.whole_tables, f"{values}: {plan.whole_tables}"
    return plan.returned


DAYS = {"from_day": "-infinity", "to_day": "infinity"}
SIDES: tuple[tuple[bool, dict[str, Any]], ...] = (
    (False, {"after_day": "-infinity", "after_id": 0}),
    (True, {"after_day": "infinity", "after_id": 2**62}),
)


@pytest.mark.parametrize("company_id", [IN_ORDER, SMALL])
async def test_a_search_for_vendors_costs_what_its_page_shows(known_crowd: Database, company_id: int) -> None:
    rare, every = ["truetruemissing"], vendor_rules.search_states((), None, None)
    for states in (every, rare):
        values = {"company_id": company_id, "states": states, "rows": LIMIT + 1}
        plan = await check(known_crowd, vendor_searches.NEWEST, len(states), before_id=2**62, **values)
        for newest, side in SIDES:
            statement = vendor_searches.BY_INSURANCE.statements[newest]
            assert plan == await check(known_crowd, statement, len(states), **values, **DAYS, **side)
        assert bool(plan) == (states is every)
    values = {"company_id": company_id, "states": every, "rows": LIMIT + 1, "after_id": 2**62}
    name = f"{FIRST_ID + 7 * GAP}"  # the first of the small company, and of no other
    plan = await check(known_crowd, vendor_searches.NAMED_NEWEST, 1, words=name, **values)
    assert plan == (company_id == SMALL)


@pytest.mark.parametrize("company_id", [IN_ORDER, SMALL])
async def test_a_search_for_inspections_costs_what_its_page_shows(known_crowd: Database, company_id: int) -> None:
    (place,) = [
        row["place"]
        for row in await known_crowd.rows(
            Statement(
                select(func.min(inspection.c.property_id).label("place")).where(
                    inspection.c.company_id == param("company_id", BigInteger)
                )
            ),
            company_id=company_id,
        )
    ]
    rare, every = ["Completed failed"], inspection_rules.search_states((), ())
    for names in ((), ("property_id",), ("unit_id", "property_id"), ("assignee_id",), ("property_id", "assignee_id")):
        pages = inspection_searches.pages_of(frozenset(names))
        places = {name: 0 if name == "assignee_id" else place for name in names}
        for states in (every, rare):
            values = {"company_id": company_id, "states": states, "rows": LIMIT + 1, **places, **DAYS}
            for newest, side in SIDES:
                plan = await check(known_crowd, pages.statements[newest], len(states), **values, **side)
                assert bool(plan) == (states is every), (names, states)
    cancelled = inspection_searches.cancelled_pages_of(frozenset())
    values = {"company_id": company_id, "states": every, "rows": LIMIT + 1, **DAYS}
    first, last = [
        await check(known_crowd, cancelled.statements[newest], len(every), **values, **side) for newest, side in SIDES
    ]
    assert first == last and (first or company_id == SMALL)


@pytest.mark.parametrize("of_property", [False, True])
async def test_the_newest_notices_cost_what_their_page_shows(known_crowd: Database, of_property: bool) -> None:
    statement = notices_queries.NEWEST[of_property]
    for span in (("-infinity", "infinity"), ("infinity", "infinity"), ("-infinity", "9999-12-31")):
        values: dict[str, Any] = {"company_id": IN_ORDER, "from_at": span[0], "to_at": span[1], "rows": LIMIT + 1}
        if of_property:
            values["property_id"] = FIRST_ID + 2 * GAP
        plan = await check(known_crowd, statement, 1, after_at="infinity", after_id=2**62, **values)
        assert plan or of_property
    deep = {"after_at": "2020-01-01 00:10:00+00", "to_at": "2020-01-01 00:10:00+00", "after_id": 0}
    assert of_property or await check(known_crowd, statement, 1, **values | {"from_at": "-infinity"} | deep)


async def test_a_search_by_external_id_looks_once_into_the_index_of_each_kind(known_crowd: Database) -> None:
    """Also one that finds a row, of a kind whose readers do not see all."""
    identify = "UPDATE inspection SET external_id = 'X' || n FROM crowd WHERE crowd.id = inspection.id"
    for statement in LookupService(known_crowd, IDENTIFIED).statements.values():
        plan = await statement_plan(known_crowd, statement, identify, company_id=IN_ORDER, external_id="X7")
        assert plan.rows_met <= 1 and not plan.whole_tables, (plan.rows_met, plan.indexes, plan.whole_tables)
        assert all(index.endswith("_external_id") for index in plan.indexes), plan.indexes


def test_every_list_is_measured() -> None:
    filled = {fill.partition(" ")[0] for fill in FILLS}
    assert {pages.table.name for pages in LISTS.values()} <= filled
    assert len(LISTS) == 6
