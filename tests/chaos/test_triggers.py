"""The gateway is killed before each step of a trigger: the repeat with its key goes on, and everything is made once."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import Any

import pytest

from ..e2e.system import Answer, Company
from .harness import Harness

pytestmark = pytest.mark.chaos
STEP = "trigger-step"


def trigger(company: Company, event: str, idempotency_key: str) -> Answer | None:
    """None where the gateway ends or holds still before it answers."""
    try:
        return company.system.post("/sandbox/triggers", company.keys["write"], {"event": event}, idempotency_key)
    except OSError:
        return None


async def answered_after(harness: Harness, company: Company, event: str, key: str, steps: int) -> Answer | None:
    """The answer, if the trigger takes no more than so many steps; else the gateway is killed before the next one."""
    harness.arm("gateway", STEP, "hold")
    asking = asyncio.create_task(asyncio.to_thread(trigger, company, event, key))
    for passed in itertools.count():
        held = asyncio.create_task(harness.held("gateway"))
        await asyncio.wait({asking, held}, return_when=asyncio.FIRST_COMPLETED)
        if not held.done():
            held.cancel()
            harness.disarm("gateway")
            return asking.result()
        await held
        if passed == steps:
            await harness.kill("gateway")
            await asking
            await harness.start("gateway")
            return None
        harness.arm("gateway", STEP, "hold")
        harness.go_on("gateway")
    raise AssertionError("unreachable")


async def made(harness: Harness, company: Company) -> Counter[str]:
    """How many records of each kind the company has."""
    kinds = {
        "svc-catalog": ("property", "unit", "vendor", "inspection", "notice"),
        "svc-tickets": ("ticket", "pm_task"),
    }
    kinds["svc-occupancy"] = ("transition", "turn_task")
    counts: Counter[str] = Counter()
    for name, tables in kinds.items():
        for table in tables:
            sql = f"SELECT count(*) AS n FROM {table} WHERE company_id = $1"
            counts[table] = (await harness.query(name, sql, company.company_id))[0]["n"]
    return counts


async def fired(harness: Harness, company: Company) -> Counter[str]:
    return Counter(event.public.event for event in (await harness.events(company.company_id)).values())


@pytest.mark.parametrize("event", ["ticket.stale", "vendor.hold", "turn.schedule_changed"])
async def test_a_trigger_that_is_killed_before_any_of_its_steps_makes_everything_once(
    harness: Harness, event: str
) -> None:
    alone = await harness.sandbox(f"Alone {event}")
    first = await asyncio.to_thread(trigger, alone, event, "alone")
    assert first is not None and first.status == 201
    company = await harness.sandbox(f"Killed {event}")
    answer, kills = None, 0
    while answer is None:
        answer = await answered_after(harness, company, event, "killed", kills)
        kills += answer is None
        assert kills < 20
    assert kills >= 3
    assert answer.status == 201, answer.json
    assert await made(harness, company) == await made(harness, alone)
    assert await fired(harness, company) == await fired(harness, alone)
    again: Any = await asyncio.to_thread(trigger, company, event, "killed")
    assert (again.body, again.headers["X-Idempotent-Replay"]) == (answer.body, "1")
    await harness.all_events_arrived()
