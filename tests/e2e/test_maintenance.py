"""Preventive maintenance from the command line, and its event when a task is overdue."""

from __future__ import annotations

import json

from .receiver import Receiver
from .system import System


def test_an_overdue_task_is_announced_once_and_recurs(system: System, receiver: Receiver) -> None:
    company = system.company("Maintained")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    body = {"destination_url": "https://receiver.test/maintained", "events": ["pm.stale"]}
    assert system.post("/webhooks", company.keys["write"], body, "maintained").status == 201
    number = str(company.company_id)
    (unit,) = company.walk("/units")
    place = ("--property-id", str(unit["property"]["id"]), "--unit-id", str(unit["entity_id"]))
    words = ("--task-name", "Filters", "--due-date", "2024-01-31", "--repeat-months", "1")
    task = system.makeready("pm", "add", number, *place, *words)
    assert (task["task_name"], task["due_date"]) == ("Filters", "2024-01-31")
    assert (task["status"], task["unit"]) == ("Open", "Unit 1")
    system.makeready("wait")
    # These sweeps are earlier than all work that other tests plan in this system, so they fire no events for it.
    early = system.makeready("sweep", "stale", "--now", "2024-02-01T05:59:00Z")
    assert list(early) == ["now", "done"] and set(early["done"]) >= {"ticket.stale", "pm.stale"}
    assert early["now"] == "2024-02-01T05:59:00.000000Z"
    for _ in range(2):
        system.makeready("sweep", "stale", "--now", "2024-02-01T06:00:00Z")
    (stale_at,) = due_dates(system, number)
    assert stale_at is not None
    done = system.makeready("pm", "complete", number, str(task["pm_task_id"]))
    (following,) = system.makeready("pm", "list", number, "--open")["tasks"]
    assert (following["pm_task_id"], following["due_date"]) == (done["next_pm_task_id"], "2024-02-29")
    which = str(following["pm_task_id"])
    moved = system.makeready("pm", "update", number, which, "--area", "Roof", "--clear", "repeat_months")
    assert (moved["unit"], moved["unit_id"], moved["repeat_months"]) == ("Roof", None, None)
    assert system.makeready("pm", "cancel", number, which)["status"] == "Cancelled"
    system.makeready("sweep", "webhooks")
    (delivery,) = receiver.at("/maintained")
    assert json.loads(delivery.body)["data"] == {
        "task_name": "Filters",
        "property": "Elm Court",
        "unit": "Unit 1",
        "due_date": "2024-01-31",
        "url": task["url"],
    }


def due_dates(system: System, number: str) -> list[str | None]:
    """The `stale_at` of the company's tasks."""
    return [task["stale_at"] for task in system.makeready("pm", "list", number)["tasks"]]


def test_a_sweep_says_what_it_did_and_who_has_no_such_work(system: System) -> None:
    lines = system.run("sweep", "stale").stdout.splitlines()
    assert lines[0].startswith("As of 20") and any(line.startswith("  pm.stale: ") for line in lines)
    assert lines[-1].startswith("Nothing of the kind is done by ") and "gateway" in lines[-1]
    refused = system.run("sweep", "stale", "--now", "0300-01-01T00:00:00Z")
    assert refused.returncode == 1 and "now must lie in the years" in refused.stderr
