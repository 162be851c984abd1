"""The cost of a page, a write or an imported row does not grow with the table, the depth or others' rows."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from chassis.db.database import IN_ORDER, Database
from chassis.db.statements import Statement
from chassis.lists.lookup import ROWS_MAX, LookupService
from svc_occupancy.board import queries as board_queries
from svc_occupancy.dates import START
from svc_occupancy.residencies import queries as residency_queries
from svc_occupancy.search import queries as search_queries
from svc_occupancy.search import terms
from svc_occupancy.turn_tasks import queries as task_queries
from svc_occupancy.turns import import_queries as turn_import_queries
from svc_occupancy.turns import queries as turn_queries
from svc_occupancy.units import queries as unit_queries
from testkit.plans import explained, statement_plan
from testkit.skewed_rows import IN_ORDER as CROWDED
from testkit.skewed_rows import analyze, check_changes, check_pages, make_crowd

pytestmark = pytest.mark.plans

FILLS = (
    "property (id, company_id, version, name) SELECT id, company_id, 1, 'x'",
    "unit (id, company_id, version, name, property_id) SELECT id, company_id, 1, 'x', place",
    "transition (company_id, id, status, property_id, unit_id, created_at, updated_at, source)"
    " SELECT company_id, id, (ARRAY['completed', 'completed', 'cancelled'])[1 + commonness], place, place,"
    " '2020-01-01', updated_at, 'import'",
    "company (id, version, name) SELECT DISTINCT company_id, 1, 'x'",
    "company (id, version, name) SELECT id, 1, 'x'",
    "lease (company_id, id, transition_id, start_date) SELECT company_id, id, id, '2020-01-01'",
    "party (company_id, id, transition_id, position) SELECT company_id, id, id, 0",
    # All are called Ortiz, every hundredth Ana.
    "party_search (company_id, id, transition_id, terms) SELECT company_id, id, id, array_to_tsvector(array_remove("
    "array[company_id || '/northiz', company_id || '/n' || n, CASE WHEN n % 100 = 7 THEN company_id || '/nana' END],"
    " NULL))",
    # Most units are down; every eighth has a ready date.
    "unit_state (company_id, unit_id, version, unit_status, property_id, projected_ready_on)"
    " SELECT company_id, id, 1, (ARRAY['Down', 'Vacant Ready', 'Notice'])[1 + commonness], place,"
    " CASE WHEN n % 8 < 2 THEN date '2020-01-01' + n::int END",
    "unit_status_change (company_id, unit_id, version, changed_at, to_status, cause, actor)"
    " SELECT company_id, place, n + 1, updated_at, 'Down', 'board', 'staff:1'",
    # Every third task has an assignee, every third a vendor, all the same.
    "staff (id, company_id, version, name) SELECT DISTINCT 900001, 1, 1, 'x'",
    "vendor (id, company_id, version, name) SELECT DISTINCT 900001, 1, 1, 'x'",
    "turn_task (company_id, transition_id, unit_id, property_id, task_type, status, scheduled_date, created_at,"
    " updated_at, source, assignee_id, vendor_id)"
    " SELECT company_id, id, id, place, 'Paint', 'open', CASE WHEN n % 8 < 2 THEN date '2020-01-01' + n::int END,"
    " updated_at, updated_at, 'staff', CASE n % 3 WHEN 1 THEN 900001 END, CASE n % 3 WHEN 2 THEN 900001 END",
)
TODAY = datetime.date(2020, 6, 1)


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


async def test_a_page_of_changes_costs_its_rows_wherever_it_is(crowd: Database) -> None:
    await analyze(crowd)
    await check_changes(crowd, turn_queries.TURN_CHANGES)


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


async def test_a_search_by_external_id_reads_what_it_returns(crowd: Database) -> None:
    """One turn of a file, and a hundred of those to which a feed gave the same identifier."""
    identify = (
        "UPDATE transition SET external_id = CASE WHEN n = 7 THEN 'X' END, source = 'import' FROM crowd"
        " WHERE crowd.id = transition.id;"
        "UPDATE transition SET external_id = 'X', source = 'api' FROM crowd WHERE crowd.id = transition.id AND n <> 7"
    )
    statement = LookupService(crowd, turn_queries.IDENTIFIED).statements[0]
    plan = await statement_plan(crowd, statement, identify, company_id=CROWDED, external_id="X")
    assert (plan.returned, plan.rows_met) == (1 + ROWS_MAX, 1 + ROWS_MAX)
    assert set(plan.indexes) == {"transition_external_id", "transition_fed_external_id"}


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
        place = {"company_id": company_id, "first_id": unit_id, "rows": 50, "today": TODAY}
        async with explained(crowd, board_queries.BOARD.statement) as explain:
            plan = await explain(**place)
            assert not plan.whole_tables and plan.rows_met <= 350, (plan.rows_met, plan.indexes)
        async with explained(crowd, board_queries.BOARD_OF_PROPERTY.statement) as explain:
            plan = await explain(property_id=unit_id, **place | {"first_id": 1})
            assert not plan.whole_tables and plan.rows_met <= 350, (plan.rows_met, plan.indexes)
        for newest in (turn_queries.NEWEST_BEGUN, turn_queries.NEWEST):
            async with explained(crowd, newest.statement) as explain:
                plan = await explain(company_id=company_id, unit_id=unit_id)
                assert plan.returned == 1 and plan.rows_met <= 2, (plan.rows_met, plan.indexes)


@pytest.mark.parametrize("analyzed", [False, True])
async def test_pages_for_people_cost_what_their_rows_cost(crowd: Database, analyzed: bool) -> None:
    """50 rows and one more, for each with its unit, property, turn, state, tasks and newest change of status."""
    if analyzed:
        await analyze(crowd)
    async with crowd.connection() as connection:
        places = await connection.raw.fetch(UNITS)
        turns = [row[0] for row in await connection.raw.fetch("SELECT transition_id FROM lease LIMIT 51")]
    dated, undated = START, (TODAY.max, 1)
    rows = {"rows": 51}
    of_status: dict[str, Any] = {"today": TODAY, "statuses": ["Notice", "Vacant Ready", "Down"]}
    of_unit = {"before_id": 2**62, "before_version": 2**62}
    names: tuple[list[str], ...] = ([], ["property_id"], ["assignee_id"], ["vendor_id"], ["unassigned"])
    open_tasks = [task_queries.OPEN_TASKS[frozenset(several)] for several in names]
    cases: list[tuple[Statement, int, dict[str, Any]]] = [
        (board_queries.UNDER_WAY.statement, 900, of_status),
        (board_queries.UNDER_WAY_IN_PROPERTY.statement, 900, of_status),
        (task_queries.OPEN_TASKS[frozenset()], 250, {"until": TODAY}),
        *((statement, 250, {"until": TODAY.max}) for statement in open_tasks),
        (residency_queries.RESIDENCIES, 160, {"before_id": of_unit["before_id"]}),
        (board_queries.STATUS_CHANGES.statement, 60, {"before_version": of_unit["before_version"]}),
        (residency_queries.PARTIES, 60, {}),
        (board_queries.BOARD_UNIT.statement, 10, {"today": TODAY}),
        (board_queries.PLANNED.statement, 2, {}),
        # Every planned turn of the company, and the turn before each; the crowd has none.
        (board_queries.CLASHING.statement, 2, {"today": TODAY, "first_id": 1}),
        (board_queries.CLASHING_IN_PROPERTY.statement, 2, {"today": TODAY, "first_id": 1}),
        (unit_queries.STATUS_BEFORE, unit_queries.NEWEST_CHANGES, {"turn_id": 1}),
        (unit_queries.LAST_DEPARTURE, unit_queries.NEWEST_CHANGES, {"turn_id": 1}),
        # No list: the newest 200 turns, and the one before each.
        (board_queries.DAYS_EMPTY, 620, {"today": TODAY}),
        (board_queries.DAYS_EMPTY_OF_PROPERTY, 620, {"today": TODAY}),
    ]
    for statement, most, values in cases:
        async with explained(crowd, statement, IN_ORDER if statement in open_tasks else "") as explain:
            for company_id, place in places:
                for date, last_id in (dated, undated):
                    arguments = values | rows | {"company_id": company_id, "after_date": date, "after_id": last_id}
                    arguments |= {"property_id": place, "unit_id": place, "turn_ids": turns}
                    arguments |= {"assignee_id": 1, "vendor_id": 1}
                    plan = await explain(**{name: arguments[name] for name in statement.parameters})
                    cost = (plan.rows_met, plan.indexes, plan.whole_tables, statement.sql)
                    assert not plan.whole_tables and plan.rows_met <= most, cost


async def test_the_board_is_counted_by_indexes_alone(crowd: Database) -> None:
    await analyze(crowd)
    async with crowd.connection() as connection:
        places = await connection.raw.fetch(UNITS)
    for query, index in (
        (board_queries.COUNTS.statement, "unit_state_board"),
        (board_queries.COUNTS_OF_PROPERTY.statement, "unit_page_of_property"),
        (board_queries.TASK_COUNTS.statement, "turn_task_open"),
        (board_queries.TASK_COUNTS_OF_PROPERTY.statement, "turn_task_open_in_property"),
    ):
        async with explained(crowd, query) as explain:
            for company_id, place in places:
                arguments = {"company_id": company_id, "property_id": place, "today": TODAY}
                plan = await explain(**{name: arguments[name] for name in query.parameters})
                assert not plan.whole_tables and plan.indexes[0].startswith(index), plan.indexes


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_search_for_residents_reads_those_who_fit(crowd: Database, analyzed: bool) -> None:
    """Of a name that everybody has, the newest; of a misspelt one, those who are called nearly so."""
    if analyzed:
        await analyze(crowd)
    async with crowd.connection() as connection:
        many = await connection.raw.fetchval("SELECT count(*) FROM party_search WHERE company_id = $1", CROWDED)
    async with explained(crowd, search_queries.FIND.statement) as explain:
        for text, fitting in (("ortihz", many), ("orthiz", many), ("ana", many // 100), ("nobody", 0), ("555-0142", 0)):
            search = terms.search_of(CROWDED, text)
            near = await search_queries.SPELLING.near(crowd, search.names, terms.name_prefix(CROWDED))
            assert near == ({"ortihz": ["orthiz"]} if text == "ortihz" else {})
            query, whole = (search.query(CROWDED, whole=whole, near=near) for whole in (False, True))
            plan = await explain(company_id=CROWDED, terms=query, whole=whole, rows=9)
            joined = 2 * min(fitting + 1, search_queries.MATCHES_MAX)
            assert not plan.whole_tables and plan.indexes[0] == "party_search_terms", (text, plan.indexes)
            assert plan.returned == min(9, fitting), text
            assert plan.rows_met <= fitting + 2 + joined + 9 * 4, (text, plan.rows_met, plan.indexes)
