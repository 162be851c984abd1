"""What a page costs does not grow with the table, the depth or the other companies' rows (spec 4.12)."""

from __future__ import annotations

from chassis.database import Database
from makeready_local.crowd import analyze, check_pages, make_crowd
from svc_occupancy import queries

FILLS = (
    "property (id, company_id, version, name) SELECT id, company_id, 1, 'x'",
    "unit (id, company_id, version, name, property_id) SELECT id, company_id, 1, 'x', place",
    "transition (company_id, id, status, property_id, unit_id, created_at, updated_at, source)"
    " SELECT company_id, id, (ARRAY['completed', 'completed', 'cancelled'])[1 + commonness], place, place,"
    " '2020-01-01', updated_at, 'import'",
)


async def test_a_page_of_turns_costs_the_same_wherever_it_is(database: Database) -> None:
    await make_crowd(database, FILLS)
    await analyze(database)
    statuses = ("completed", "cancelled")
    assert await check_pages(database, queries.TURNS_PAGE, statuses, {}, with_changes=True)
