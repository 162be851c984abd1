"""Units vacated on residents' mornings after, by the running service's sweeps."""

from __future__ import annotations

import asyncio
import datetime
import json
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.schedule import instants

from ..harness import BEFORE_SIX, LEFT, SIX, Company, fired, lived_in, published, until


async def test_a_unit_is_vacant_the_morning_after_and_not_before(going: Company, served: Database) -> None:
    unit_id, turn_id = await lived_in(going, served)
    await going.command("ScheduleTurn", turn_id=turn_id, projected_ready_on="2980-03-20")
    before = await fired(served, going)
    for moment in (f"{LEFT}T12:00:00Z", BEFORE_SIX):
        await going.sweep(moment)
    assert await fired(served, going) == before
    done = await going.sweep(SIX)
    assert done["unit.vacated"] == done["turn.status_changed"] >= 1
    event = [message for message in await published(served, going) if message.HasField("public")][-1]
    assert event.public.data == await going.served_turn(turn_id)
    assert event.public.change == b'{"field":"unit_status","from":"Notice","to":"Vacant Not Ready"}'
    turn = json.loads(event.public.data)
    assert (turn["status"], turn["move_out_date"]) == ("Active", LEFT)
    assert instants.printed(event.occurred_at.ToDatetime(datetime.UTC)) == turn["updated_at"]
    # The actual time, not the sweep's `now`.
    assert turn["updated_at"] < "2900"
    await until(going.units, {"U1": ("Vacant Not Ready", "2980-03-20")})
    assert (await going.audited())[-1] == (
        "svc-occupancy",
        "unit.vacated",
        unit_id,
        {"unit_status": "Notice"},
        {"unit_status": "Vacant Not Ready"},
    )
    rows = len(await published(served, going))
    for moment in (SIX, "2980-03-13T00:00:00Z", "2985-01-01T00:00:00Z"):
        await going.sweep(moment)
    assert len(await published(served, going)) == rows


@pytest.mark.parametrize("status", ["Vacant Ready", "Down"])
async def test_a_status_that_a_person_set_stays(going: Company, served: Database, status: str) -> None:
    unit_id, turn_id = await lived_in(going, served)
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status=status)
    turn, events = await going.served_turn(turn_id), await fired(served, going)
    await going.sweep(SIX)
    assert (await going.served_turn(turn_id), await fired(served, going)) == (turn, events)


@pytest.mark.parametrize("status", ["Occupied", "Notice"])
async def test_a_resident_who_stayed_on_is_not_moved_out_again(going: Company, served: Database, status: str) -> None:
    unit_id, turn_id = await lived_in(going, served)
    await going.sweep(SIX)
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status=status)
    events = await fired(served, going)
    await going.sweep("2980-04-01T00:00:00Z")
    assert await fired(served, going) == events
    # A feed that sends its notice once more says nothing new; one with another date makes the turn due again.
    await going.notice(unit_id, LEFT)
    await going.sweep("2980-04-02T00:00:00Z")
    assert await fired(served, going) == events
    await going.notice(unit_id, "2980-04-03")
    await going.sweep("2980-04-05T00:00:00Z")
    assert (await fired(served, going))[-1] == ("turn.status_changed", turn_id, "Notice", "Vacant Not Ready")


async def test_a_vacancy_that_staff_take_back_is_vacated_on_its_morning(going: Company, served: Database) -> None:
    unit_id, turn_id = await lived_in(going, served)
    for status in ("Vacant Ready", "Notice"):
        await going.command("SetUnitStatus", unit_id=unit_id, unit_status=status)
    events = await fired(served, going)
    await going.sweep(BEFORE_SIX)
    assert await fired(served, going) == events
    await going.sweep(SIX)
    assert (await fired(served, going))[len(events) :] == [
        ("turn.status_changed", turn_id, "Notice", "Vacant Not Ready")
    ]


async def test_a_date_that_moves_takes_the_morning_with_it(going: Company, served: Database) -> None:
    unit_id, turn_id = await lived_in(going, served)
    await going.notice(unit_id, "2980-11-04")
    events = await fired(served, going)
    for moment in (SIX, "2980-11-05T10:59:59Z"):
        await going.sweep(moment)
        assert await fired(served, going) == events
    await going.sweep("2980-11-05T11:00:00Z")
    assert (await fired(served, going))[len(events) :] == [
        ("turn.status_changed", turn_id, "Notice", "Vacant Not Ready")
    ]


async def test_a_cancelled_notice_and_a_successor_leave_nothing_to_do(going: Company, served: Database) -> None:
    unit_id, turn_id = await lived_in(going, served)
    await going.command("CancelNotice", unit_id=unit_id)
    await going.sweep(SIX)
    await going.notice(unit_id, LEFT)
    await going.move_in(unit_id, predecessor_transition_id=turn_id)
    events = await fired(served, going)
    await going.sweep("2981-01-01T00:00:00Z")
    assert await fired(served, going) == events
    assert events[-1][2:] == ("Notice", "Occupied")


async def test_companies_that_are_inactive_or_unknown_are_left_alone(company: Company, served: Database) -> None:
    _, turn_id = await lived_in(company, served)
    task = await company.command("AddTask", turn_id=turn_id, task_type="Paint", scheduled_date=LEFT)
    events = await fired(served, company)
    await company.sweep("2980-04-01T00:00:00Z")
    assert await fired(served, company) == events
    # Once the company is active again, the sweep handles all that fell due meanwhile.
    await company.know(served, timezone="UTC")
    await company.sweep("2980-04-01T00:00:00Z")
    assert sorted((await fired(served, company))[len(events) :]) == [
        ("turn.status_changed", turn_id, "Notice", "Vacant Not Ready"),
        ("turn.task.stale", task.task_id, None, None),
    ]


async def test_many_sweeps_at_once_do_each_thing_once(going: Company, served: Database) -> None:
    names = [f"U{n}" for n in range(130)]
    await going.make_units(*names)
    rows = [{"external_id": f"T{name}", "unit": name, "move_out_date": LEFT} for name in names]
    assert set(await going.put("turns", *rows)) == {"created"}
    tasks: list[Any] = [
        {"external_id": f"K{name}", "turn": f"T{name}", "task_type": "Paint", "scheduled_date": LEFT} for name in names
    ]
    assert set(await going.put("turn-tasks", *tasks)) == {"created"}
    done = await asyncio.gather(*(going.sweep("2980-03-13T10:00:00Z") for _ in range(6)))
    ids = {turn["entity_id"] for turn in await going.turns()}
    events = await fired(served, going)
    status = [event for event in events if event[0] == "turn.status_changed"]
    assert len(status) == len(ids) == 130 and {event[1] for event in status} == ids
    assert len(events) == 260 and len(set(events)) == 260
    for name in ("unit.vacated", "turn.task.stale"):
        assert sum(counts[name] for counts in done) >= 130
    await until(going.units, dict.fromkeys(names, ("Vacant Not Ready", None)))
