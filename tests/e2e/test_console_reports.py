"""A manager's questions of a year: each is answered within three clicks of the first page, and as SQL answers it."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
from playwright.sync_api import sync_playwright

from makeready_local.databases import url_for
from testkit.chromium import OPTIONS, program
from testkit.patience import until

from .system import Company, System
from .test_console_story import Person

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
GROUPED = """SELECT place.name FROM ticket JOIN {table} AS place ON place.id = ticket.{column}
    WHERE ticket.company_id = $1 {where} GROUP BY 1 ORDER BY {order}, 1 LIMIT 1"""
MEDIAN = "percentile_disc(0.5) WITHIN GROUP (ORDER BY completed_at - ticket.created_at) DESC"
OPEN = "AND status NOT IN ('Completed', 'Cancelled')"
# By question: the database, and the SQL that answers it. An answer is a name, or some numbers.
TICKETS: dict[str, str] = {
    "Which property has the most work?": GROUPED.format(
        table="property", column="property_id", where="", order="count(*) DESC"
    ),
    "What kind of work is it?": """SELECT category FROM ticket WHERE company_id = $1 GROUP BY 1
        ORDER BY count(*) DESC LIMIT 1""",
    "Who has the most open work?": GROUPED.format(
        table="staff", column="assignee_id", where=OPEN, order="count(*) DESC"
    ),
    "Which vendor has the most open work?": GROUPED.format(
        table="vendor", column="vendor_id", where=OPEN, order="count(*) DESC"
    ),
    "Which vendor is slow?": GROUPED.format(
        table="vendor", column="vendor_id", where="AND completed_at IS NOT NULL", order=MEDIAN
    ),
    "What work comes back?": """SELECT category FROM ticket JOIN ticket_status_change AS change
        ON change.company_id = ticket.company_id AND change.ticket_id = ticket.id
        WHERE ticket.company_id = $1 AND from_status = 'Completed' GROUP BY 1 ORDER BY count(*) DESC LIMIT 1""",
    "How soon do we respond?": """SELECT count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY extract(
        epoch FROM first.at - created_at)::int / 60) FROM ticket JOIN LATERAL (SELECT min(occurred_at) AS at
        FROM ticket_status_change AS change WHERE change.company_id = ticket.company_id
        AND change.ticket_id = ticket.id) AS first ON first.at IS NOT NULL
        WHERE company_id = $1 AND source NOT IN ('staff', 'inspection')""",
    "How long does work take?": """SELECT count(*), percentile_disc(0.5) WITHIN GROUP (
        ORDER BY extract(epoch FROM completed_at - created_at)::int / 60) FROM ticket
        WHERE company_id = $1 AND completed_at IS NOT NULL""",
    "Is the backlog growing?": f"SELECT count(*) FROM ticket WHERE company_id = $1 {OPEN}",
}
TURNS: dict[str, str] = {
    "How long from notice to ready?": """SELECT count(*), percentile_disc(0.5) WITHIN GROUP (
        ORDER BY ready.changed_at::date - notice.changed_at::date) FROM unit_status_change AS ready
        JOIN unit_status_change AS notice USING (company_id, unit_id, turn_id)
        WHERE company_id = $1 AND ready.to_status = 'Vacant Ready' AND notice.to_status = 'Notice'""",
    "Where are units vacant longest?": """SELECT property.name FROM (SELECT property_id, move_out_date, lead(
        move_in_date) OVER (PARTITION BY unit_id ORDER BY id) AS let FROM transition WHERE company_id = $1) AS turn
        JOIN property ON property.id = turn.property_id WHERE let IS NOT NULL GROUP BY 1
        ORDER BY percentile_disc(0.5) WITHIN GROUP (ORDER BY let - move_out_date) DESC LIMIT 1""",
}
HEADLINES = {"first_response": "First response", "completed": "Completion", "notice_to_ready": "Notice to ready"}


@dataclass(frozen=True)
class Managed:
    system: System
    company: Company
    person: Person

    def asked(self, database: str, sql: str) -> list[Any]:
        """The first row that SQL returns of the company's raw records."""
        secrets = json.loads((self.system.state / "secrets.json").read_text())
        url = url_for(self.system.runtime["database_url"], database, secrets[f"database_{database}"])

        async def row() -> list[Any]:
            connection = await asyncpg.connect(url)
            try:
                return list((await connection.fetch(sql, self.company.company_id))[0])
            finally:
                await connection.close()

        with ThreadPoolExecutor(1) as thread:  # this one has the browser's event loop
            return thread.submit(lambda: asyncio.run(row())).result()


def ago(days: int, hours: int = 0) -> str:
    return (NOW - datetime.timedelta(days=days, hours=hours)).isoformat()


def _tickets() -> Iterator[dict[str, Any]]:
    """Most of P1, most Plumbing; V2 is slow; S2 has the most open ones."""
    for number in range(40):
        is_open, vendor = number % 4 == 0, ("V1", "V2", None)[number % 3]
        opened, hours = 3 + 8 * number, 30 + (200 if vendor == "V2" else number % 7)
        row: dict[str, Any] = {
            "external_id": f"R{number}", "property": "P1" if number % 3 else "P2", "title": "Tap drips",
            "category": "Plumbing" if number % 5 else "HVAC", "priority": "Low", "status": "Open",
            "created_at": ago(opened, hours), "assignee": "S1" if number % 8 == 0 and number < 12 else "S2",
        }  # fmt: skip
        if not is_open:
            row |= {"status": "Completed", "completed_at": ago(opened)}
        yield row | ({"assigned_vendor": vendor} if vendor else {})


@pytest.fixture(scope="module")
def managed(system: System) -> Iterator[Managed]:
    company = system.company("Managed")
    number = str(company.company_id)
    company.import_rows("staff", [{"external_id": f"S{n}", "name": f"Staff {n}"} for n in (1, 2)])
    company.import_rows("vendors", [{"external_id": f"V{n}", "name": f"Vendor {n}"} for n in (1, 2)])
    places = [{"external_id": f"P{n}", "name": f"House {n}", "address": f"{n} Elm St"} for n in (1, 2)]
    company.import_rows("properties", places)
    company.import_rows("units", [{"external_id": f"U{n}", "property": f"P{n}", "name": f"Unit {n}"} for n in (1, 2)])
    company.import_rows("tickets", list(_tickets()))
    for n, vacant in ((1, 9), (2, 30)):
        turns = [
            (f"A{n}", "Completed", ago(300)[:10], ago(100)[:10]),
            (f"B{n}", "Active", ago(100 - vacant)[:10], None),
        ]
        for external_id, status, moved_in, moved_out in turns:
            row = {"external_id": external_id, "unit": f"U{n}", "status": status, "move_in_date": moved_in}
            company.import_rows("turns", [row | ({"move_out_date": moved_out} if moved_out else {})])
    units = {unit["external_id"]: str(unit["entity_id"]) for unit in company.walk("/units")}
    system.makeready("turn", "notice", number, units["U1"], "--move-out-date", ago(0)[:10])
    for status in ("Vacant Not Ready", "Vacant Ready"):
        system.makeready("turn", "unit-status", number, units["U1"], "--unit-status", status)
    ids = {ticket["external_id"]: str(ticket["entity_id"]) for ticket in company.walk("/tickets")}
    for name in ("R5", "R10"):  # HVAC
        system.makeready("ticket", "status", number, ids[name], "--status", "Open")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program(), args=OPTIONS)
        context = chromium.new_context(viewport={"width": 1360, "height": 900})
        person = Person(context, f"http://localhost:{system.ports['MAKEREADY_ADMIN_PORT']}")
        person.sign_in(company.email)
        yield Managed(system, company, person)
        chromium.close()


def ask(managed: Managed, question: str) -> Person:
    """Two clicks from the first page."""
    person = managed.person
    person.open("/")
    for words in ("Reports", question):
        with person.page.expect_navigation():
            person.page.click(f"a:has-text('{words}') >> visible=true")
    return person


@pytest.mark.parametrize("question", [*TICKETS, *TURNS])
def test_a_question_is_answered_as_sql_answers_it(managed: Managed, question: str) -> None:
    is_of_turns = question in TURNS
    answer = managed.asked("occupancy" if is_of_turns else "tickets", (TURNS if is_of_turns else TICKETS)[question])

    def is_told() -> bool:
        page = ask(managed, question).page
        part = page.url.partition("#")[2]
        if part == "groups":
            first = page.inner_text("section:has(> header > #groups) tbody tr:first-child th").strip()
            return first == str(answer[0])
        page.click(f"section:has(> header > #{part}) summary")
        months = page.locator(f"section:has(> header > #{part}) tbody tr")
        newest = months.first.inner_text().split("\t")
        counts = [int(months.nth(n).locator("td").last.inner_text().split()[0].replace(",", "")) for n in range(12)]
        if part == "backlog":
            return newest[1] == str(answer[0])
        told = page.inner_text(f"dl.headlines dt:text-is('{HEADLINES[part]}') + dd")
        return sum(counts) == int(answer[0]) and is_near(told, float(answer[1]))

    until(is_told, lambda: (question, answer, managed.person.words))


def is_near(told: str, value: float) -> bool:
    """Whether the page says this many minutes, or days of turns, to within its rounding and 2 %."""
    number, unit = re.fullmatch(r"([\d.]+) (min|h|days?)", told.strip()).groups()  # type: ignore[union-attr]
    minutes = {"min": 1, "h": 60}.get(unit, 1440)
    amounts = [float(number) * minutes, float(number)]
    return any(abs(amount - value) <= 0.02 * value + 0.05 * minutes for amount in amounts)


def test_a_figure_leads_to_its_records_and_a_file_has_all_of_them(managed: Managed) -> None:
    person = ask(managed, "Which property has the most work?")
    row = person.page.locator("section:has(> header > #groups) tbody tr").first
    count = int(row.locator("td a").first.inner_text())
    with person.page.expect_navigation():
        row.locator("td a").first.click()
    assert f"{count} tickets" in person.words or person.page.locator("main tbody tr").count() >= min(count, 50)
    person.open("/reports/tickets?from_month=2026-13")
    assert "must be a month" in person.words and "The whole period" in person.words
    written = managed.system.run(
        "report", "tickets", str(managed.company.company_id), "--csv", "--group-by", "priority"
    )
    lines = written.stdout.splitlines()
    assert lines[0].startswith("part,starts_on,entity_id,group,measure") and any(
        line.startswith("priority,,,Low,opened,tickets,40") for line in lines
    ), lines[:5]
