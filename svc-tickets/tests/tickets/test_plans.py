"""The cost of a page does not grow with the table, the depth or the other companies' rows (spec 4.12)."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.lists.lookup import LookupService
from svc_tickets.tickets.queries import numbering, read
from testkit.plans import explained, lists_of, statement_plan
from testkit.skewed_rows import BEGAN, IN_ORDER, analyze, check_changes, check_pages, make_crowd

pytestmark = pytest.mark.plans

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
LISTS = lists_of(read)


@pytest.fixture(scope="module")
async def crowd(crowded: Database) -> Database:
    # The planner's earlier statistics: companies of one unit each.
    for table, more in (("property", ""), ("unit", ", property_id")):
        ids = "SELECT n, n, 1, 'x'" + (", n" if more else "") + " FROM generate_series(900001, 900003) n"
        await crowded.execute(Statement(text(f"INSERT INTO {table} (id, company_id, version, name{more}) {ids}")))
    await make_crowd(crowded, FILLS)
    return crowded


async def test_a_new_ticket_finds_its_place_by_keys_alone(crowd: Database) -> None:
    last = f"SELECT max(id) FROM unit WHERE company_id = {IN_ORDER}"
    arguments = {"requested_company_id": [IN_ORDER], "requested_unit_id": [await crowd.value(Statement(text(last)))]}
    async with explained(crowd, numbering.PLACES_AND_NUMBERS.statement) as explain:
        plan = await explain(**arguments, requested_asset_id=[0], wait="3s")
    assert plan.rows_met <= 10 and {"unit_pkey", "property_pkey"} <= set(plan.indexes), (plan.rows_met, plan.indexes)


@pytest.mark.parametrize("name", LISTS)
async def test_a_page_costs_the_same_wherever_it_is(crowd: Database, name: str) -> None:
    assert await check_pages(crowd, LISTS[name], STATUSES, REQUIRES, with_changes=False)  # with outdated statistics
    await check_changes(crowd, read.TICKET_CHANGES)
    await analyze(crowd)
    assert await check_pages(crowd, LISTS[name], STATUSES, REQUIRES, with_changes=True)


async def test_a_page_of_changes_costs_the_same_wherever_it_is(crowd: Database) -> None:
    await check_changes(crowd, read.TICKET_CHANGES)


async def test_a_search_by_external_id_looks_once_into_its_index(crowd: Database) -> None:
    identify = "UPDATE ticket SET external_id = 'X' || n FROM crowd WHERE crowd.id = ticket.id"
    statement = LookupService(crowd, [read.IDENTIFIED]).statements[0]
    plan = await statement_plan(crowd, statement, identify, company_id=IN_ORDER, external_id="X7")
    assert (plan.returned, plan.rows_met, plan.indexes) == (1, 1, ["ticket_external_id"])


async def test_no_call_plans_its_statement_anew(crowd: Database) -> None:
    filters = {"status": "Open", "updated_since": BEGAN}
    statement = read.TICKETS_PAGE.statement(frozenset(filters))
    async with crowd.connection() as connection:
        for _ in range(8):
            await connection.rows(statement, company_id=IN_ORDER, after_id=0, rows=51, **filters)
        plans = await connection.raw.fetchrow(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = $1", statement.sql
        )
    assert plans["generic_plans"] >= 8 and plans["custom_plans"] == 0
