"""A page at the start and a million tickets deep, and the plans of all pages there: 20 companies, 1,100,000 tickets."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg

from chassis.db.database import Database
from gateway.http.cursors import Cursors
from harness.cpu import spent, used
from harness.load import Client, Script
from harness.seed import Seeded, tickets_url
from harness.sides import CURSOR_KEY, Ours, Side
from makeready.tickets.v1 import ticket_views_pb2 as pb
from svc_tickets.search import filters, queries
from svc_tickets.search.fill import SearchFiller
from svc_tickets.tickets.queries import read
from testkit.plans import filter_sets, page_plan, statement_plan

COMPANIES, TICKETS = 20, 1_000_000
SHARE = 11  # every eleventh of the new tickets belongs to another company
REQUESTS, ROWS = 400, 50
ENDED = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)  # all new tickets are younger than the existing ones

# The other companies' property and unit have the company's id. Tickets changed in the order of their ids, one a minute.
_FILL = f"""
INSERT INTO property (id, version, company_id, name) SELECT c, 1, c, 'P' FROM generate_series($first, $last) c;
INSERT INTO unit (id, version, company_id, name, property_id)
  SELECT c, 1, c, 'U', c FROM generate_series($first, $last) c;
INSERT INTO ticket (company_id, id, version, title, description, category, priority, status, property_id, unit_id,
  permission_to_enter, created_at, updated_at, completed_at, external_id, source)
SELECT coalesce(other, $company), $id + i, 1, 'Ticket ' || i, repeat('It began after the storm last week. ', 5),
  'Plumbing', 'Medium', status, coalesce(other, property_id), coalesce(other, unit_id), true, moment, moment,
  CASE WHEN status = 'Completed' THEN moment END, 'deep-' || i, 'import'
FROM (
  SELECT i, CASE WHEN i % {SHARE} = 0 THEN $first + i / {SHARE} % ($last - $first + 1) END AS other,
    CASE WHEN hashint8(i) % 20 = 0 THEN 'Open' ELSE 'Completed' END AS status,
    timestamptz '{ENDED}' - ($many - i) * interval '1 minute' AS moment,
    i % (SELECT count(*) FROM unit WHERE company_id = $company) AS place
  FROM generate_series(1::bigint, $many) i
) made
JOIN (SELECT row_number() OVER (ORDER BY id) - 1 AS place, id AS unit_id, property_id FROM unit
  WHERE company_id = $company) own USING (place);
"""  # noqa: S608 - constants alone
# Searches of the company that is read. PLACE stands for one of its properties and units.
PLACE = -1
_OPEN = [1, 2, 3]
SEARCHES: dict[str, dict[str, Any]] = {
    "all, newest first": {},
    "all, oldest first": {"order": pb.TICKET_ORDER_OLDEST},
    "all, by priority": {"order": pb.TICKET_ORDER_PRIORITY},
    "open": {"statuses": _OPEN},
    "open, by priority": {"statuses": _OPEN, "order": pb.TICKET_ORDER_PRIORITY},
    "closed": {"statuses": [4, 5]},
    "of a property": {"property_id": PLACE},
    "open, of a property": {"property_id": PLACE, "statuses": _OPEN},
    "of a unit": {"unit_id": PLACE},
    "of a source": {"sources": ["import"]},
    "that nobody has": {"has_assignee": False, "has_vendor": False},
    "a category that no ticket has": {"categories": [17]},
    "a word of each ticket": {"words": "storm"},
    "a word of one ticket": {"words": "77777"},
    "a word that no ticket has": {"words": "zebra"},
    "an external id": {"external_id": "deep-77777"},
}
_OWN_INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'ticket' AND indexdef NOT LIKE '%UNIQUE%'"


@dataclass(frozen=True)
class Depth:
    """seconds: CPU of a page, by process. rows, blocks: what PostgreSQL read for it."""

    name: str
    seconds: dict[str, float]
    rows: int
    blocks: int


@dataclass(frozen=True)
class Deep:
    tickets: int
    pages: list[Depth]
    plans: str
    """Markdown: one row for each set of filters."""
    searches: str = ""
    """Markdown: one row for each search."""


async def measure(ours: Ours, side: Side, seeded: Seeded, tickets: int = TICKETS, requests: int = REQUESTS) -> Deep:
    """Adds `tickets` tickets to the measured company, with those of the others among them; then measures."""
    many = tickets * SHARE // (SHARE - 1)
    await _fill(ours, seeded.measured, many)
    cursors = Cursors(dict([CURSOR_KEY]))
    database = Database(tickets_url(ours), application="bench", connections=2)
    await database.open()
    try:
        deep = await _id_after(database, seeded.measured, tickets)
        pages = []
        for name, after_id in (("at the start", 0), (f"after {tickets:,} tickets", deep)):
            cursor = cursors.issue(after_id, f"{seeded.measured} /tickets?".encode())
            seconds = await _ask(side, seeded, f"/tickets?limit={ROWS}&cursor={cursor}", requests)
            plan = await page_plan(database, read.TICKETS_PAGE, seeded.measured, ROWS, after_id)
            pages.append(Depth(name, seconds, plan.rows_met, plan.buffers))
        await SearchFiller(database).compare()
        async with database.connection() as connection:
            await connection.raw.execute("VACUUM ANALYZE ticket_search", timeout=600)
        searches = await _searches(database, seeded.measured, deep)
        return Deep(many, pages, await _plans(database, seeded.measured, deep), searches)
    finally:
        await database.close()


async def _fill(ours: Ours, company_id: int, many: int) -> None:
    """Fills as a restore does: indexes after the rows, and without checking each foreign key, since all are correct."""
    connection = await asyncpg.connect(tickets_url(ours), server_settings={"session_replication_role": "replica"})
    try:
        indexes = await connection.fetch(_OWN_INDEXES)
        for name, _ in indexes:
            await connection.execute(f"DROP INDEX {name}")
        last_id = await connection.fetchval("SELECT max(id) FROM ticket")
        first = 1_000_000_000
        values = {"first": first, "last": first + COMPANIES - 2, "company": company_id, "id": last_id, "many": many}
        fill = _FILL
        for name, value in values.items():
            fill = fill.replace(f"${name}", str(value))
        await connection.execute(fill)
        await connection.fetchval("SELECT setval('ticket_id', $1)", last_id + 2 * many)
        for _, definition in indexes:
            await connection.execute(definition)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


async def _id_after(database: Database, company_id: int, tickets: int) -> int:
    async with database.connection() as connection:
        ticket_id: int = await connection.raw.fetchval(
            "SELECT id FROM ticket WHERE company_id = $1 ORDER BY id OFFSET $2 LIMIT 1", company_id, tickets
        )
    return ticket_id


async def _ask(side: Side, seeded: Seeded, path: str, requests: int) -> dict[str, float]:
    """CPU seconds of one page, by process."""
    keys = itertools.cycle(seeded.of(seeded.measured, "read"))

    async with Client(side.base_url, 4) as client:

        def script() -> Script:
            while True:
                yield client.request("GET", path, next(keys))

        await client.run(script, requests // 4, 200)
        await side.settled()
        before = used(side.roots)
        await client.run(script, requests, 200)
        return {name: seconds / requests for name, seconds in spent(before, used(side.roots)).items()}


async def _plans(database: Database, company_id: int, deep: int) -> str:
    async with database.connection() as connection:
        place = await connection.raw.fetchrow("SELECT property_id, unit_id FROM ticket WHERE id = $1", deep)
    assert place is not None
    values: dict[str, Any] = {**place, "status": "Open", "ticket_number": 7}
    lines = [
        "| filters | page | shown | rows met | blocks | indexes of tickets |",
        "|---|---|---:|---:|---:|---|",
    ]
    for names in filter_sets(read.TICKETS_PAGE, {"ticket_number": "property_id"}):
        for since in _sinces(names):
            for where, after_id in (("start", 0), ("deep", deep)):
                filters = {name: since[1] if name == "updated_since" else values[name] for name in names}
                plan = await page_plan(database, read.TICKETS_PAGE, company_id, ROWS, after_id, **filters)
                description = ", ".join(name + (f" {since[0]}" if name == "updated_since" else "") for name in names)
                indexes = ", ".join(f"`{name}`" for name in plan.indexes if name.startswith("ticket_"))
                lines.append(
                    f"| {description or 'none'} | {where} | {min(plan.returned, ROWS)} | {plan.rows_met} "
                    f"| {plan.buffers} | {indexes} |"
                )
    return "\n".join(lines)


async def _searches(database: Database, company_id: int, deep: int) -> str:
    """The first page of searches, as people make them."""
    async with database.connection() as connection:
        place = await connection.raw.fetchrow("SELECT property_id, unit_id FROM ticket WHERE id = $1", deep)
    assert place is not None
    lines = ["| search | found by | shown | rows met | blocks | indexes |", "|---|---|---:|---:|---:|---|"]
    for words, values in SEARCHES.items():
        request = pb.SearchTicketsRequest(
            **{name: place[name] if value == PLACE else value for name, value in values.items()}
        )
        search = filters.search(request, company_id, ENDED, datetime.timedelta(hours=72))
        first = queries.beginning(search)
        start = {"company_id": company_id, "last_key": first.key, "last_id": first.id, "rows": ROWS + 1}
        plans, ways = [], []
        if search.scans:
            statement, parameters = queries.scan(search)
            plans, ways = [await statement_plan(database, statement, **start, **parameters)], ["an index scan"]
            matches = [queries.ScannedTicket(*row) for row in await database.rows(statement, **start, **parameters)]
        if not search.scans or not queries.has_page(matches, ROWS + 1):
            statement, parameters = queries.lookup(search)
            plans.append(await statement_plan(database, statement, **start, **parameters))
            ways.append("an index look-up")
        rows = await queries.page(database, company_id, search, None, ROWS + 1, backwards=False)
        met, blocks = sum(plan.rows_met for plan in plans), sum(plan.buffers for plan in plans)
        named = ", ".join(f"`{name}`" for plan in plans for name in plan.indexes)
        lines.append(f"| {words} | {' and '.join(ways)} | {min(len(rows), ROWS)} | {met} | {blocks} | {named} |")
    return "\n".join(lines)


def _sinces(names: tuple[str, ...]) -> Iterator[tuple[str, datetime.datetime]]:
    """The instants for `updated_since`, by how far back they are."""
    yield "an hour", ENDED - datetime.timedelta(hours=1)
    if "updated_since" in names:
        yield "a month", ENDED - datetime.timedelta(days=30)
        yield "a year", ENDED - datetime.timedelta(days=365)
        yield "ever", ENDED - datetime.timedelta(days=3650)


def table(deep: Deep) -> str:
    """Markdown: one row for each depth."""
    lines = [
        f"| a page of {ROWS} of a company with {deep.tickets * (SHARE - 1) // SHARE:,} tickets | ms CPU "
        "| of these PostgreSQL | rows met | blocks |",
        "|---|---:|---:|---:|---:|",
    ]
    for page in deep.pages:
        total = 1000 * sum(page.seconds.values())
        lines.append(
            f"| {page.name} | {total:.2f} | {1000 * page.seconds['postgres']:.3f} | {page.rows} | {page.blocks} |"
        )
    return "\n".join(lines)
