"""An administrator helps deliveries to arrive, in the console, before a real receiver.

One story in chapters, over HTTP, as a browser without script goes through the pages.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from .console_browser import Browser, Page
from .receiver import Delivery, Receiver
from .system import Company, System

HOUR = timedelta(hours=1)
LADDER_HOURS = (0, 1, 2, 4, 8, 24)
TITLES = ("卫生间漏水 <b>", "Fuite d'eau – 2e étage", "مياه", "Tap drips")
MENDED, CLOSED, WELL = "/console-mended", "/console-closed", "/console-well"


@dataclass
class Story:
    """A company, its administrator's browser, three endpoints by path, and the events by the ticket's title."""

    system: System
    company: Company
    receiver: Receiver
    browser: Browser
    endpoints: dict[str, int] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    begun: datetime = field(default_factory=lambda: datetime.now(UTC) + HOUR)

    @property
    def name(self) -> str:
        """The administrator's, as the menu has it."""
        assert self.browser.page is not None
        match = re.search(r'<div class="who">.*?<b\s+dir="auto">([^<]+)</b>', self.browser.page.text, re.DOTALL)
        assert match
        return match[1]

    def sent(self, path: str, title: str) -> list[Delivery]:
        """What arrived at an endpoint about a ticket."""
        return [delivery for delivery in self.receiver.at(path) if delivery.json["data"]["title"] == title]

    def event_id(self, title: str) -> str:
        return str(self.sent(WELL, title)[0].json["event_id"])

    def path(self, endpoint: str, title: str = "") -> str:
        """The page of an endpoint's deliveries, or of the one about a ticket."""
        whole = f"/webhooks/{self.endpoints[endpoint]}/deliveries"
        return f"{whole}/{self.event_id(title)}" if title else whole

    def sweep(self, hours: float) -> None:
        self.system.makeready("sweep", "webhooks", "--now", (self.begun + hours * HOUR).isoformat())

    def audited(self, endpoint: str) -> str:
        """The audit log of an endpoint, as the console shows it."""
        page = self.browser.get(f"/audit?subject=webhook_subscription&id={self.endpoints[endpoint]}")
        assert f'<span dir="auto">{self.name}</span>' in page.text
        return page.words

    def found(self, sent: Delivery, page: Page) -> None:
        """The page shows the body that the receiver got, to the byte."""
        match = re.search(r'<pre class="code raw"[^>]*body"[^>]*>(.*?)</pre>', page.text, re.DOTALL)
        assert match and html.unescape(re.sub(r"<[^>]+>", "", match[1])).encode() == sent.body


@pytest.fixture(scope="module")
def story(system: System, receiver: Receiver) -> Story:
    company = system.company("Console Deliveries")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1", "unit_number": "1"}])
    (unit,) = company.walk("/units")
    told = Story(system, company, receiver, Browser(system).sign_in(company.email))
    receiver.answers |= {MENDED: [503] * 6 * len(TITLES), CLOSED: [503] * 3}
    receiver.bodies |= {MENDED: b'{"error": "closed for <repairs>"}'}
    for path in (MENDED, WELL):
        subscribe(told, path)
    for title in TITLES:
        opened = company.create_ticket(unit["entity_id"], title, f"deliveries {len(told.requests)}")
        told.requests[title] = str(opened.headers["X-Request-Id"])
    for hours in LADDER_HOURS:
        told.sweep(hours)
    return told


def subscribe(story: Story, path: str) -> None:
    body = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.created"]}
    answer = story.system.post("/webhooks", story.company.keys["write"], body, path)
    assert answer.status == 201, answer
    story.endpoints[path] = answer.json["entity_id"]


def test_a_parked_delivery_is_read_and_retried_and_arrives_once(story: Story) -> None:
    title, browser = TITLES[0], story.browser
    page = browser.get(story.path(MENDED) + "?state=parked")
    assert page.words.count("503") == len(TITLES) and f"#1 {title}" in page.words
    page = browser.get(story.path(MENDED, title))
    assert "6 of 6 scheduled attempts" in page.words and "503, needs retry" in page.words
    assert "closed for <repairs>" in page.words and "first byte" in page.text and "Sent to 127.0.0.1" in page.words
    last = story.sent(MENDED, title)[-1]
    assert last.headers["service-signature"] in page.text and "Service-Attempt: 6" in page.words
    story.found(last, page)
    assert browser.get(story.path(MENDED, title) + "?body").text.encode() == last.body
    browser.get(story.path(MENDED, title))
    form = browser.form(story.path(MENDED, title) + "/retry")
    for _ in range(2):  # sent again, it is the same act
        page = browser.post(story.path(MENDED, title) + "/retry", form)
        assert "ticket.created delivered: 200" in page.words and "retried" in page.words
        assert f'<b dir="auto">{story.name}</b> retried' in page.text
    sent = story.sent(MENDED, title)
    assert (
        len(sent) == 7
        and {delivery.body for delivery in sent} == {last.body}
        and sent[-1].headers["service-attempt"] == "7"
    )
    assert "delivery.retried" in story.audited(MENDED)


def test_what_is_selected_is_due_and_the_rest_stays_parked(story: Story) -> None:
    browser, path = story.browser, story.path(MENDED)
    chosen = [story.event_id(title) for title in TITLES[1:3]]
    page = browser.get(f"{path}?state=parked")
    assert page.text.count('name="event_id"') == 3
    assert "Select deliveries first" in browser.send(f"{path}/retry").words
    browser.get(f"{path}?state=parked")
    page = browser.send(f"{path}/retry", event_id=chosen)
    assert "2 deliveries queued for the next sweep" in page.words and page.text.count('name="event_id"') == 1
    story.sweep(LADDER_HOURS[-1])
    for title, attempts in zip(TITLES[1:], (7, 7, 6), strict=True):
        assert len(story.sent(MENDED, title)) == attempts
    assert "deliveries.retried" in story.audited(MENDED)
    listed = browser.get(f"{path}?state=succeeded&csv=1").text
    assert listed.count("\r\n") == 4 and TITLES[1] in listed


def test_a_waiting_delivery_is_attempted_beside_its_ladder(story: Story) -> None:
    browser = story.browser
    subscribe(story, CLOSED)
    (unit,) = story.company.walk("/units")
    title = "Later"
    story.company.create_ticket(unit["entity_id"], title, title)
    story.sweep(LADDER_HOURS[-1])
    (first,) = story.sent(CLOSED, title)
    path = story.path(CLOSED, title)
    page = browser.get(path)
    assert "1 of 6 scheduled attempts" in page.words and "Next" in page.words
    assert re.search(r"with the sweep at [^.]*:00 [ap]m ?\. “Attempt now” sends it right away", page.words), page.words
    due = re.search(r'class="next">.*?<time datetime="([^"]+)"', page.text, re.DOTALL)
    page = browser.send(f"{path}/attempt")
    assert "failed: 503" in page.words and "next scheduled attempt has not changed" in page.words
    assert due and due[1] in page.text and "1 of 6 scheduled attempts" in page.words
    story.receiver.answers[CLOSED] = []
    page = browser.send(f"{path}/attempt")
    assert "delivered: 200" in page.words and "attempted now" in page.words
    assert [delivery.body for delivery in story.sent(CLOSED, title)] == [first.body] * 3
    assert story.audited(CLOSED).count("delivery.attempted") == 2


def test_a_delivered_event_is_sent_again_with_the_same_id(story: Story) -> None:
    title, browser = TITLES[3], story.browser
    path = story.path(WELL, title)
    browser.get(path)
    page = browser.send(f"{path}/resend")
    assert "delivered: 200" in page.words and "resent" in page.words
    first, again = story.sent(WELL, title)
    assert first.body == again.body and again.headers["service-attempt"] == "2"
    assert "delivery.resent" in story.audited(WELL)


def test_the_trace_leads_from_the_request_to_the_deliveries_and_back(story: Story) -> None:
    title, browser = TITLES[0], story.browser
    request_id, event_id = story.requests[title], story.event_id(title)
    page = browser.get(f"/events?request_id={request_id}")
    assert "A request with an API key" in page.words and f"#1 {title}" in page.words
    links = (f"/events/{event_id}", story.path(MENDED, title), story.path(WELL, title))
    assert all(f'href="{path}"' in page.text for path in links)
    for path in links:
        assert f"request_id={request_id}" in browser.get(path).text
    page = browser.get(f"/events/{event_id}")
    story.found(story.sent(WELL, title)[0], page)
    assert f'href="{story.path(MENDED, title)}"' in page.text
    listed = browser.get("/events?outcome=undelivered")
    assert TITLES[3] in listed.words and title not in listed.words, listed.words
    for text in (event_id, request_id, f"{story.endpoints[WELL]}/{event_id}"):
        assert browser.get(f"/events/found?q={text}").words.count("ticket.created") >= 1
    ticket = json.loads(story.sent(WELL, title)[0].body)["data"]["entity_id"]
    panel = browser.get(f"/events/panel?kind=ticket&id={ticket}")
    assert "2 of 2" in panel.words


def test_another_companys_administrator_finds_nothing(story: Story, system: System) -> None:
    other = Browser(system).sign_in(system.company("Console Neighbours").email)
    title = TITLES[0]
    nobody = other.get("/webhooks/999999/deliveries")
    assert nobody.status == 404
    for path in (story.path(MENDED), story.path(MENDED, title), f"/events/{story.event_id(title)}"):
        page = other.get(path)
        assert (page.status, title in page.text) == (404, False)
    for path in ("/events", f"/events?request_id={story.requests[title]}", "/events/panel?kind=ticket&id=1"):
        page = other.get(path)
        assert page.status == 200 and "receiver.test" not in page.text and "#1" not in page.words
    before = len(story.sent(WELL, title))
    act: dict[str, Any] = dict(other.form("/sign-out"))
    assert other.post(story.path(WELL, title) + "/resend", [("act", act["act"])]).status == 403
    assert len(story.sent(WELL, title)) == before
