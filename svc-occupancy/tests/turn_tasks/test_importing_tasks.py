"""Imports of make-ready tasks, and what an import leaves for the sweeps."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from chassis.db.database import Database

from ..harness import Company, fired, published

AFTER = "2980-03-13T12:00:00Z"
TASK = {"external_id": "K1", "turn": "T1", "task_type": "Paint"}


@pytest.fixture
async def company(going: Company) -> Company:
    """An active company with a turn."""
    await going.make_units("U1", "U2")
    assert await going.put("turns", {"external_id": "T1", "unit": "U1"}) == ["created"]
    return going


async def tasks(company: Company, turn: str = "T1") -> dict[str, Any]:
    turn_id = (await company.turn(turn))["entity_id"]
    return {task.external_id: task for task in await company.command("ListTasks", turn_id=turn_id)}


async def test_a_file_makes_tasks_and_changes_them(company: Company) -> None:
    rows: list[dict[str, Any]] = [
        TASK | {"scheduled_date": "2980-03-11"},
        TASK | {"external_id": "K2", "status": "Completed", "completed_at": "2020-03-01"},
        TASK | {"external_id": "K3", "status": "Cancelled"},
    ]
    assert await company.put("turn-tasks", *rows, dry_run=True) == ["created"] * 3
    assert await tasks(company) == {}
    assert await company.put("turn-tasks", *rows) == ["created"] * 3
    assert await company.put("turn-tasks", *rows) == ["unchanged"] * 3
    by_external_id = await tasks(company)
    assert {name: (task.status, task.scheduled_date, task.source) for name, task in by_external_id.items()} == {
        "K1": ("Open", "2980-03-11", "import"),
        "K2": ("Completed", "", "import"),
        "K3": ("Cancelled", "", "import"),
    }
    assert by_external_id["K2"].completed_at.ToJsonString() == "2020-03-01T00:00:00Z" and by_external_id["K3"].HasField(
        "cancelled_at"
    )
    assert await company.put("turn-tasks", TASK | {"scheduled_date": "", "status": "Completed"}) == ["changed"]
    task = (await tasks(company))["K1"]
    assert (task.status, task.scheduled_date, task.HasField("completed_at")) == ("Completed", "", True)
    assert await company.put("turn-tasks", TASK) == ["unchanged"]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"turn": "nowhere"}, "turn"),
        ({"turn": None}, "turn"),
        ({"task_type": " "}, "task_type"),
        ({"task_type": "x" * 201}, "task_type"),
        ({"scheduled_date": "soon"}, "scheduled_date"),
        ({"status": "Done"}, "status"),
        ({"completed_at": "2020-03-01"}, "completed_at"),
        ({"status": "Completed", "cancelled_at": "2020-03-01"}, "cancelled_at"),
        ({"owner": "x"}, "owner"),
    ],
)
async def test_a_row_that_cannot_be_is_rejected_by_its_field(company: Company, row: dict[str, Any], field: str) -> None:
    good = TASK | {"external_id": "K2"}
    assert await company.put("turn-tasks", TASK | row, good) == [f"rejected {field}", "created"]


async def test_a_task_stays_with_its_turn(company: Company) -> None:
    await company.put("turns", {"external_id": "T2", "unit": "U2"})
    await company.put("turn-tasks", TASK)
    assert await company.put("turn-tasks", TASK | {"turn": "T2"}) == ["rejected turn"]


async def test_a_turn_is_the_file_s_own_else_the_newest_that_a_feed_made(company: Company) -> None:
    units = await company.unit_ids()
    fed = (await company.move_in(units["U2"], external_id="R1"))["entity_id"]
    await company.notice(units["U2"])
    fed = (await company.move_in(units["U2"], external_id="R1", predecessor_transition_id=fed))["entity_id"]
    assert await company.put("turn-tasks", TASK | {"turn": "R1"}) == ["created"]
    (task,) = await company.command("ListTasks", turn_id=fed)
    assert task.external_id == "K1"


@pytest.mark.parametrize(("events", "expected"), [(False, []), (True, ["K1", "K2"])])
async def test_overdue_tasks_of_a_file_count_as_announced_without_events(
    company: Company, served: Database, events: bool, expected: list[str]
) -> None:
    rows = [
        TASK | {"scheduled_date": "2020-01-31"},
        TASK | {"external_id": "K2"},
        TASK | {"external_id": "K3", "scheduled_date": "2020-01-31", "status": "Completed"},
        TASK | {"external_id": "K4", "scheduled_date": "2980-03-11"},
    ]
    await company.put("turn-tasks", *rows, events=events)
    # A later file that moves a date into the past has the same effect.
    await company.put("turn-tasks", rows[1] | {"scheduled_date": "2020-02-01"}, events=events)
    names = {task.task_id: name for name, task in (await tasks(company)).items()}

    async def announced() -> list[str]:
        return sorted(
            names[fired_event[1]] for fired_event in await fired(served, company) if fired_event[0] == "turn.task.stale"
        )

    await company.sweep("2020-02-03T00:00:00Z")
    assert await announced() == expected
    await company.sweep(AFTER)
    await company.sweep(AFTER)
    assert await announced() == [*expected, "K4"]


STATUSES = ("", "Occupied", "Notice", "Vacant Ready")


@pytest.mark.parametrize(("status", "events"), list(itertools.product(STATUSES, [False, True])))
async def test_a_departure_long_ago_is_what_the_file_says_of_it(
    company: Company, served: Database, status: str, events: bool
) -> None:
    row = {"external_id": "T2", "unit": "U2", "move_out_date": "2020-01-31", "unit_status": status}
    await company.put("turns", row, events=events)
    before = await fired(served, company)
    await company.sweep("2020-03-01T00:00:00Z")
    assert await fired(served, company) == before
    (unit,) = [board_unit for board_unit in await company.command("ListBoard") if board_unit.name == "Unit U2"]
    assert unit.unit_status == (status or "Vacant Not Ready")
    assert await company.put("turns", row, events=events) == ["unchanged"]


async def test_a_turn_that_a_file_makes_active_again_is_what_the_file_says_of_it(
    company: Company, served: Database
) -> None:
    unit_id = (await company.unit_ids())["U2"]
    await company.put("turns", {"external_id": "T2", "unit": "U2"})
    await company.notice(unit_id, "2020-01-31")
    await company.move_in(unit_id, external_id="R1")
    again = {"external_id": "T2", "unit": "U2", "status": "Active", "unit_status": "Occupied"}
    ended = {"external_id": "R1", "unit": "U2", "status": "Completed"}
    assert await company.put("turns", ended, again) == ["changed", "changed"]
    before = await fired(served, company)
    await company.sweep("2020-03-01T00:00:00Z")
    assert await fired(served, company) == before


async def test_a_future_departure_vacates_the_unit_whoever_recorded_it(company: Company, served: Database) -> None:
    await company.put("turns", {"external_id": "T2", "unit": "U2", "move_out_date": "2020-01-31"})
    row = {"external_id": "T2", "unit": "U2", "move_out_date": "2980-03-11"}
    assert await company.put("turns", row) == ["changed"]
    await company.sweep(AFTER)
    (event,) = [message for message in await published(served, company) if message.HasField("public")]
    assert json.loads(event.public.change) == {"field": "unit_status", "from": "Notice", "to": "Vacant Not Ready"}
    # The file with that date is imported again: nothing is undone.
    assert await company.put("turns", row, events=True) == ["unchanged"]
    assert len(await fired(served, company)) == 1
