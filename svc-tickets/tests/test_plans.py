"""What a page costs does not grow with the table, the depth or the other companies' rows (spec 4.12)."""

from __future__ import annotations

import pytest

from chassis.database import Database
from makeready_local.crowd import BEGAN, IN_ORDER, analyze, check_pages, make_crowd
from makeready_local.plans import lists_of
from svc_tickets import queries

FILLS = (
    "property (id, company_id, version, name) SELECT id, company_id, 1, 'x'",
    "unit (id, company_id, version, name, property_id) SELECT id, company_id, 1, 'x', place",
    "staff (id, company_id, version, name) SELECT id, company_id, 1, 'x'",
    "vendor (id, company_id, version, name) SELECT id, company_id, 1, 'x'",
    "ticket (id, company_id, version, ticket_number, title, category, priority, status, property_id, unit_id,"
    " assignee_id, vendor_id, permission_to_enter, created_at, updated_at, source)"
    " SELECT id, company_id, 1, n + 1, 'x', 'Leak', 'Low', (ARRAY['Open', 'In Progress', 'On Hold'])[1 + commonness],"
    " place, place, id, id, true, '2020-01-01', updated_at, 'import'",
)
STATUSES = ("Open", "On Hold")
REQUIRES = {"ticket_number": "property_id"}
LISTS = lists_of(queries)


@pytest.fixture(scope="module")
async def crowd(database: Database) -> Database:
    await make_crowd(database, FILLS)
    return database


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_costs_the_same_wherever_it_is(crowd: Database, name: str) -> None:
    assert await check_pages(crowd, LISTS[name], STATUSES, REQUIRES, with_changes=False)  # by yesterday's statistics
    await analyze(crowd)
    assert await check_pages(crowd, LISTS[name], STATUSES, REQUIRES, with_changes=True)


async def test_no_call_plans_its_statement_anew(crowd: Database) -> None:
    filters = {"status": "Open", "updated_since": BEGAN}
    statement = queries.TICKETS_PAGE.statement(frozenset(filters))
    async with crowd.connection() as connection:
        for _ in range(8):
            await connection.rows(statement, company_id=IN_ORDER, after_id=0, rows=51, **filters)
        plans = await connection.raw.fetchrow(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = $1", statement.sql
        )
    assert plans["generic_plans"] >= 8 and plans["custom_plans"] == 0
