"""A command that a crash interrupts takes effect once, after a retry."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from chassis.db.database import Database
from testkit.services import RunningService

from ..harness import Company, fired

pytestmark = pytest.mark.chaos

LEFT, AFTER = "2980-03-11", "2980-03-13T12:00:00Z"


async def killed(occupancy: RunningService, point: str, act: Any) -> None:
    """Restarts the service with a failpoint, runs the command until the service dies there, and starts it again."""
    occupancy.stop()
    occupancy.start(MAKEREADY_KILL_AT=point)
    with pytest.raises(grpc.aio.AioRpcError):
        await act()
    assert occupancy.process is not None
    assert await asyncio.to_thread(occupancy.process.wait, 20) == -9, f"{point} was not reached"
    occupancy.start()


async def test_an_act_whose_answer_was_lost_is_done_once(
    company: Company, served: Database, occupancy: RunningService
) -> None:
    unit_id = await company.known_unit(served)
    turn_id = (await company.move_in(unit_id))["entity_id"]

    async def act() -> Any:
        return await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Down", idempotency_key="once")

    await killed(occupancy, "write-after-commit", act)
    assert (await act()).unit_status == "Down"
    assert await act() == await act()
    assert (await fired(served, company))[1:] == [("turn.status_changed", turn_id, "Occupied", "Down")]
    assert len(await company.audited()) == 1


async def test_a_sweep_cut_off_is_made_good(going: Company, served: Database, occupancy: RunningService) -> None:
    unit_id = await going.known_unit(served)
    turn_id = (await going.move_in(unit_id))["entity_id"]
    await going.notice(unit_id, LEFT)
    await going.command("AddTask", turn_id=turn_id, task_type="Paint", scheduled_date=LEFT)
    before = await fired(served, going)
    await killed(occupancy, "sweep-before-commit", lambda: going.sweep(AFTER))
    assert await fired(served, going) == before
    await going.sweep(AFTER)
    await going.sweep(AFTER)
    assert sorted(event[0] for event in (await fired(served, going))[len(before) :]) == [
        "turn.status_changed",
        "turn.task.stale",
    ]
