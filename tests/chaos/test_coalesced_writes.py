"""Concurrent writes share a statement: they die together, and each is done once when it is retried."""

import asyncio

import pytest

from .effects import Effect, counted, since, sum_of
from .harness import Harness
from .writes import CHANGES_TOGETHER, INSERTS, KINDS, Caller, Records

pytestmark = pytest.mark.chaos

WRITES = 16
CASES = [
    *((victim, "create ticket", point) for victim in ("svc-tickets", "gateway") for point in INSERTS),
    *(("svc-tickets", "change ticket", point) for point in CHANGES_TOGETHER),
]


@pytest.mark.parametrize(("victim", "name", "point"), CASES)
async def test_writes_that_are_under_way_together_are_each_done_once(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect], victim: str, name: str, point: str
) -> None:
    writes = [KINDS[name].make(records) for _ in range(WRITES)]
    requests = [(write, caller.api_key(), f"together {victim} {name} {point} {n}") for n, write in enumerate(writes)]
    before = await counted(harness, "svc-tickets")
    try:
        harness.arm("svc-tickets", point, "kill" if victim == "svc-tickets" else "hold")
        firsts = [asyncio.create_task(caller.send(*request)) for request in requests]
        if victim == "svc-tickets":
            await harness.killed_at_point(victim)
        else:
            await harness.held("svc-tickets")
            await harness.kill(victim)
            harness.go_on("svc-tickets")
    finally:
        await harness.mend()
    for first in await asyncio.gather(*firsts):
        assert first.status in (0, 200, 201, 500), first
    replies = await asyncio.gather(*(caller.insist(*request) for request in requests))
    assert {reply.status for reply in replies} == {201 if name == "create ticket" else 200}
    assert since(before, await counted(harness, "svc-tickets")) == sum_of(writes, "svc-tickets", alone)
