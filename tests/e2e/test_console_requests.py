"""The page of requests in a browser: what comes while it is open, what stays under the reader's hands, and the ways
from a request to what it did and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, sync_playwright

from testkit.chromium import OPTIONS, program

from .system import Answer, Company, System
from .test_console_story import Person
from .test_first_light import subscribe

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@dataclass
class Reader:
    """An administrator of a sandbox who looks at its requests."""

    company: Company
    person: Person
    unit_id: int

    def refuse(self, cursor: str = "x") -> str:
        """A refused request; its id."""
        answer = self.company.system.get("/tickets", self.company.key_for(), cursor=cursor)
        assert answer.status == 400
        return str(answer.headers["X-Request-Id"])

    def row(self, request_id: str) -> Locator:
        return self.person.page.locator(f"#log a[href*='{request_id}']")

    def shows(self, request_id: str) -> None:
        """Waits until the open page shows the request, by itself."""
        self.row(request_id).wait_for()


@pytest.fixture(scope="module")
def reader(system: System) -> Iterator[Reader]:
    executable = program()
    company = system.company("Console Requests", "--sandbox")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    system.makeready("wait")
    subscribe(company, "/console-requests")
    (unit,) = company.walk("/units")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=OPTIONS)
        origin = f"http://localhost:{system.ports['MAKEREADY_ADMIN_PORT']}"
        person = Person(chromium.new_context(), origin).sign_in(company.email)
        yield Reader(company, person, unit["entity_id"])
        assert not person.said
        chromium.close()


def test_a_request_appears_on_the_open_page_and_what_the_filters_exclude_does_not(reader: Reader) -> None:
    reader.person.open("/requests?status=4xx&route=%2Ftickets")
    reader.shows(reader.refuse())
    allowed = str(reader.company.system.get("/tickets", reader.company.key_for()).headers["X-Request-Id"])
    other = str(reader.company.system.get("/turns/0", reader.company.key_for()).headers["X-Request-Id"])
    reader.shows(reader.refuse())
    assert reader.row(allowed).count() == reader.row(other).count() == 0
    page = reader.person.page
    assert (page.input_value("#status"), page.input_value("#route")) == ("4xx", "/tickets")
    assert reader.person.path == "/requests?status=4xx&route=%2Ftickets"


def test_nothing_moves_under_the_readers_hands(reader: Reader) -> None:
    read = [reader.refuse() for _ in range(30)]
    page = reader.person.page
    page.set_viewport_size({"width": 1000, "height": 500})
    reader.person.open("/requests?status=4xx")
    reader.shows(read[-1])
    page.fill("#code", "invalid_cur")  # typed, and not sent
    row = reader.row(read[5])
    row.focus()
    row.evaluate("link => getSelection().selectAllChildren(link)")
    selected = page.evaluate("getSelection().toString()")
    row.evaluate("link => link.scrollIntoView({block: 'center'})")
    before = row.evaluate("link => link.getBoundingClientRect().y")
    assert selected and page.evaluate("scrollY") > 0
    reader.shows(reader.refuse())
    assert row.evaluate("link => link === document.activeElement")
    assert page.evaluate("getSelection().toString()") == selected
    assert row.evaluate("link => link.getBoundingClientRect().y") == pytest.approx(before, abs=1)
    assert page.input_value("#code") == "invalid_cur"


def test_links_lead_from_a_request_to_its_record_event_and_delivery_and_back(reader: Reader) -> None:
    system, page = reader.company.system, reader.person.page
    opened: Answer = reader.company.create_ticket(reader.unit_id, "Call Ana", "links")
    ticket, request_id = opened.json["entity_id"], str(opened.headers["X-Request-Id"])
    system.makeready("wait")
    reader.person.open("/requests")
    reader.shows(request_id)

    def press(link: Locator) -> None:
        with page.expect_navigation():
            link.first.click()
        page.wait_for_load_state()

    press(reader.row(request_id))
    request = page.url
    assert "POST /tickets" in reader.person.words and "ticket.created" in reader.person.words
    page.click("summary:has-text('Request body')")
    assert '"title": "[redacted string]"' in page.inner_text("[aria-label='Request body']")
    page.click("summary:has-text('Response body')")
    assert '"priority": "Medium"' in page.inner_text("[aria-label='Response body']")
    press(page.locator(f"main a[href='/tickets/{ticket}']"))
    assert "Call Ana" in reader.person.words
    page.go_back()
    press(page.locator("main a[href^='/events/']"))
    event = page.url
    assert re.search(r"/events/[0-9a-f-]{36}", event)
    press(page.locator(f"main a[href*='{request_id}']"))  # and back
    assert page.url.partition("?")[2] == request.partition("?")[2]
    page.goto(event)
    press(page.locator("main a[href*='/deliveries/']"))
    assert "Call Ana" in reader.person.words and "waiting" in reader.person.words.lower()
    press(page.locator("main a[href^='/events/']"))
    assert page.url == event


def test_the_writes_of_a_key_are_in_the_audit_log_with_their_address(reader: Reader) -> None:
    system, page = reader.company.system, reader.person.page
    opened: Answer = reader.company.create_ticket(reader.unit_id, "Drain is slow", "audited")
    ticket = opened.json["entity_id"]
    words = ("--name", "Leasing sync", "--administrator", reader.company.email)
    key = system.makeready("key", "mint", str(reader.company.company_id), "--scope", "write", *words)["key"]
    changed = system.call("PATCH", f"/tickets/{ticket}", key, {"status": "In Progress"}, {"Idempotency-Key": "audited"})
    assert changed.status == 200
    refused = system.call("PATCH", f"/tickets/{ticket}", key, {"status": "Completed"}, {"Idempotency-Key": "no note"})
    reader.person.open("/requests")
    reader.shows(str(refused.headers["X-Request-Id"]))
    line = (
        page.locator("#log tr").filter(has=page.locator(f"a[href*='{refused.headers['X-Request-Id']}']")).inner_text()
    )
    assert f"PATCH /tickets/{ticket}" in line and refused.json["error"]["message"] in line and "Leasing sync" in line
    reader.person.open(f"/audit?subject=ticket&id={ticket}")
    acts = page.locator("table.audit tbody tr")
    assert acts.count() == 2  # opened, and changed
    act = acts.first.inner_text()
    assert all(text in act for text in (f"PATCH /tickets/{ticket}", "Leasing sync", "127.0.0.1"))
    assert str(changed.headers["X-Request-Id"]) in act
    page.fill("#actor", "leasing")
    page.fill("#subject", "")
    page.fill("#id", "")
    page.click(".audit-filters button")
    page.wait_for_url("**/audit?actor=leasing*")
    assert acts.count() == 1 and page.input_value("#actor") == "leasing"
