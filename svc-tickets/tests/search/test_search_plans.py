"""A page of a search costs a scan, or the tickets that fit: never a company's other tickets, nor other companies'."""

from __future__ import annotations

import datetime
import os
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.lists.spelling import BY_INDEX
from chassis.lists.words import near_words
from makeready.tickets.v1 import ticket_views_pb2 as pb
from svc_tickets.search import filters, queries
from testkit.plans import Plan, statement_plan

pytestmark = pytest.mark.plans

COMPANY = 9_200_001
ROWS = int(os.environ.get("SEARCH_ROWS", "20000"))
NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)
PAGE = 51
# Tickets of two companies, one an hour: 1 of 50 is open, 1 of 400 in a property of its own, 1 of 10 says "leak", 1 of
# 1,000 says "seldom". The older half came from an import.
_FILL = """
INSERT INTO ticket_search (company_id, id, version, comment_id, quiet_since, property_id, unit_id, asset_id,
  assignee_id, vendor_id, status, is_open, priority, category, source, opened, urgency, waiting, terms)
SELECT company_id, id, 1, 0, quiet_since, property_id, unit_id, NULL, assignee_id, NULL, status, is_open, priority,
  category, source, opened,
  CASE WHEN is_open THEN opened ELSE 5 * (2::numeric ^ 58)::bigint - opened END,
  CASE WHEN quiet_since IS NULL THEN 3 * (2::numeric ^ 58)::bigint - opened
    WHEN priority = 'Emergency' THEN opened ELSE (2::numeric ^ 58)::bigint + opened END,
  array_to_tsvector(array_remove(array[company_id || '/s' || status, company_id || '/p' || priority,
    company_id || '/c' || category, company_id || '/o' || source, company_id || '/P' || property_id,
    company_id || '/U' || unit_id, company_id || '/U+', company_id || '/E-', company_id || '/V-',
    company_id || '/A' || coalesce(assignee_id::text, '-'),
    CASE WHEN assignee_id IS NOT NULL THEN company_id || '/A+' END,
    CASE WHEN quiet_since IS NOT NULL THEN company_id || '/q' END,
    CASE WHEN n % 10 = 0 THEN company_id || '/wleak' END, CASE WHEN n % 1000 = 0 THEN company_id || '/wseldom' END,
    company_id || '/wticket', company_id || '/w' || n], NULL))
FROM (
  SELECT n, company_id, n AS id, 9200001 + n % 400 AS property_id, 9200001 + n % 4000 AS unit_id,
    CASE WHEN is_open AND n % 3 = 0 OR NOT is_open AND n % 7 > 0 THEN 9200001 + n % 40 END AS assignee_id,
    CASE WHEN is_open THEN 'Open' ELSE 'Completed' END AS status, is_open,
    (array['Low', 'Medium', 'High', 'Emergency'])[1 + n % 4] AS priority,
    CASE WHEN n % 10000 = 9 THEN 'Pool' ELSE 'Leak' END AS category,
    CASE WHEN n < $2 / 2 THEN 'import' ELSE 'resident_portal' END AS source,
    (extract(epoch FROM $1::timestamptz) * 1000000)::bigint - ($2 - n) * 3600000000 / 20 AS opened,
    CASE WHEN is_open THEN $1::timestamptz - ($2 - n) * interval '3 minutes' END AS quiet_since
  FROM (
    SELECT n, CASE WHEN n % 11 = 5 THEN 9200002 ELSE 9200001 END AS company_id, n % 50 = 0 AS is_open
    FROM generate_series(1::bigint, $2::bigint) n
  ) numbered
) made
"""


@pytest.fixture(scope="module")
async def crowd(crowded: Database) -> Database:
    """The rows of a search, without their tickets."""
    async with crowded.transaction("SET LOCAL statement_timeout = 0") as connection:
        await connection.raw.execute(_FILL, NOW, ROWS, timeout=900)
    return crowded


async def plans(database: Database, **values: Any) -> list[tuple[str, Plan]]:
    """The plans of a search's first page, as `queries.page` runs them."""
    request = pb.SearchTicketsRequest(**values)
    search = filters.search(request, COMPANY, NOW, datetime.timedelta(hours=72))
    first = queries.beginning(search)
    place = {"company_id": COMPANY, "last_key": first.key, "last_id": first.id, "rows": PAGE}
    plans = []
    if search.scans:
        statement, arguments = queries.scan(search)
        plans.append(("scan", await statement_plan(database, statement, **place, **arguments)))
        rows = [queries.ScannedTicket(*row) for row in await database.rows(statement, **place, **arguments)]
        if queries.has_page(rows, PAGE):
            return plans
    statement, arguments = queries.lookup(search)
    return [*plans, ("look-up", await statement_plan(database, statement, **place, **arguments))]


OPEN = [1, 2, 3]
# The most rows that a page may meet: a scan, or what fits, whichever finds it; and which way finds it.
SEARCHES: list[tuple[dict[str, Any], str, int]] = [
    ({}, "scan", PAGE),
    ({"order": 2}, "scan", PAGE),
    ({"order": 3}, "scan", PAGE),
    ({"order": 4}, "scan", PAGE),
    ({"statuses": OPEN}, "scan", PAGE),
    ({"statuses": OPEN, "order": 2}, "scan", PAGE),
    ({"statuses": [4, 5]}, "scan", PAGE),
    ({"property_id": 9_200_018}, "scan", PAGE),
    ({"unit_id": 9_200_018}, "scan", PAGE),
    ({"assignee_id": 9_200_018}, "scan", PAGE),
    ({"sources": ["import"]}, "scan", PAGE),
    ({"priorities": [4]}, "scan", PAGE * 4),
    ({"has_assignee": False, "statuses": OPEN}, "scan", PAGE * 3),
    ({"statuses": OPEN, "priorities": [3, 4], "order": 3}, "scan", queries.SCAN_ROWS),
    ({"property_id": 9_200_018, "statuses": OPEN}, "look-up", queries.SCAN_ROWS),
    ({"stale": True, "order": 4}, "scan", queries.SCAN_ROWS),
    ({"words": "leak"}, "scan", queries.SCAN_ROWS),
    ({"words": "seldom"}, "look-up", queries.SCAN_ROWS + ROWS // 1000),
    ({"words": "leak seldom", "statuses": [4]}, "look-up", queries.SCAN_ROWS + ROWS // 1000),
    ({"categories": [17]}, "look-up", queries.SCAN_ROWS + ROWS // 10_000),
    ({"ticket_number": 7}, "look-up", 1),
    ({"external_id": "x"}, "look-up", 1),
]


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_page_costs_a_scan_or_what_fits(crowd: Database, analyzed: bool) -> None:
    if analyzed:
        async with crowd.connection() as connection:
            await connection.raw.execute("ANALYZE ticket_search")
    for values, way, most in SEARCHES:
        plans_of_search = await plans(crowd, **values)
        met = sum(plan.rows_met for _, plan in plans_of_search)
        description = f"{values}: " + "; ".join(
            f"{name} {plan.returned} rows of {plan.rows_met} met, {plan.buffers} blocks by {plan.indexes}"
            for name, plan in plans_of_search
        )
        if os.environ.get("SEARCH_ROWS"):
            print(description)  # noqa: T201
        assert not [name for _, plan in plans_of_search for name in plan.whole_tables], description
        # Not exhausted lists are scanned to the end of the scan at most; 2 rows more end it.
        assert met <= 2 * most + 2 and (plans_of_search[-1][0] == way or ROWS < 100_000), description


async def test_words_with_a_typing_error_are_looked_up_and_no_ticket_is_read_for_them(crowd: Database) -> None:
    """A word of a tenth of the tickets, a seldom one, and one that no ticket has."""
    words, prefix = ["lekk", "sledom", "zebra"], f"{COMPANY}/w"
    lexemes = [f"'{prefix}{other}'" for word in words for other in near_words(word)]
    plan = await statement_plan(crowd, queries.SPELLING.statement, BY_INDEX, lexemes=lexemes)
    assert (plan.returned, plan.whole_tables, len(lexemes) > 600) == (2, [], True)
    # The index leaves out entries of the frequent word: see gin_fuzzy_search_limit.
    assert plan.rows_met <= ROWS // 1000 + 2000 and plan.buffers <= 20 * len(lexemes), (plan.rows_met, plan.buffers)
    assert await queries.SPELLING.near(crowd, words[:2], prefix) == {"lekk": ["leak"], "sledom": ["seldom"]}
    # A word that tickets have is meant as it is; three that none has are no typing errors.
    assert await queries.SPELLING.near(crowd, ["lekk", "ticket"], prefix) == {"lekk": ["leak"]}
    assert (
        await queries.SPELLING.near(crowd, words, prefix)
        == await queries.SPELLING.near(crowd, ["ticket"], prefix)
        == {}
    )
