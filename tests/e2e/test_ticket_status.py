"""Changes of a ticket's status over HTTP, their events, and the operator's view of them (spec 3.1, 4.2)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from testkit.event_contract import check_same_as_get

from .receiver import Receiver
from .system import Answer, Company, System

NOTE = "Replaced the washer and tested it twice."


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Changing")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1", "unit_number": "1"}])
    return company


@pytest.fixture
def ticket(company: Company) -> dict[str, Any]:
    (unit,) = company.walk("/units")
    opened = company.create_ticket(unit["entity_id"], "Tap drips", str(uuid.uuid4()))
    assert opened.status == 201
    ticket: dict[str, Any] = opened.json
    return ticket


def change(company: Company, ticket_id: int, body: dict[str, Any], scope: str = "write") -> Answer:
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    return company.system.call("PATCH", f"/tickets/{ticket_id}", company.keys[scope], body, headers)


def history(company: Company, ticket_id: int) -> list[dict[str, Any]]:
    printed = company.system.makeready("ticket", "history", str(company.company_id), str(ticket_id))
    assert list(printed) == ["changes"]
    changes: list[dict[str, Any]] = printed["changes"]
    return changes


def test_a_change_is_delivered_as_the_get_serves_it_and_listed_for_the_operator(
    system: System, company: Company, ticket: dict[str, Any], receiver: Receiver
) -> None:
    events = ["ticket.status_changed"]
    body = {"destination_url": "https://receiver.test/changes", "events": events}
    assert system.post("/webhooks", company.keys["webhook_only"], body, "changes").status == 201
    ticket_id = ticket["entity_id"]
    closed = change(company, ticket_id, {"status": "Completed", "note": NOTE})
    assert closed.status == 200 and closed.json["completed_at"] == closed.json["updated_at"] > ticket["updated_at"]
    assert system.get(f"/tickets/{ticket_id}", company.keys["read"]).body == closed.body
    listed = system.get("/tickets", company.keys["read"], status="Completed")
    assert ticket_id in [row["entity_id"] for row in listed.json["data"]]
    # Completed again closes it again.
    again = change(company, ticket_id, {"status": "Completed", "note": NOTE + " Again."})
    assert again.json["completed_at"] == again.json["updated_at"] > closed.json["completed_at"]
    # Setting another status again fires no event.
    for _ in range(2):
        reopened = change(company, ticket_id, {"status": "Open"})
    assert (reopened.json["completed_at"], reopened.json["status"]) == (None, "Open")
    system.makeready("sweep", "webhooks")
    first, second, third = sorted(receiver.at("/changes"), key=lambda delivery: str(delivery.json["occurred_at"]))
    assert first.json["change"] == {"field": "status", "from": "Open", "to": "Completed"}
    check_same_as_get(first.body, closed.body)
    assert first.json["occurred_at"] == closed.json["updated_at"]
    assert second.json["change"] == {"field": "status", "from": "Completed", "to": "Completed"}
    check_same_as_get(second.body, again.body)
    assert third.json["change"] == {"field": "status", "from": "Completed", "to": "Open"}
    check_same_as_get(third.body, reopened.body)
    changes = history(company, ticket_id)
    assert [(change["from"], change["to"], change["note"]) for change in changes] == [
        ("Open", "Completed", NOTE),
        ("Completed", "Completed", NOTE + " Again."),
        ("Completed", "Open", None),
    ]
    assert changes[0]["occurred_at"] == closed.json["updated_at"]
    assert changes[0]["request_id"] == closed.headers["X-Request-Id"]
    assert changes[0]["administrator_id"] > 0 and changes[0]["cancellation_reason_code"] is None
    keys = {key["key_id"]: key for key in system.makeready("key", "list", str(company.company_id))["keys"]}
    assert keys[changes[0]["api_key_id"]]["scope"] == "write"


def test_the_operator_reads_a_history_line_by_line(system: System, company: Company, ticket: dict[str, Any]) -> None:
    words = ("ticket", "history", str(company.company_id), str(ticket["entity_id"]))
    assert system.run(*words).stdout == "Its status has not changed.\n"
    notes = {"cancellation_reason_code": "see_notes", "cancellation_notes": "The resident\nfixed it\x1b[2J by herself"}
    assert change(company, ticket["entity_id"], {"status": "Cancelled", **notes}).status == 200
    headers, line = system.run(*words).stdout.splitlines()
    assert headers.split() == "OCCURRED FROM TO REASON BY ADMINISTRATOR REQUEST NOTE".split()
    assert "see_notes" in line and "\x1b" not in line and "by herself" in line


def test_a_file_that_changes_a_ticket_belongs_to_its_history(system: System, company: Company) -> None:
    row = {"external_id": "T1", "property": "P1", "title": "Lift stuck", "category": "Elevator"}
    company.import_rows("tickets", [row])
    company.import_rows("tickets", [row | {"status": "On Hold"}])
    (ticket,) = (each for each in company.walk("/tickets") if each["external_id"] == "T1")
    (entry,) = history(company, ticket["entity_id"])
    assert (entry["from"], entry["to"], entry["api_key_id"], entry["administrator_id"]) == (
        "Open",
        "On Hold",
        None,
        None,
    )
    assert entry["occurred_at"] == ticket["updated_at"]


def test_a_company_may_want_a_photo_first(system: System, company: Company, ticket: dict[str, Any]) -> None:
    number = str(company.company_id)
    system.makeready("company", "update", number, "--photo-required")
    try:
        refused = change(company, ticket["entity_id"], {"status": "Completed", "note": NOTE})
        assert (refused.status, refused.code) == (422, "invalid_request") and "photo_url" in str(refused.json)
        row = {"external_id": "T2", "property": "P1", "title": "Lift stuck", "category": "Elevator"}
        company.import_rows("tickets", [row | {"photo_url": "https://photos.example/1.jpg"}])
        (listed,) = (each for each in company.walk("/tickets") if each["external_id"] == "T2")
        assert change(company, listed["entity_id"], {"status": "Completed", "note": NOTE}).status == 200
    finally:
        system.makeready("company", "update", number, "--no-photo-required")


def test_a_missing_history_is_reported_in_one_line(system: System, company: Company) -> None:
    for words in ((str(company.company_id), "999999999"), ("999999999", "1")):
        done = system.run("--json", "ticket", "history", *words)
        assert (done.returncode, done.stdout) == (1, "") and done.stderr.count("\n") == 1, done.stderr
    assert system.run("ticket", "history", str(company.company_id), "0").returncode == 2
