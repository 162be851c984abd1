"""Overdue tasks, announced by the running service's sweeps."""

from __future__ import annotations

import json

from chassis.db.database import Database

from ..harness import BEFORE_SIX, LEFT, SIX, Company, fired, lived_in, published


async def test_a_task_is_announced_once_for_ever(going: Company, served: Database) -> None:
    _, turn_id = await lived_in(going, served, "2999-01-31")
    task = await going.command("AddTask", turn_id=turn_id, task_type="Paint", scheduled_date=LEFT)
    undated = await going.command("AddTask", turn_id=turn_id, task_type="Look")
    await going.sweep(BEFORE_SIX)
    assert await fired(served, going, "turn.status_changed") == []
    assert (await going.sweep(SIX))["turn.task.stale"] >= 1
    (event,) = [message for message in await published(served, going) if message.public.event == "turn.task.stale"]
    url = json.loads(await going.served_turn(turn_id))["url"]
    assert list(json.loads(event.public.data).items()) == [
        ("task_type", "Paint"),
        ("property", "Elm Court"),
        ("unit", "Unit U1"),
        ("url", url),
    ]
    assert (event.public.change, event.public.entity_id) == (b"", task.task_id)
    await going.command("UpdateTask", task_id=task.task_id, scheduled_date="2980-05-01")
    await going.command("UpdateTask", task_id=undated.task_id, scheduled_date="2980-05-02")
    for moment in ("2980-05-02T12:00:00Z", "2980-05-03T12:00:00Z", "2980-06-01T12:00:00Z"):
        await going.sweep(moment)
    stale = [fired_event for fired_event in await fired(served, going) if fired_event[0] == "turn.task.stale"]
    assert stale == [("turn.task.stale", announced.task_id, None, None) for announced in (task, undated)]
    tasks = {task.task_id: task for task in await going.command("ListTasks", turn_id=turn_id)}
    assert tasks[task.task_id].HasField("stale_at") and tasks[task.task_id].status == "Open"


async def test_ended_tasks_are_not_announced_and_open_ones_of_an_ended_turn_are(
    going: Company, served: Database
) -> None:
    unit_id, turn_id = await lived_in(going, served, "2999-01-31")
    tasks = [
        await going.command("AddTask", turn_id=turn_id, task_type=name, scheduled_date=LEFT)
        for name in ("done", "dropped", "left", "moved")
    ]
    done, dropped, open_id, moved = (task.task_id for task in tasks)
    await going.command("CompleteTask", task_id=done)
    await going.command("CancelTask", task_id=dropped)
    await going.command("UpdateTask", task_id=moved, scheduled_date="2980-09-01")
    await going.move_in(unit_id, predecessor_transition_id=turn_id)
    await going.sweep(SIX)
    stale = [fired_event for fired_event in await fired(served, going) if fired_event[0] == "turn.task.stale"]
    assert stale == [("turn.task.stale", open_id, None, None)]
    assert (await going.command("CompleteTask", task_id=open_id)).status == "Completed"
