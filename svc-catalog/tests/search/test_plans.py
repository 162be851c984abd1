"""A page for people costs what its rows cost, wherever it is and however large the company is."""

from __future__ import annotations

from typing import Any

import pytest

from chassis.db.database import Database
from svc_catalog.search import queries as q
from svc_catalog.search.indexing import Indexing
from testkit.plans import Plan, explained, statement_plan

pytestmark = pytest.mark.plans

LARGE, SMALL, ROWS, PAGE = 9_200_001, 9_200_002, 8_000, 50
LARGE_TABLES = {"unit", "asset", "meter", "reading", "place_search"}
# A page's walks, of each of three statuses at worst, and the rows of up to four joined tables.
MOST_ROWS, MOST_BLOCKS = 9 * (PAGE + 1), 40 * (PAGE + 1)
_CROWD = f"""
CREATE TABLE crowd AS
SELECT *, company_id * 1000 + CASE WHEN n % 50 = 3 THEN 1 + n % 40 ELSE 0 END AS home,
  CASE WHEN n % 1000 = 5 THEN 3 WHEN n % 20 = 5 THEN 2 ELSE 1 END AS commonness
FROM (
  SELECT id, company_id, row_number() OVER (PARTITION BY company_id ORDER BY id) AS n
  FROM (
    SELECT 9200000000 + i::bigint * 61 AS id, CASE WHEN i % 40 = 7 THEN {SMALL}::bigint ELSE {LARGE} END AS company_id
    FROM generate_series(1, {ROWS}) i
  ) company
) numbered
"""
FILLS = (
    # Their external ids differ, as an import's do: an index of nothing but NULL is so small that unknown statistics
    # make it the cheapest way to one property.
    "property (company_id, id, name, address, created_at, source, external_id)"
    f" SELECT c, c * 1000 + k, 'Court ' || k, 'y', '2020-01-01', 'import', 'P' || k"
    f" FROM unnest(ARRAY[{LARGE}, {SMALL}]::bigint[]) c, generate_series(0, 400) k",
    "building (company_id, property_id, id, name) SELECT company_id, id, id, 'B' FROM property",
    "unit (company_id, property_id, id, name, building_id, unit_status, created_at, source)"
    " SELECT company_id, home, id, 'Unit ' || n, home,"
    " (ARRAY['Occupied', 'Vacant Ready', 'Down'])[commonness], '2020-01-01', 'import' FROM crowd",
    "asset (company_id, property_id, id, unit_id, name, category, make, model, status, warranty_expires_on,"
    " created_at, updated_at, source) SELECT company_id, home, id, CASE WHEN n % 10 = 0 THEN id END,"
    " 'Heater ' || n, 'C' || n % 20, 'm', 'm', (ARRAY['Active', 'Needs Service', 'Retired'])[commonness],"
    " date '2026-01-01' + (n % 2000)::int, '2020-01-01', '2020-01-01', 'import' FROM crowd",
    "meter (company_id, property_id, id, name, utility_type, scope, is_active, created_at, updated_at, source)"
    " SELECT company_id, home, id, 'Meter ' || n, (ARRAY['water', 'gas'])[1 + n % 2], 'master', true,"
    " '2020-01-01', '2020-01-01', 'import' FROM crowd",
    # All readings are of one meter of each company, one an hour.
    "reading (company_id, meter_id, id, period_start, period_end, consumption, created_at, is_estimated, source)"
    " SELECT company_id, min(id) OVER (PARTITION BY company_id), id, timestamptz '2020-01-01' + n * interval '1 hour',"
    " timestamptz '2020-01-01' + (n + 1) * interval '1 hour', 1, '2020-01-01', false, 'import' FROM crowd",
)


@pytest.fixture(scope="module")
async def crowd(alone: Any) -> Database:
    """Two companies with interleaved rows. Nearly all rows of each lie in its first property and have the commonest
    status. The statistics are those of empty tables."""
    database: Database = alone.database
    async with database.transaction() as connection:
        await connection.raw.execute("ANALYZE")
        await connection.raw.execute(_CROWD)
        for fill in FILLS:
            await connection.raw.execute(f"INSERT INTO {fill}")
    indexing = Indexing(database)
    while await indexing.step():
        pass
    return database


_PLACE = {"property_id": 0}
LISTS: dict[str, tuple[q.NamePages, list[dict[str, Any]]]] = {
    "properties": (q.PROPERTIES, [{}]),
    "units": (
        q.UNITS,
        [{}, _PLACE, {"statuses": ["Down", "Occupied", ""]}, {**_PLACE, "statuses": ["Down"]}],
    ),
    "assets": (
        q.ASSETS,
        [
            *({}, _PLACE, {"statuses": ["Active", "Retired"]}, {**_PLACE, "statuses": ["Retired"]}),
            *({"category": "C7"}, {"unit_id": 0}),
        ],
    ),
    "warranties": (q.WARRANTIES, [{"warranty_from": "2026-06-01", "warranty_by": "2030-01-01"}, {"unit_id": 0}]),
    "meters": (q.METERS, [{}, _PLACE, {"utility_types": ["gas", "water"]}]),
}


def check(plan: Plan, subject: str, rows: int = MOST_ROWS) -> None:
    cost = f"{subject}: {plan.rows_met} rows, {plan.buffers} blocks, {plan.indexes}"
    assert plan.rows_met <= rows and plan.buffers <= MOST_BLOCKS, cost
    assert not LARGE_TABLES & {*plan.whole_tables}, f"{subject}: {plan.whole_tables}"


@pytest.mark.parametrize(
    "statistics", ["SELECT", "ANALYZE property, unit", "ANALYZE"], ids=["unknown", "partly known", "known"]
)
async def test_a_page_costs_what_its_rows_cost(crowd: Database, statistics: str) -> None:
    async with crowd.connection() as connection:
        await connection.raw.execute(statistics)
    seen = 0
    for name, (pages, several) in LISTS.items():
        for variant in several:
            names = frozenset(variant)
            async with explained(crowd, pages.statement(names), pages.first(names)) as explain:
                for company_id, last in ((LARGE, 9_200_000_000 + 61 * 7_000), (SMALL, 9_200_000_000 + 61 * 6_007)):
                    places = {"property_id": company_id * 1000, "unit_id": last}
                    filters = {field: places.get(field, value) for field, value in variant.items()}
                    for after in (0, last):
                        plan = await explain(company_id=company_id, after_id=after, rows=PAGE + 1, **filters)
                        check(plan, f"{name} {variant} of {company_id} after {after}")
                        seen += plan.returned
    assert seen > 20 * PAGE


async def test_counts_and_readings_are_bounded(crowd: Database) -> None:
    where = {"company_id": LARGE, "meter_id": 9_200_000_061}
    for statement, values in ((q.READINGS[False], {}), (q.READINGS[True], {"before_id": 9_200_000_000 + 61 * 6000})):
        plan = await statement_plan(crowd, statement, rows=65, **where, **values)
        check(plan, "readings", 70)
        assert plan.returned == 65 and "reading_periods" in plan.indexes
    ids = [LARGE * 1000 + place for place in range(40)]
    plan = await statement_plan(
        crowd, q.UNITS_OF, company_id=LARGE, property_ids=ids, unit_statuses=["", "Occupied", "Vacant Ready", "Down"]
    )
    assert plan.rows_met <= 4000 and not LARGE_TABLES & {*plan.whole_tables}, (plan.rows_met, plan.whole_tables)
    since = {"warranty_from": "2026-01-01", "warranty_by": "2036-01-01"}
    statuses = {"unit_statuses": ["Occupied", "Down"], "asset_statuses": ["Active", "Retired"]}
    plan = await statement_plan(crowd, q.COUNTS, company_id=LARGE, **statuses, **since)
    assert plan.rows_met <= 7 * 1100 and not LARGE_TABLES & {*plan.whole_tables}, (plan.rows_met, plan.whole_tables)


async def test_a_search_reads_the_matches_of_its_company_and_kind(crowd: Database) -> None:
    # The quotes are doubled for `EXPLAIN EXECUTE`.
    words = {"company_id": SMALL, "query": f"'{SMALL}u.unit':* & '{SMALL}u.7':*"}
    plan = await statement_plan(crowd, q.BEST, **words, whole=f"'{SMALL}u.7'", kind="unit", rows=9)
    # Of the company's 200 units, twelve have a number that begins with 7.
    assert plan.indexes == ["place_search_words"] and plan.returned == 9 and plan.rows_met <= 24, plan.rows_met
    list_of = q.UNITS.statement(frozenset({"query", "statuses"}))
    plan = await statement_plan(crowd, list_of, **words, after_id=0, rows=51, statuses=["Occupied"])
    check(plan, "units by words")
