"""Vendors on hold and inspections row by row, from the command line to the receiver."""

from __future__ import annotations

import json
from typing import Any

from testkit.event_contract import check_same_as_get

from .receiver import Receiver
from .system import System

EVENTS = ["vendor.hold", "inspection.stale", "ticket.created"]


def test_holds_and_failed_rows_reach_the_receiver_once_with_what_their_gets_serve(
    system: System, receiver: Receiver
) -> None:
    company = system.company("Inspected")
    body = {"destination_url": "https://receiver.test/inspected", "events": EVENTS}
    assert system.post("/webhooks", company.keys["write"], body, "inspected").status == 201
    number = str(company.company_id)

    def does(*words: str) -> Any:
        group, verb, *arguments = words
        return system.makeready(group, verb, number, *arguments)

    house = str(does("property", "add", "--name", "Elm Court", "--address", "1 Elm St")["entity_id"])
    # One hold by a person, and one by the sweep for lapsed insurance.
    quarrel = str(does("vendor", "add", "--name", "Ace Plumbing", "--website", "https://ace.example")["entity_id"])
    lapsing = str(does("vendor", "add", "--name", "Bee Roofing")["entity_id"])
    assert does("vendor", "hold", quarrel, "--reason", "A quarrel")["name"] == "Ace Plumbing"
    assert does("vendor", "insurance", lapsing, "--expires-on", "2024-01-31")["last_compliance_state"] == "unknown"
    plan = ("--title", "Fire", "--scheduled-date", "2024-01-31", "--row", "Door", "--row", "Alarm")
    planned = does("inspection", "schedule", "--property-id", house, *plan)
    inspection_id = str(planned["entity_id"])
    assert (planned["status"], planned["inspection_number"]) == ("Scheduled", 1)
    system.makeready("wait")
    for at in ("2024-02-01T00:00:00Z", "2024-02-01T06:00:00Z", "2024-02-03T06:00:00Z"):
        system.makeready("sweep", "stale", "--now", at)
    holds = does("vendor", "holds")["holds"]
    assert [(hold["name"], hold["reason"]) for hold in holds] == [
        ("Ace Plumbing", "A quarrel"),
        ("Bee Roofing", "insurance_lapsed"),
    ]
    # A renewed insurance releases the one; a person releases the other.
    does("vendor", "insurance", lapsing, "--expires-on", "2099-12-31")
    does("vendor", "release", quarrel)
    assert does("vendor", "holds") == {"holds": []}
    # One row fails twice; the inspection can be completed once every row has a result.
    door, alarm = [str(row["row_id"]) for row in does("inspection", "rows", inspection_id)["rows"]]
    for note in ("It sticks.", "It still sticks."):
        failed = does("inspection", "fail-row", inspection_id, door, "--note", note, "--category", "Doors/Windows")
        assert (failed["label"], failed["result"], failed["note"]) == ("Door", "failed", note)
    early = system.run("inspection", "complete", number, inspection_id)
    assert early.returncode == 1 and "looked at" in early.stderr
    does("inspection", "pass-row", inspection_id, alarm)
    done = does("inspection", "complete", inspection_id, "--completed-date", "2024-02-04")
    assert (done["status"], done["result"], done["completed_date"]) == ("Completed", "failed", "2024-02-04")
    assert system.get(f"/inspections/{inspection_id}", company.keys["read"]).json == done
    system.makeready("wait")
    (ticket,) = company.walk("/tickets")
    assert ticket["title"] == "Failed inspection: Door"
    assert (ticket["source"], ticket["category"]) == ("inspection", "Doors/Windows")
    assert "It sticks." in ticket["description"]
    system.makeready("sweep", "webhooks")
    received: dict[str, list[bytes]] = {}
    for delivery in receiver.at("/inspected"):
        received.setdefault(json.loads(delivery.body)["event"], []).append(delivery.body)
    assert {event: len(bodies) for event, bodies in received.items()} == dict(zip(EVENTS, (2, 1, 1), strict=True))
    got = system.get(f"/tickets/{ticket['entity_id']}", company.keys["read"])
    check_same_as_get(received["ticket.created"][0], got.body)
    (stale,) = received["inspection.stale"]
    assert json.loads(stale)["data"] == planned
    # Deliveries of one sweep arrive in any order.
    held = sorted(
        (json.loads(body)["data"] for body in received["vendor.hold"]), key=lambda vendor: str(vendor["name"])
    )
    assert [vendor["name"] for vendor in held] == ["Ace Plumbing", "Bee Roofing"]
    assert [vendor["last_compliance_state"] for vendor in held] == ["unknown", "noncompliant"]
