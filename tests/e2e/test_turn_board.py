"""The turn board from the command line: staff set a unit's state, subscribers get the events, GET /units shows it."""

from __future__ import annotations

from typing import Any

import pytest

from testkit.event_contract import check_same_as_get
from testkit.patience import took

from .receiver import Receiver
from .system import Company, System
from .test_first_light import subscribe

EVENTS = ["turn.status_changed", "turn.schedule_changed", "turn.task.stale"]
LEFT, MORNING = "2980-03-11", "2980-03-12T10:00:00Z"


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Turn board")
    system.makeready("company", "update", str(company.company_id), "--timezone", "America/Toronto")
    company.import_rows("staff", [{"external_id": "S1", "name": "Zoë Byrne"}])
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    company.import_rows("turns", [{"external_id": "T1", "unit": "U1", "move_out_date": LEFT}])
    system.makeready("wait", "--timeout", "60")
    return company


def test_a_unit_is_made_ready(system: System, company: Company, receiver: Receiver) -> None:
    subscribe(company, "/turn-board", EVENTS)
    number = str(company.company_id)
    (staff,) = system.makeready("staff", "list", number)["staff"]
    (turn,) = company.walk("/turns")
    turn_id, unit_id = str(turn["entity_id"]), str(turn["unit"]["id"])

    def says(verb: str, *words: str, by: str = f"staff:{staff['staff_id']}") -> Any:
        return system.makeready("turn", verb, number, *words, "--as", by)

    def shows(status: str, ready_on: str | None) -> None:
        took(f"GET /units/ID shows {status}", company.shows(int(unit_id), status, ready_on))

    scheduled = says("schedule", turn_id, "--projected-ready-on", "2980-03-20")
    assert scheduled == system.get(f"/turns/{turn_id}", company.keys["read"]).json
    shows("Notice", "2980-03-20")
    task = says("add-task", turn_id, "--task-type", "Paint", "--scheduled-date", LEFT)
    assert (task["status"], task["turn_id"]) == ("Open", turn["entity_id"])
    done = system.makeready("sweep", "stale", "--now", MORNING, "--yes-for-all-companies")["done"]
    assert done["unit.vacated"] >= 1 and done["turn.task.stale"] >= 1
    shows("Vacant Not Ready", "2980-03-20")
    assert says("complete-task", str(task["task_id"]))["status"] == "Completed"
    unit = says("unit-status", unit_id, "--unit-status", "Vacant Ready", by=company.email)
    assert (unit["unit_status"], unit["tasks_open"]) == ("Vacant Ready", 0)
    shows("Vacant Ready", "2980-03-20")
    got = system.get(f"/turns/{turn_id}", company.keys["read"])
    system.makeready("sweep", "webhooks")
    deliveries = sorted(receiver.at("/turn-board"), key=lambda delivery: str(delivery.json["occurred_at"]))
    changes = [
        delivery.json["change"] and (delivery.json["change"]["from"], delivery.json["change"]["to"])
        for delivery in deliveries
    ]
    assert sorted(map(str, changes)) == sorted(
        map(
            str,
            [
                (None, "2980-03-20"),
                ("Notice", "Vacant Not Ready"),
                None,
                ("Vacant Not Ready", "Vacant Ready"),
            ],
        )
    )
    check_same_as_get(deliveries[-1].body, got.body)
    (board,) = says("board")["units"]
    assert board == unit
    actors = {entry["actor"] for entry in system.makeready("audit", "list", number)["entries"]}
    assert {f"staff:{staff['staff_id']}", "svc-occupancy"} <= actors
    assert any(actor.startswith("administrator:") for actor in actors)


def test_a_refusal_is_reported_in_one_line(system: System, company: Company) -> None:
    done = system.run("turn", "unit-status", str(company.company_id), "999999999", "--unit-status", "Down")
    assert (done.returncode, done.stderr) == (1, "makeready: The company has no unit with this id.\n")
