"""The whole path: import a property, open a ticket, receive its signed event."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testkit.event_contract import check_same_as_get

from .receiver import Receiver
from .system import Company, System

ENVELOPE = ["schema_version", "event_id", "event", "occurred_at", "company_id", "data", "change"]


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    return system.company("First Light")


@pytest.fixture(scope="module")
def unit_id(company: Company) -> int:
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1", "unit_number": "1"}])
    (unit,) = company.walk("/units")
    entity_id: int = unit["entity_id"]
    return entity_id


def subscribe(company: Company, path: str, events: list[str] | None = None) -> dict[str, Any]:
    body = {"destination_url": f"https://receiver.test{path}", "events": events or ["ticket.created"]}
    answer = company.system.post("/webhooks", company.keys["webhook_only"], body, f"sub {path}")
    assert answer.status == 201, answer
    created: dict[str, Any] = answer.json
    assert list(created)[-1] == "secret"
    again = company.system.post("/webhooks", company.keys["webhook_only"], body, f"sub {path}")
    assert again.status == 201 and again.headers["X-Idempotent-Replay"] == "1"
    assert again.json == {name: value for name, value in created.items() if name != "secret"}
    return created


def test_a_ticket_opened_is_delivered_signed_and_equal_to_its_get(
    system: System, company: Company, unit_id: int, receiver: Receiver
) -> None:
    subscription = subscribe(company, "/first")
    opened = company.create_ticket(unit_id, "Wasserhahn tropft 漏水 🚿", "first light")
    assert opened.status == 201 and "X-Idempotent-Replay" not in opened.headers
    swept = system.makeready("sweep", "webhooks")
    assert list(swept) == ["now", "stored", "attempted", "succeeded", "failed", "parked", "waiting_for_host"]
    assert swept["succeeded"] >= 1 and swept["failed"] == 0
    (delivery,) = receiver.at("/first")
    assert delivery.is_signed_with(subscription["secret"])
    assert list(delivery.json) == ENVELOPE
    assert delivery.json["event"] == "ticket.created" and delivery.json["change"] is None
    assert delivery.json["company_id"] == company.company_id
    assert delivery.json["occurred_at"] == opened.json["created_at"]
    got = system.get(f"/tickets/{opened.json['entity_id']}", company.keys["read"])
    assert got.body == opened.body
    check_same_as_get(delivery.body, got.body)
    assert delivery.headers["x-request-id"] == opened.headers["X-Request-Id"]
    system.makeready("sweep", "webhooks")
    assert len(receiver.at("/first")) == 1


def test_a_failed_attempt_is_retried_with_the_same_event_id(
    system: System, company: Company, unit_id: int, receiver: Receiver
) -> None:
    receiver.answers["/retried"] = [500, 302]
    subscription = subscribe(company, "/retried")
    assert company.create_ticket(unit_id, "Retried", "retried").status == 201
    start = datetime.now(UTC) + timedelta(minutes=1)
    outcomes = [
        system.makeready("sweep", "webhooks", "--now", (start + timedelta(hours=hours)).isoformat())
        for hours in (0, 0.5, 1, 2)
    ]
    tries = receiver.at("/retried")
    assert [outcome["failed"] for outcome in outcomes] == [1, 0, 1, 0]
    assert len(tries) == 3 and len({attempt.json["event_id"] for attempt in tries}) == 1
    assert len({attempt.body for attempt in tries}) == 1 and all(
        attempt.is_signed_with(subscription["secret"]) for attempt in tries
    )
    deliveries = system.makeready("webhooks", "deliveries", str(subscription["entity_id"]))
    (delivery,) = deliveries["deliveries"]
    assert [attempt["status"] for attempt in delivery["attempts"]] == [500, 302, 200]


def test_a_deleted_subscription_is_sent_nothing_more(
    system: System, company: Company, unit_id: int, receiver: Receiver
) -> None:
    subscription = subscribe(company, "/deleted")
    company.create_ticket(unit_id, "Never seen", "deleted")
    path = f"/webhooks/{subscription['entity_id']}"
    gone = system.call("DELETE", path, company.keys["webhook_only"])
    assert (gone.status, gone.body) == (204, b"")
    assert system.call("DELETE", path, company.keys["webhook_only"]).code == "not_found"
    system.makeready("sweep", "webhooks")
    assert receiver.at("/deleted") == []


def test_no_list_ever_shows_a_secret(system: System, company: Company) -> None:
    subscribe(company, "/listed")
    for record in system.get("/webhooks", company.keys["read"]).json["data"]:
        assert "secret" not in record and record["health"] in ("healthy", "retrying")


def test_the_curl_line_that_the_runner_prints_works_when_pasted(system: System) -> None:
    lines = [line.strip() for line in system.log.read_text().splitlines() if line.strip().startswith("curl ")]
    assert lines
    done = subprocess.run(["bash", "-c", lines[-1]], capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(done.stdout)["data"]


def test_the_demo_file_says_where_to_go_and_its_keys_open_what_they_should(system: System) -> None:
    demo = system.demo
    assert list(demo) == ["base_url", "admin_url", "company_id", "keys", "administrator", "staff"]
    assert demo["base_url"] == system.base_url and set(demo["keys"]) == {"read", "write", "webhook_only"}
    for path in ("/properties", "/units", "/assets", "/tickets"):
        assert system.get(path, demo["keys"]["read"]).json["data"], f"{path} is empty"
        assert system.get(path, demo["keys"]["webhook_only"]).code == "insufficient_scope"
    who = system.get("/whoami", demo["keys"]["webhook_only"]).json
    assert set(who) == {"api_version", "company", "key"} and who["company"]["id"] == demo["company_id"]


def test_nothing_secret_is_in_a_log(system: System, company: Company) -> None:
    subscription = subscribe(company, "/logged")
    logs = "".join(file.read_text() for file in (system.state / "logs").glob("*.log"))
    assert logs
    for secret in (*company.keys.values(), subscription["secret"]):
        assert secret not in logs
