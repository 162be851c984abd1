"""An administrator sets up an endpoint in the console, mends it and deletes it, before a real receiver.

One story in chapters, over HTTP, as a browser without script goes through the pages.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from .console_browser import Browser, Page
from .receiver import Delivery, Receiver
from .system import Company, System

HOUR = timedelta(hours=1)
LADDER_HOURS = (0, 1, 2, 4, 8, 24)
# What differs between two answers to the same request: the request's id and the field `act` of the form to sign out.
VARIES = re.compile(r'<code>[0-9a-f]{24}</code>|name="act"\s+value="[^"]+"|data-idle-seconds="[0-9]+"')


@dataclass
class Story:
    """A company, its administrator's browser, and the endpoint."""

    system: System
    company: Company
    receiver: Receiver
    browser: Browser
    unit_id: int
    sub_id: int = 0
    secret: str = ""
    titles: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/webhooks/{self.sub_id}"

    def ticket(self, title: str) -> None:
        assert self.company.create_ticket(self.unit_id, title, title).status == 201
        self.titles.append(title)

    def sweep(self, at: datetime | None = None) -> None:
        self.system.makeready("sweep", "webhooks", *(["--now", at.isoformat()] if at else []))

    def record(self) -> dict[str, Any]:
        """The subscription over the API."""
        listed = self.system.get("/webhooks", self.company.keys["read"]).json["data"]
        subscription: dict[str, Any]
        (subscription,) = (each for each in listed if each["entity_id"] == self.sub_id)
        return subscription

    def arrived(self, path: str) -> list[Delivery]:
        return self.receiver.at(path)


@pytest.fixture(scope="module")
def story(system: System, receiver: Receiver) -> Story:
    company = system.company("Console Webhooks")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1", "unit_number": "1"}])
    (unit,) = company.walk("/units")
    return Story(system, company, receiver, Browser(system).sign_in(company.email), unit["entity_id"])


def at_once(story: Story, action: str, form: list[tuple[str, str]]) -> list[Page]:
    """Sends a form twice at the same time, as a double click does."""
    pages: list[Page] = []

    def send() -> None:
        pages.append(Browser(story.system, dict(story.browser.cookies)).post(action, form))

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return pages


def test_an_endpoint_is_made_and_its_secret_is_shown_once(story: Story) -> None:
    browser = story.browser
    assert "No endpoints yet" in browser.get("/webhooks").words
    browser.get("/webhooks/new")
    wrong = browser.send("/webhooks/new", destination_url="http://receiver.test/console", events="ticket.created")
    assert wrong.status == 422 and 'id="f-destination_url-e"' in wrong.text
    none = browser.send("/webhooks/new", destination_url="https://receiver.test/console", events=[])
    assert none.status == 422 and "Events is required" in none.words
    offered = set(re.findall(r'name="events"\s+value="([^"]+)"', none.text))
    body = {"destination_url": "https://receiver.test/console", "events": ["nonsense"]}
    refusal = story.system.post("/webhooks", story.company.keys["write"], body, "console events")
    event_names = set(re.findall(r"[a-z]+(?:\.[a-z_]+)+", refusal.json["error"]["message"]))
    assert offered == event_names and len(event_names) == 10
    form = browser.form("/webhooks/new", destination_url="https://receiver.test/console", events=sorted(offered)[3:6])
    first, second = at_once(story, "/webhooks/new", form)
    story.secret = first.element("secret")
    assert story.secret == second.element("secret")
    (listed,) = story.system.get("/webhooks", story.company.keys["read"]).json["data"]
    story.sub_id = listed["entity_id"]
    assert (listed["source"], listed["events"]) == ("administrator", sorted(offered)[3:6])
    assert story.secret.startswith(listed["secret_prefix"])
    assert "is_genuine" in first.words and story.secret not in browser.get(story.path).text


def test_a_test_is_sent(story: Story) -> None:
    page = story.browser.send(f"{story.path}/test")
    assert page.status == 200 and "Test delivered: 200" in page.words
    (test,) = story.arrived("/console")
    assert test.json["event"] == "webhook.test" and test.is_signed_with(story.secret)


def test_a_double_click_rotates_once_and_what_waited_is_signed_with_the_new_secret(story: Story) -> None:
    browser = story.browser
    browser.get(f"{story.path}/pause")
    paused = browser.send(f"{story.path}/pause", reason="A new server")
    assert "Paused since" in paused.words and "Reason: A new server" in paused.words
    assert story.record()["health"] == "paused"
    story.ticket("Waits for the resume")
    story.sweep()
    assert len(story.arrived("/console")) == 1
    page = browser.get(f"{story.path}/rotate")
    assert "1 delivery waiting" in page.words
    pages = at_once(story, f"{story.path}/rotate", browser.form(f"{story.path}/rotate"))
    (new,) = {page.element("secret") for page in pages}
    assert new != story.secret
    browser.get(story.path)
    assert "Endpoint resumed" in browser.send(f"{story.path}/resume").words
    story.sweep()
    _, sent = story.arrived("/console")
    assert sent.is_signed_with(new) and not sent.is_signed_with(story.secret)
    assert sent.json["data"]["title"] == "Waits for the resume"
    story.secret = new


def test_a_signature_gets_its_verdict(story: Story) -> None:
    test, sent = story.arrived("/console")
    for delivery, body, verdict in (
        (sent, sent.body.decode(), "Valid signature."),
        (sent, sent.body.decode() + "\n", "Line breaks at the end of the body were ignored"),
        (sent, json.dumps(sent.json, indent=2), "The body was rewritten."),
        (test, test.body.decode(), "Wrong secret."),
    ):
        story.browser.get(f"{story.path}/signature")
        values = {"signature": delivery.headers["service-signature"], "body": body}
        assert verdict in story.browser.send(f"{story.path}/signature", **values).words
    assert "Enter the header" in story.browser.send(f"{story.path}/signature", signature="", body="x").words


def test_a_dead_endpoint_is_mended_and_what_was_parked_arrives(story: Story) -> None:
    browser, receiver = story.browser, story.receiver
    receiver.answers["/dead"] = [503] * 12
    browser.get(f"{story.path}/change")
    changed = browser.send(f"{story.path}/change", destination_url="https://receiver.test/dead")
    assert "Endpoint updated" in changed.words
    assert story.record()["destination_url"] == "https://receiver.test/dead"
    story.ticket("First that is parked")
    story.ticket("Second that is parked")
    start = datetime.now(UTC) + timedelta(seconds=1)
    for hours in LADDER_HOURS:
        story.sweep(start + hours * HOUR)
    page = browser.get(story.path)
    assert "mostly 503" in page.words and "2 deliveries need a retry" in page.words
    assert f'href="{story.path}/retry"' in page.text
    assert story.record()["health"] == "dead_lettered"
    tomorrow = (start + 24 * HOUR).date().isoformat()
    assert "No matching deliveries need a retry" in browser.get(f"{story.path}/retry?from={tomorrow}").words
    page = browser.get(f"{story.path}/retry")
    assert "2 deliveries of 2 that need a retry" in page.words
    first, second = at_once(story, f"{story.path}/retry", browser.form(f"{story.path}/retry"))
    assert first.words == second.words
    assert "2 deliveries waiting for the sweep" in first.words, first.words
    again = re.search(r'href="([^"]*retried=[0-9]+)"', first.text)
    assert again
    story.sweep(start + 25 * HOUR)
    done = browser.get(again[1].replace("&amp;", "&"))
    assert "Done: 2 delivered" in done.words
    last = story.arrived("/dead")[-2:]
    assert {delivery.json["data"]["title"] for delivery in last} == set(story.titles[-2:])
    assert story.record()["health"] == "healthy"
    assert "Failing since" not in browser.get(story.path).words


def test_another_company_finds_nothing(story: Story) -> None:
    other = Browser(story.system).sign_in(story.system.company("Console Neighbour").email)
    for suffix in ("", "/change", "/delete", "/pause", "/rotate", "/retry", "/signature"):
        hidden, missing = (other.get(f"/webhooks/{sub_id}{suffix}") for sub_id in (story.sub_id, 10**15))
        texts = {VARIES.sub("", page.text) for page in (hidden, missing)}
        assert (hidden.status, missing.status, len(texts)) == (404, 404, 1), suffix
    assert "receiver.test" not in other.get("/webhooks").text


def test_the_endpoint_is_deleted_and_the_audit_log_names_who_did_what(story: Story) -> None:
    browser, name = story.browser, story.company.email.partition("@")[0]
    page = browser.get(story.path)
    assert f"{name} rotated the secret" in page.words and f"{name} paused the endpoint: “A new server”" in page.words
    page = browser.get(f"{story.path}/delete")
    assert "4 deliveries and their responses are deleted" in page.words  # three of events, and the test
    wrong = browser.send(f"{story.path}/delete", host="receiver")
    assert wrong.status == 422 and "Type the host" in wrong.words
    gone = browser.send(f"{story.path}/delete", host="receiver.test")
    assert "Endpoint receiver.test deleted with 4 deliveries" in gone.words
    assert story.system.get("/webhooks", story.company.keys["read"]).json["data"] == []
    assert browser.get(story.path).status == 404
    words = ("audit", "list", str(story.company.company_id), "--subject", "webhook_subscription")
    entries = story.system.makeready(*words)["entries"]
    assert {entry["subject_id"] for entry in entries} == {story.sub_id}
    assert [entry["action"] for entry in reversed(entries)] == [
        "subscription.created", "subscription.tested", "subscription.paused", "subscription.secret_rotated",
        "subscription.resumed", "subscription.changed", "deliveries.retried", "subscription.deleted",
    ]  # fmt: skip
    (actor,) = {entry["actor"] for entry in entries}
    named = browser.get(f"/audit?subject=webhook_subscription&id={story.sub_id}")
    assert actor.startswith("administrator:")
    assert all(f"{name} {entry['action']} webhook_subscription {story.sub_id}" in named.words for entry in entries)
