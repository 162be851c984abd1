"""An administrator's view of webhooks and commands on them, over the command line (spec 2.12, 3.2, 6.3).

One story in chapters, as every command is a process: three subscriptions whose receivers fail, one of them paused
halfway, go down the ladder in simulated hours.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from .receiver import Receiver
from .system import Company, System

HOUR = timedelta(hours=1)
HOSTILE = b'\x1b]0;owned\x07\x1b[2J\r\n<script>\xff "quoted"\x00 ' + "é…\u202e".encode() + b"x" * 5000
EVENT = ["event_id", "event", "company_id", "entity_id", "occurred_at", "stored_at", "request_id", "deliveries"]


@dataclass
class Story:
    """A company, its subscriptions by the path of their receiver, and the command line."""

    system: System
    company: Company
    receiver: Receiver
    start: datetime
    created: dict[str, dict[str, Any]] = field(default_factory=dict)
    event_id: str = ""
    request_id: str = ""

    def id_of(self, path: str) -> int:
        entity_id: int = self.created[path]["entity_id"]
        return entity_id

    def key_of(self, path: str) -> str:
        return f"{self.event_id}:{self.id_of(path)}"

    def webhooks(self, *words: object, status: int = 0) -> Any:
        return self.system.makeready("webhooks", *map(str, words), status=status)

    def output(self, *words: object) -> list[str]:
        """The lines of the output for people: they fit into a terminal and contain no control characters."""
        done = self.system.run("webhooks", *map(str, words))
        assert (done.returncode, done.stderr) == (0, ""), done
        lines = done.stdout.splitlines()
        assert all(line.isprintable() for line in lines), lines
        assert max(map(len, lines)) <= 100, done.stdout
        return lines

    def refused(self, *words: object) -> str:
        """Runs a command that must be refused; returns its error line."""
        done = self.system.run("--json", "webhooks", *map(str, words))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
        assert done.stderr.startswith("makeready: ") and done.stderr.endswith(".\n")
        return done.stderr

    def health(self) -> dict[str, str]:
        """The health of each subscription, by path."""
        listed = self.webhooks("list", self.company.company_id)["subscriptions"]
        health = {subscription["entity_id"]: subscription["health"] for subscription in listed}
        return {path: health[subscription["entity_id"]] for path, subscription in self.created.items()}

    def sweep(self, hours: float) -> dict[str, int]:
        now = (self.start + hours * HOUR).isoformat()
        counts: dict[str, int] = self.system.makeready("sweep", "webhooks", "--now", now)
        return counts


@pytest.fixture(scope="module")
def story(system: System, receiver: Receiver) -> Story:
    company = system.company("Desk")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1", "unit_number": "1"}])
    (unit,) = company.walk("/units")
    output = Story(system, company, receiver, datetime.now(UTC) + HOUR)
    receiver.answers |= {"/mended": [503] * 7, "/paused": [500], "/every": [503] * 6}
    receiver.bodies |= {"/mended": HOSTILE, "/every": b"sorry"}
    for path in ("/mended", "/paused", "/every"):
        body = {"destination_url": f"https://receiver.test{path}", "events": ["ticket.created"]}
        answer = system.post("/webhooks", company.keys["write"], body, f"desk {path}")
        assert answer.status == 201, answer
        output.created[path] = answer.json
    opened = company.create_ticket(unit["entity_id"], "Tap drips", "desk")
    assert opened.status == 201, opened
    output.request_id = str(opened.headers["X-Request-Id"])
    assert output.sweep(0)["failed"] >= 3
    output.event_id = receiver.at("/mended")[0].json["event_id"]
    sub_id = output.id_of("/paused")
    assert output.webhooks("pause", sub_id) == {"sub_id": sub_id, "health": "paused"}
    for hours in (1, 2, 4, 8, 24):
        output.sweep(hours)
    return output


def test_what_is_parked_paused_and_about_to_go_is_shown(story: Story) -> None:
    company_id, paused = story.company.company_id, story.id_of("/paused")
    assert story.health() == {"/mended": "dead_lettered", "/paused": "paused", "/every": "dead_lettered"}
    listed = story.webhooks("parked", company_id)
    assert list(listed) == ["deliveries"]
    deliveries = {delivery["sub_id"]: delivery for delivery in listed["deliveries"]}
    assert deliveries.keys() == {story.id_of("/mended"), story.id_of("/every")}
    for delivery in deliveries.values():
        assert (delivery["event_id"], delivery["state"], delivery["due_at"]) == (story.event_id, "parked", None)
        assert [attempt["number"] for attempt in delivery["attempts"]] == [6]
    page = story.webhooks("deliveries", paused)
    assert list(page) == ["deliveries", "next_before"] and page["next_before"] is None
    (held,) = page["deliveries"]
    assert (held["state"], held["held_by"], len(held["attempts"])) == ("waiting", "paused", 1)
    assert datetime.fromisoformat(held["due_at"]) == story.start + HOUR  # the pause stops the ladder
    assert len(story.receiver.at("/paused")) == 1
    going = story.output("expiring", company_id, "--within", 31)
    assert {line.split()[0]: line.split()[1] for line in going[1:]} == {
        story.key_of("/mended"): "parked",
        story.key_of("/paused"): "paused",
        story.key_of("/every"): "parked",
    }
    assert story.webhooks("expiring", company_id) == {"deliveries": []}


def test_a_hostile_answer_is_whole_for_programs_and_steers_no_terminal(story: Story) -> None:
    done = story.system.run("--json", "webhooks", "deliveries", str(story.id_of("/mended")), "--state", "parked")
    assert done.stdout.isascii() and done.stdout.rstrip("\n").isprintable()
    (delivery,) = json.loads(done.stdout)["deliveries"]
    assert {attempt["response_excerpt"] for attempt in delivery["attempts"]} == {
        HOSTILE[:4096].decode(errors="replace")
    }
    assert "\\x1b]0;owned\\x07" in "".join(story.output("event", story.event_id))
    story.output("parked", story.company.company_id)


def test_a_parked_delivery_is_retried_as_an_attempt_of_its_own_until_the_receiver_is_mended(story: Story) -> None:
    retried = story.webhooks("retry", story.key_of("/mended"))
    assert list(retried) == ["deliveries"]
    (delivery,) = retried["deliveries"]
    assert delivery["state"] == "parked"
    assert [attempt["cause"] for attempt in delivery["attempts"]] == ["sweep"] * 6 + ["retry"]
    seventh = delivery["attempts"][-1]
    assert (seventh["number"], seventh["status"], seventh["state"], seventh["due_at"]) == (7, 503, "parked", None)
    (output,) = story.output("retry", story.key_of("/mended"))  # the receiver works again
    assert "succeeded" in output and "attempt 8" in output
    assert story.health()["/mended"] == "healthy"
    assert "Only a parked delivery" in story.refused("retry", story.key_of("/mended"))
    tries = story.receiver.at("/mended")
    assert [delivery.headers["service-attempt"] for delivery in tries] == [str(number) for number in range(1, 9)]
    assert len({delivery.body for delivery in tries}) == 1


def test_events_that_waited_are_delivered_after_the_resume_with_the_secret_of_then(story: Story) -> None:
    sub_id, old = story.id_of("/paused"), story.created["/paused"]["secret"]
    assert "paused" in story.refused("retry", "--all-parked", sub_id)
    rotated = story.webhooks("rotate-secret", sub_id)
    assert list(rotated) == ["sub_id", "secret", "secret_prefix"]
    assert rotated["secret"].startswith(rotated["secret_prefix"]) and rotated["secret"] != old
    new = story.output("rotate-secret", sub_id)[0]
    assert story.webhooks("resume", sub_id) == {"sub_id": sub_id, "health": "healthy"}
    assert story.sweep(48)["succeeded"] >= 1
    before, after = story.receiver.at("/paused")
    assert before.is_signed_with(old) and after.is_signed_with(new)
    assert not any(after.is_signed_with(secret) for secret in (old, rotated["secret"]))
    logs = "".join(file.read_text() for file in (story.system.state / "logs").glob("*.log"))
    assert not any(secret in logs for secret in (old, rotated["secret"], new))


def test_everything_parked_of_a_subscription_goes_with_the_next_sweep(story: Story) -> None:
    sub_id = story.id_of("/every")
    assert story.webhooks("retry", "--all-parked", sub_id) == {"sub_id": sub_id, "due": 1}
    assert story.webhooks("parked", story.company.company_id) == {"deliveries": []}
    assert len(story.receiver.at("/every")) == 6
    assert story.sweep(49)["succeeded"] >= 1
    assert story.health() == {"/mended": "healthy", "/paused": "healthy", "/every": "healthy"}


def test_one_command_shows_everything_about_an_event(story: Story) -> None:
    (first, *_) = story.receiver.at("/every")
    event = story.webhooks("event", story.event_id, "--body")
    assert list(event) == [*EVENT, "body"]
    assert event["body"].encode() == first.body
    assert (event["event"], event["company_id"]) == ("ticket.created", story.company.company_id)
    assert (event["entity_id"], event["occurred_at"]) == (first.json["data"]["entity_id"], first.json["occurred_at"])
    assert event["request_id"] == story.request_id and event["occurred_at"] <= event["stored_at"]
    by_path = {
        delivery["destination_url"].removeprefix("https://receiver.test"): delivery for delivery in event["deliveries"]
    }
    assert {path: len(delivery["attempts"]) for path, delivery in by_path.items()} == {
        "/mended": 8,
        "/paused": 2,
        "/every": 7,
    }
    attempts = by_path["/every"]["attempts"]
    due = [
        attempt["due_at"] and (datetime.fromisoformat(attempt["due_at"]) - story.start) / HOUR for attempt in attempts
    ]
    assert due == [1, 2, 4, 8, 24, None, None]
    assert [attempt["state"] for attempt in attempts] == ["waiting"] * 5 + ["parked", "succeeded"]
    assert all(attempt["first_byte_milliseconds"] <= attempt["duration_milliseconds"] for attempt in attempts)
    assert {attempt["address"].partition(":")[0] for attempt in attempts} == {"127.0.0.1"}
    output = "\n".join(story.output("event", story.event_id))
    for expected in (story.event_id, story.request_id, "https://receiver.test/every", '1-7 answered "sorry"', "retry"):
        assert expected in output
    assert "No event with that id is kept" in story.refused("event", uuid.uuid4())
    assert "No delivery of that event" in story.refused("retry", f"{uuid.uuid4()}:{story.id_of('/every')}")


def test_what_an_administrator_did_is_on_record(story: Story) -> None:
    company_id = str(story.company.company_id)
    listed = story.system.makeready("audit", "list", company_id, "--subject", "webhook_subscription")
    done: dict[int, list[str]] = {}
    requests = []
    for entry in reversed(listed["entries"]):
        assert (entry["service"], entry["actor"]) == ("svc-webhooks", "operator")
        done.setdefault(entry["subject_id"], []).append(entry["action"])
        requests.append(entry["request_id"])
    assert done == {
        story.id_of("/mended"): ["delivery.retried"] * 2,
        story.id_of("/paused"): [
            "subscription.paused",
            "subscription.secret_rotated",
            "subscription.secret_rotated",
            "subscription.resumed",
        ],
        story.id_of("/every"): ["deliveries.retried"],
    }
    assert all(requests) and len(set(requests)) == 7  # each command has its own request id
