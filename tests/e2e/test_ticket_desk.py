"""Tickets in the back office: each cause of ticket.created, staff at work on a ticket, and the audit log."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from testkit.event_contract import data_of

from .receiver import Receiver
from .system import System

NOTE = "Replaced the washer and tested it twice."


class Desk:
    """A company with a property, a unit, a member of staff and a vendor, run from the command line."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.company = system.company("At the desk")
        self.number = str(self.company.company_id)
        self.property_id = self.run("property", "add", "--name", "Elm Court", "--address", "1 Elm St")["entity_id"]
        words = ("--property-id", str(self.property_id), "--name", "Unit 1", "--unit-number", "1")
        self.unit_id = self.run("unit", "add", *words)["entity_id"]
        self.staff_id = self.run("staff", "add", "--name", "Ada Byrne")["staff_id"]
        self.vendor_id = self.run("vendor", "add", "--name", "Otis")["entity_id"]
        self.ada = ("--as", f"staff:{self.staff_id}")

    def run(self, noun: str, verb: str, *words: str, status: int = 0) -> Any:
        return self.system.makeready(noun, verb, self.number, *words, status=status)

    def open(self, *words: str) -> dict[str, Any]:
        """Opens a ticket; returns the command's answer."""
        required = ("--property-id", str(self.property_id), "--title", "Tap drips", "--category", "Plumbing")
        ticket: dict[str, Any] = self.run("ticket", "open", *required, *words)
        return ticket

    def served(self, ticket_id: int) -> bytes:
        answer = self.system.get(f"/tickets/{ticket_id}", self.company.keys["read"])
        assert answer.status == 200
        return answer.body


@pytest.fixture(scope="module")
def desk(system: System) -> Desk:
    return Desk(system)


def test_the_event_of_each_origin_of_a_ticket_has_what_its_get_serves(
    system: System, desk: Desk, receiver: Receiver
) -> None:
    body = {"destination_url": "https://receiver.test/desk", "events": ["ticket.created"]}
    assert system.post("/webhooks", desk.company.keys["webhook_only"], body, "desk").status == 201
    of_staff = desk.open(*desk.ada)
    of_resident = desk.open("--unit-id", str(desk.unit_id), "--by", "resident", "--permission-to-enter")
    of_api = desk.company.create_ticket(desk.unit_id, "Lift stuck", str(uuid.uuid4())).json
    walk = ("--property-id", str(desk.property_id), "--title", "Alarms", "--scheduled-date", "2030-01-31")
    inspection = desk.run("inspection", "schedule", *walk, "--row", "Alarm on floor 1", "--row", "Alarm on floor 2")
    inspection_id = str(inspection["entity_id"])
    desk.run("inspection", "start", inspection_id)
    row_id = str(desk.run("inspection", "rows", inspection_id)["rows"][0]["row_id"])
    failing = ("inspection", "fail-row", inspection_id, row_id, "--note", "It is mute", "--category", "Life Safety")
    for _ in range(2):
        desk.run(*failing, "--priority", "High", *desk.ada)
    system.makeready("wait")
    tickets = desk.company.walk("/tickets")
    (of_row,) = (ticket for ticket in tickets if ticket["source"] == "inspection")
    assert [ticket["source"] for ticket in (of_staff, of_resident, of_api)] == ["staff", "staff", "api"]
    assert (of_row["category"], of_row["priority"]) == ("Life Safety", "High") and "floor 1" in of_row["title"]
    assert of_resident["permission_to_enter"] is True and of_resident["unit"]["name"] == "Unit 1"
    system.makeready("sweep", "webhooks")
    deliveries = {delivery.json["data"]["entity_id"]: delivery for delivery in receiver.at("/desk")}
    assert len(receiver.at("/desk")) == len(deliveries) == 4
    for ticket in (of_staff, of_resident, of_api, of_row):
        delivery = deliveries[ticket["entity_id"]]
        assert (delivery.json["event"], delivery.json["change"]) == ("ticket.created", None)
        assert data_of(delivery.body) == desk.served(ticket["entity_id"])
        assert json.loads(desk.served(ticket["entity_id"])) == ticket


def test_staff_work_on_a_ticket_and_all_of_it_is_on_record(system: System, desk: Desk, receiver: Receiver) -> None:
    body = {"destination_url": "https://receiver.test/staff", "events": ["ticket.status_changed"]}
    assert system.post("/webhooks", desk.company.keys["webhook_only"], body, "staff").status == 201
    ticket_id = str(desk.open("--by", "resident")["entity_id"])
    people = ("--assignee-id", str(desk.staff_id), "--vendor-id", str(desk.vendor_id))
    assigned = desk.run("ticket", "assign", ticket_id, *people, "--as", desk.company.email)
    assert (assigned["assignee"]["name"], assigned["assigned_vendor"]["name"]) == ("Ada Byrne", "Otis")
    desk.run("ticket", "comment", ticket_id, "--body", "On my way", "--by", "vendor", *desk.ada)
    photo = "https://photos.test/tap.jpg"
    assert desk.run("ticket", "photograph", ticket_id, "--photo-url", photo, *desk.ada)["photo_url"] == photo
    freed = desk.run("ticket", "assign", ticket_id, "--clear", "vendor_id", *desk.ada)
    assert freed["assigned_vendor"] is None
    key = ("--idempotency-key", uuid.uuid4().hex)
    for _ in range(2):
        closed = desk.run("ticket", "status", ticket_id, "--status", "Completed", "--note", NOTE, *desk.ada, *key)
        assert closed["status"] == "Completed"
    assert json.loads(desk.served(closed["entity_id"])) == closed
    (entry,) = desk.run("ticket", "history", ticket_id, *desk.ada)["changes"]
    assert (entry["from"], entry["to"], entry["note"]) == ("Open", "Completed", NOTE)
    assert (entry["actor"], entry["api_key_id"]) == (f"staff:{desk.staff_id}", None)
    comments = desk.run("ticket", "comments", ticket_id, *desk.ada)["comments"]
    assert [(comment["kind"], comment["body"], comment["author"]) for comment in comments] == [
        ("comment", "On my way", "vendor"),
        ("photo", photo, "staff"),
        ("closing_note", NOTE, "staff"),
    ]
    log = desk.run("audit", "list", "--subject", "ticket", "--subject-id", ticket_id)["entries"]
    assert [entry["action"] for entry in reversed(log)] == [
        "ticket.opened",
        "ticket.assigned",
        "ticket.commented",
        "ticket.photographed",
        "ticket.assigned",
        "ticket.status_changed",
    ]
    assert log[-1]["actor"] == "operator" and log[-2]["actor"].startswith("administrator:")
    assert {entry["actor"] for entry in log[:-2]} == {f"staff:{desk.staff_id}"}
    system.makeready("sweep", "webhooks")
    (delivery,) = receiver.at("/staff")
    assert delivery.json["change"] == {"field": "status", "from": "Open", "to": "Completed"}
    assert data_of(delivery.body) == desk.served(closed["entity_id"])


def test_a_vendor_on_hold_gets_no_new_ticket_until_released(system: System, desk: Desk) -> None:
    ticket_id, vendor_id = str(desk.open()["entity_id"]), str(desk.vendor_id)
    assigning = ("ticket", "assign", desk.number, ticket_id, "--vendor-id", vendor_id)
    desk.run("vendor", "hold", vendor_id, "--reason", "complaints")
    system.makeready("wait")
    refused = system.run(*assigning)
    assert refused.returncode == 1 and "on hold" in refused.stderr and "Traceback" not in refused.stderr
    desk.run("vendor", "release", vendor_id)
    system.makeready("wait")
    assert system.makeready(*assigning)["assigned_vendor"]["name"] == "Otis"


def test_an_administrator_sets_the_policy_and_a_member_of_staff_may_not(system: System, desk: Desk) -> None:
    update = ("company", "update", desk.number, "--ticket-stale-after-hours", "24")
    kept = system.makeready(*update, "--as", desk.company.email)
    assert (kept["ticket_stale_after_hours"], kept["photo_required"]) == (24, False)
    (entry,) = desk.run("audit", "list", "--subject", "ticket_policy")["entries"]
    assert entry["actor"].startswith("administrator:")
    assert (entry["before"], entry["after"]) == ({"stale_after_hours": 72}, {"stale_after_hours": 24})
    refused = system.run(*update, *desk.ada)
    assert refused.returncode == 1 and refused.stderr.startswith("makeready: A member of staff may not do this")
