"""The cost of a page, a write or an imported row does not grow with the table, the depth or others' rows."""

from __future__ import annotations

import pytest

from chassis.db.database import Database
from chassis.db.statements import Statement
from svc_occupancy.board import queries as board_queries
from svc_occupancy.turns import import_queries as turn_import_queries
from svc_occupancy.turns import queries as turn_queries
from testkit.plans import explained
from testkit.skewed_rows import analyze, check_pages, make_crowd

pytestmark = pytest.mark.plans

FILLS = (
    "property (id, company_id, version, name) SELECT id, company_id, 1, 'x'",
    "unit (id, company_id, version, name, property_id) SELECT id, company_id, 1, 'x', place",
    "transition (company_id, id, status, property_id, unit_id, created_at, updated_at, source)"
    " SELECT company_id, id, (ARRAY['completed', 'completed', 'cancelled'])[1 + commonness], place, place,"
    " '2020-01-01', updated_at, 'import'",
    "company (id, version, name) SELECT DISTINCT company_id, 1, 'x'",
    "company (id, version, name) SELECT id, 1, 'x'",
    "unit_state (company_id, unit_id, version, unit_status) SELECT company_id, id, 1, 'Down'",
    "turn_task (company_id, transition_id, unit_id, task_type, status, created_at, updated_at, source)"
    " SELECT company_id, id, id, 'Paint', 'open', updated_at, updated_at, 'staff'",
)


# A company with few rows and one with many, whose largest unit has three quarters of them.
UNITS = "SELECT DISTINCT company_id, place FROM crowd"
FED = (
    "INSERT INTO transition (company_id, id, status, property_id, unit_id, created_at, updated_at, source, external_id)"
    " SELECT company_id, id + 7, 'completed', place, place, '2020-01-01', updated_at, 'api', 'R' || n FROM crowd"
)


@pytest.fixture(scope="module")
async def crowd(database: Database) -> Database:
    await make_crowd(database, FILLS)
    return database


async def test_a_page_of_turns_costs_the_same_wherever_it_is(crowd: Database) -> None:
    await analyze(crowd)
    statuses = ("completed", "cancelled")
    assert await check_pages(crowd, turn_queries.TURNS_PAGE, statuses, {}, with_changes=True)


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_write_looks_at_one_unit_however_many_turns_it_had(crowd: Database, analyzed: bool) -> None:
    if analyzed:
        await analyze(crowd)
    async with crowd.connection() as connection:
        units = await connection.raw.fetch(UNITS)
    assert len(units) > 3
    async with explained(crowd, Statement(turn_queries.LOOK)) as explain:
        for company_id, unit_id in units:
            plan = await explain(company_id=company_id, unit_id=unit_id)
            assert plan.returned == 1 and not plan.whole_tables
            assert plan.rows_met <= 5 and plan.buffers <= 25, (plan.rows_met, plan.buffers, plan.indexes)


async def test_a_row_of_a_file_finds_its_turn_among_many_of_its_unit(crowd: Database) -> None:
    async with crowd.connection() as connection:
        await connection.raw.execute(FED)
        units = await connection.raw.fetch(UNITS)
        names = [f"R{n}" for n in range(100)]
        async with explained(crowd, turn_import_queries.TURNS_NAMED) as explain:
            for company_id, unit_id in units:
                plan = await explain(company_id=company_id, external_id=names, unit_id=[unit_id] * len(names))
                assert not plan.whole_tables and plan.rows_met <= 400, (plan.rows_met, plan.indexes)
                assert plan.returned


@pytest.mark.parametrize("analyzed", [False, True])
async def test_the_board_looks_at_a_page_of_units_and_at_their_newest_turns(crowd: Database, analyzed: bool) -> None:
    if analyzed:
        await analyze(crowd)
    async with crowd.connection() as connection:
        units = await connection.raw.fetch(UNITS)
    for company_id, unit_id in units:
        place = {"company_id": company_id, "first_id": unit_id, "rows": 50}
        async with explained(crowd, board_queries.BOARD.statement) as explain:
            plan = await explain(**place)
            assert not plan.whole_tables and plan.rows_met <= 350, (plan.rows_met, plan.indexes)
        async with explained(crowd, board_queries.BOARD_OF_PROPERTY.statement) as explain:
            plan = await explain(property_id=unit_id, **place | {"first_id": 1})
            assert not plan.whole_tables and plan.rows_met <= 350, (plan.rows_met, plan.indexes)
        async with explained(crowd, turn_queries.NEWEST.statement) as explain:
            plan = await explain(company_id=company_id, unit_id=unit_id)
            assert plan.returned == 1 and plan.rows_met <= 2, (plan.rows_met, plan.indexes)
