"""Staff, feeds, files and sweeps write to one unit at once: each sees the previous one's changes (real PostgreSQL)."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Awaitable
from typing import Any

import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from svc_occupancy import tables as t

from ..harness import Company, fired, published

LEFT, AFTER = "2980-03-11", "2980-03-13T12:00:00Z"


async def tried(act: Awaitable[Any]) -> Any:
    """The response of a command, or its refusal."""
    try:
        return await act
    except Refusal as refusal:
        assert refusal.status == 422, refusal.message
        return refusal.message


async def units_of(company: Company, count: int) -> dict[str, tuple[int, int]]:
    """Creates units whose residents leave at LEFT; returns unit id and turn id by external_id."""
    names = [f"U{n}" for n in range(count)]
    await company.make_units(*names)
    rows = [{"external_id": name, "unit": name, "move_out_date": LEFT} for name in names]
    assert set(await company.put("turns", *rows)) == {"created"}
    turns = {turn["external_id"]: turn["entity_id"] for turn in await company.turns()}
    return {name: (unit_id, turns[name]) for name, unit_id in (await company.unit_ids()).items()}


async def check_units(served: Database, company: Company) -> None:
    """Each change of a unit was published once and starts from the previous one's result; the last one equals the
    stored state, and the unit has the ready date of its active turn."""
    of_company = {
        table: Statement(select(table).where(table.c.company_id == company.id))
        for table in (t.unit_state, t.transition)
    }
    states = {row["unit_id"]: row for row in await served.rows(of_company[t.unit_state])}
    turns = {row["id"]: row for row in await served.rows(of_company[t.transition])}
    events = await published(served, company)
    references: dict[int, list[Any]] = {unit_id: [] for unit_id in states}
    for event in events:
        for occupancy in event.references.unit_occupancies:
            references[occupancy.id].append(occupancy)
    status: dict[int, Any] = dict.fromkeys(states, "Notice")
    ready_on: dict[int, Any] = dict.fromkeys(turns)
    public = [event for event in events if event.HasField("public") and event.public.change]
    for event in sorted(public, key=lambda message: message.occurred_at.ToNanoseconds()):
        change = json.loads(event.public.change)
        turn_id = event.public.entity_id
        last, key = (status, turns[turn_id]["unit_id"]) if change["field"] == "unit_status" else (ready_on, turn_id)
        assert change["from"] == last[key]
        last[key] = change["to"]
    assert status == {unit_id: state["unit_status"] for unit_id, state in states.items()}
    active = {row["unit_id"]: row for row in turns.values() if row["status"] == "active"}
    for unit_id, state in states.items():
        versions = sorted(reference.version for reference in references[unit_id])
        assert versions == list(range(1, state["version"] + 1))
        assert state["projected_ready_on"] == active[unit_id]["projected_ready_on"]
    for turn_id, row in turns.items():
        assert ready_on[turn_id] == (row["projected_ready_on"] and str(row["projected_ready_on"]))


@pytest.mark.parametrize("seed", range(3))
async def test_staff_feeds_and_the_clock_at_once_lose_nothing(going: Company, served: Database, seed: int) -> None:
    places = await units_of(going, 8)
    chance = random.Random(seed)
    acts: list[Awaitable[Any]] = [going.sweep(AFTER) for _ in range(3)]
    for name, (unit_id, turn_id) in places.items():
        acts += [
            tried(going.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")),
            tried(going.command("SetUnitStatus", unit_id=unit_id, unit_status="Down")),
            tried(going.command("ScheduleTurn", turn_id=turn_id, projected_ready_on="2980-04-01")),
            tried(going.command("ScheduleTurn", turn_id=turn_id, projected_ready_on="2980-04-02")),
            tried(going.command("CancelNotice", unit_id=unit_id)),
            tried(going.write("RecordNotice", unit_id, {"move_out_date": LEFT, "provider": "feed"})),
            tried(going.put("turns", {"external_id": name, "unit": name, "move_in_date": "2979-01-01"})),
        ]
        if chance.random() < 0.5:
            acts.append(tried(going.move_in(unit_id, predecessor_transition_id=turn_id)))
    chance.shuffle(acts)
    await asyncio.gather(*acts)
    await check_units(served, going)


async def test_who_stays_or_moved_in_is_not_made_to_leave(going: Company, served: Database) -> None:
    """In any order, a cancelled notice and a successor's move-in prevail over the sweep."""
    places = await units_of(going, 20)
    acts: list[Awaitable[Any]] = []
    for number, (unit_id, turn_id) in enumerate(places.values()):
        if number % 2:
            acts.append(going.command("CancelNotice", unit_id=unit_id))
        else:
            acts.append(going.move_in(unit_id, predecessor_transition_id=turn_id))
        if number % 5 == 0:
            acts.append(going.sweep(AFTER))
    await asyncio.gather(*acts)
    await going.sweep(AFTER)
    assert {unit.unit_status for unit in await going.command("ListBoard")} == {"Occupied"}
    await check_units(served, going)


async def test_a_task_that_is_done_is_not_announced_later(going: Company, served: Database) -> None:
    places = await units_of(going, 1)
    ((_, turn_id),) = places.values()
    tasks = [
        (await going.command("AddTask", turn_id=turn_id, task_type="Paint", scheduled_date=LEFT)).task_id
        for _ in range(40)
    ]
    ends = [
        going.command(rpc, task_id=task_id)
        for task_id, rpc in zip(tasks, itertools.cycle(["CompleteTask", "CancelTask"]), strict=False)
    ]
    await asyncio.gather(*ends[:20], *(going.sweep(AFTER) for _ in range(3)), *ends[20:])
    stale = [fired_event[1] for fired_event in await fired(served, going) if fired_event[0] == "turn.task.stale"]
    assert len(stale) == len(set(stale))
    rows = await served.rows(Statement(select(t.turn_task).where(t.turn_task.c.company_id == going.id)))
    assert sorted(stale) == sorted(row["id"] for row in rows if row["stale_at"] is not None)
    for row in rows:
        # Announced before its end, or never.
        assert row["status"] != "open"
        assert row["stale_at"] is None or row["stale_at"] <= (row["completed_at"] or row["cancelled_at"])


async def test_a_locked_unit_is_waited_for(company: Company, served: Database) -> None:
    places = await units_of(company, 1)
    ((unit_id, turn_id),) = places.values()
    async with served.transaction() as connection:
        await connection.raw.execute(f"SELECT FROM unit WHERE id = {unit_id} FOR NO KEY UPDATE")
        waiting = [
            asyncio.create_task(tried(company.command("AddTask", turn_id=turn_id, task_type="Paint"))),
            asyncio.create_task(
                tried(company.command("ScheduleTurn", turn_id=turn_id, projected_ready_on="2980-04-01"))
            ),
            asyncio.create_task(tried(company.command("CancelNotice", unit_id=unit_id))),
        ]
        done, _ = await asyncio.wait(waiting, timeout=0.5)  # short: none ends
        assert not done
        await connection.raw.execute(f"UPDATE transition SET status = 'completed' WHERE unit_id = {unit_id}")
    answers = await asyncio.gather(*waiting)
    assert ["completed" in answer for answer in answers[:2]] == [True, True] and "no active resident" in answers[2]
