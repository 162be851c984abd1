"""GET /tickets (spec 4.2, 4.12) against a running svc-tickets."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import BigInteger, bindparam, delete

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.common.v1.documents_pb2 import ImportRow
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from svc_tickets.tickets.queries.read import TICKET_DOCUMENTS, TICKETS_PAGE
from testkit.plans import page_plan, rows_looked_at, statement_plan

pytestmark = pytest.mark.usefixtures("places")

LISTED = 40
WIPE = [
    Statement(delete(table).where(table.c.company_id == bindparam("company_id", type_=BigInteger)))
    for table in (t.ticket_of_inspection_row, t.ticket_status_change, t.ticket_comment, t.ticket)
]


@pytest.fixture(scope="module", autouse=True)
async def listed(client: Any, database: Database, places: None, service: Any) -> None:
    """Forty tickets of company 7, alternating between two units, every fifth Cancelled; one of company 8."""
    from chassis.auth.identity import OPERATOR, Identity

    for wipe in WIPE:
        await database.execute(wipe, company_id=7)
    rows = [
        {
            "external_id": f"L{number}",
            "property": "P10",
            "title": f"Ticket {number}",
            "category": "HVAC",
            "status": "Cancelled" if number % 5 == 0 else "Open",
            "created_at": f"2026-01-01T00:00:{number:02}Z",
            "updated_at": f"2026-01-01T00:00:{number:02}Z",
            **({"unit": "U1"} if number % 2 else {}),
        }
        for number in range(LISTED)
    ]
    request = pb.ImportTicketsRequest(
        rows=[ImportRow(line=i, json=json.dumps(row).encode()) for i, row in enumerate(rows)]
    )
    response = await client("ImportTickets", request, Identity(OPERATOR, "operator", 7))
    assert {result.outcome for result in response.results} == {1}, response


async def walk(client: Any, limit: int, who: Any = None, **filters: Any) -> list[dict[str, Any]]:
    rows_read, after, pages = [], 0, 0
    while True:
        request = pb.ListTicketsRequest(after_id=after, limit=limit, **filters)
        page = (await client("ListTickets", request, who)).page
        rows = json.loads(page.data)
        assert len(rows) <= limit
        rows_read += rows
        pages += 1
        if not page.HasField("next_after_id"):
            return rows_read
        assert len(rows) == limit and page.next_after_id == rows[-1]["entity_id"]
        after = page.next_after_id
        assert pages < 100


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 60))
async def test_a_walk_returns_each_record_once_ascending(client: Any, limit: int) -> None:
    ids = [row["entity_id"] for row in await walk(client, limit)]
    assert len(ids) == LISTED and ids == sorted(set(ids))


async def test_a_full_last_page_ends_the_walk(client: Any) -> None:
    page = (await client("ListTickets", pb.ListTicketsRequest(limit=LISTED))).page
    assert len(json.loads(page.data)) == LISTED and not page.HasField("next_after_id")


async def test_each_filter_narrows_and_all_combine(client: Any) -> None:
    since = pb.ListTicketsRequest().updated_since
    since.FromDatetime(datetime.datetime(2026, 1, 1, 0, 0, 30, tzinfo=datetime.UTC))
    assert {row["status"] for row in await walk(client, 7, status=5)} == {"Cancelled"}
    assert len(await walk(client, 7, status=5)) == LISTED // 5
    assert len(await walk(client, 7, unit_id=100)) == LISTED // 2
    assert len(await walk(client, 7, property_id=10)) == LISTED
    assert [row["title"] for row in await walk(client, 7, updated_since=since)] == [
        f"Ticket {n}" for n in range(30, 40)
    ]
    ticket = (await walk(client, 50))[3]
    assert await walk(client, 5, property_id=10, ticket_number=ticket["ticket_number"]) == [ticket]
    assert len(await walk(client, 7, property_id=10, unit_id=100, status=5, updated_since=since)) == 1


@pytest.mark.parametrize("filters", [{"property_id": 0}, {"unit_id": 10**15}, {"property_id": 20}, {"unit_id": 200}])
async def test_a_filter_that_names_nothing_of_the_company_is_an_empty_page(client: Any, filters: Any) -> None:
    assert await walk(client, 10, **filters) == []


async def test_another_companys_ticket_is_as_unknown_as_none(client: Any, stranger: Any) -> None:
    mine = (await walk(client, 50))[0]["entity_id"]
    sentences = []
    for ticket_id in (mine, 10**12):
        with pytest.raises(Refusal) as refused:
            await client("GetTicket", pb.GetTicketRequest(ticket_id=ticket_id), stranger)
        sentences.append((refused.value.status, refused.value.code, refused.value.message))
    assert sentences[0] == sentences[1] and sentences[0][:2] == (404, "not_found")
    assert mine not in [row["entity_id"] for row in await walk(client, 50, stranger)]


@pytest.fixture(scope="module")
async def crowd(crowded: Database) -> Database:
    """Thousands of tickets of two companies around twenty of company 90, so that statistics cover few companies."""
    async with crowded.connection() as connection:
        for company_id, first, many in (
            (91, 9 * 10**9, 4000),
            (90, 9 * 10**9 + 4000, 20),
            (91, 9 * 10**9 + 4020, 4000),
        ):
            for replica in (
                "property (id, company_id, version, name) SELECT i, $1, 1, 'x'",
                "unit (id, company_id, version, name, property_id) SELECT i, $1, 1, 'x', i",
                "staff (id, company_id, version, name) SELECT i, $1, 1, 'x'",
                "vendor (id, company_id, version, name) SELECT i, $1, 1, 'x'",
                "ticket (id, company_id, version, title, category, priority, status, property_id, unit_id, assignee_id,"
                " vendor_id, permission_to_enter, created_at, updated_at, source) SELECT i, $1, 1, 'x', 'Leak', 'Low',"
                " (ARRAY['Open', 'In Progress', 'On Hold'])[1 + i % 3], i, i, i, i, true, now(), now(), 'import'",
            ):
                await connection.raw.execute(
                    f"INSERT INTO {replica} FROM generate_series($2::bigint, $2 + $3 - 1) i", company_id, first, many
                )
        await connection.raw.execute("ANALYZE")
    return crowded


@pytest.mark.parametrize(
    ("names", "index"),
    [
        ([], "ticket_pkey"),
        (["property_id"], "ticket_page_of_property"),
        (["unit_id"], "ticket_page_of_unit"),
        (["status"], "ticket_page_of_status"),
    ],
)
async def test_a_page_is_read_from_its_index_and_looks_at_no_other_companys_rows(
    crowd: Database, names: list[str], index: str
) -> None:
    filters = {"property_id": 9 * 10**9 + 4000, "unit_id": 9 * 10**9 + 4000, "status": "Open"}
    plan = await page_plan(crowd, TICKETS_PAGE, 90, 50, **{name: filters[name] for name in names})
    (scan,) = (node for node in plan if node.get("Relation Name") == "ticket")
    assert scan.get("Index Name") == index
    assert max(map(rows_looked_at, plan)) <= 51


@pytest.mark.parametrize("many", [1, 16, 32])
async def test_tickets_that_are_fetched_together_are_met_by_their_keys(crowd: Database, many: int) -> None:
    ids = [9 * 10**9 + 4000 + number for number in range(many)]  # from the 21st on of another company
    keys = {"company_ids": [90] * many, "ids": ids}
    for statement in (TICKET_DOCUMENTS._fetched, TICKET_DOCUMENTS._rendered):
        plan = await statement_plan(crowd, statement, **keys)
        assert plan.returned == min(many, 20)
        assert not {"ticket", "property", "unit", "staff", "vendor"}.intersection(plan.whole_tables)
        assert max(map(rows_looked_at, plan)) <= many
