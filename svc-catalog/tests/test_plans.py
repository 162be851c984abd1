"""The cost of a page does not grow with the table, the depth or other companies' rows (spec 4.12)."""

from __future__ import annotations

import pytest

from chassis.db.database import Database
from svc_catalog.inspections import queries as inspections_queries
from svc_catalog.meters import queries as meters_queries
from svc_catalog.places import queries
from svc_catalog.vendors import queries as vendors_queries
from testkit.plans import lists_of
from testkit.skewed_rows import analyze, check_pages, make_crowd

pytestmark = pytest.mark.plans

_PLACES = "company_id, property_id, id, name) SELECT company_id, place, id, id::text"
FILLS = (
    "property (company_id, id, name, address, created_at, source)"
    " SELECT company_id, id, 'x', 'y', '2020-01-01', 'import'",
    f"building ({_PLACES}",
    f"floor ({_PLACES}",
    f"floorplan ({_PLACES}",
    f"location (location_type, {_PLACES.replace('SELECT', 'SELECT ' + repr('other') + ',')}",
    "staff (id, company_id, version, name) SELECT id, company_id, 1, 'x'",
    "unit (company_id, property_id, id, name, building_id, floor_id, floorplan_id, created_at, source)"
    " SELECT company_id, place, id, 'x', place, place, place, '2020-01-01', 'import'",
    "asset (company_id, property_id, id, unit_id, name, category, make, model, status, created_at, updated_at, source)"
    " SELECT company_id, place, id, place, 'x', 'c', 'm', 'm',"
    " (ARRAY['Active', 'Needs Service', 'Retired'])[1 + commonness], '2020-01-01', updated_at, 'import'",
    "business (company_id, id, legal_name) SELECT company_id, id, id::text",
    "vendor (company_id, id, business_id, rating_count, is_active, property_visibility, onboarded_at, source)"
    " SELECT company_id, id, id, 0, true, 'all_properties', '2020-01-01', 'import'",
    "meter (company_id, property_id, id, unit_id, name, utility_type, scope, is_active, created_at, updated_at, source)"
    " SELECT company_id, place, id, place, 'x', 'water', 'unit', true, '2020-01-01', updated_at, 'import'",
    # Half of them are consultants' walks, which no list includes.
    "inspection (company_id, property_id, id, unit_id, status, is_compliance_inspection, kind, created_at, source)"
    " SELECT company_id, place, id, place, (ARRAY['Scheduled', 'In Progress', 'Finalized'])[1 + commonness], false,"
    " CASE WHEN n < 5000 THEN 'operations' ELSE 'consulting_walk' END, '2020-01-01', 'import'",
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


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_costs_the_same_wherever_it_is(known_crowd: Database, name: str) -> None:
    statuses = STATUSES.get(LISTS[name].table.name, ())
    assert await check_pages(known_crowd, LISTS[name], statuses, {}, with_changes=True)


def test_every_list_is_measured() -> None:
    filled = {fill.partition(" ")[0] for fill in FILLS}
    assert {pages.table.name for pages in LISTS.values()} <= filled
    assert len(LISTS) == 6
