"""Creates that come at once share a statement: they die together, and each is done once when it is asked for again."""

import asyncio

import pytest

from .fire_effects import Effect, counted, since, sum_of
from .fire_house import House
from .fire_writes import INSERTS, KINDS, Caller, Records

CREATES = 16


@pytest.mark.parametrize("point", INSERTS)
@pytest.mark.parametrize("victim", ["svc-tickets", "gateway"])
async def test_creates_that_are_under_way_together_are_each_done_once(
    house: House, caller: Caller, records: Records, alone: dict[str, Effect], victim: str, point: str
) -> None:
    writes = [KINDS["create ticket"].make(records) for _ in range(CREATES)]
    asked = [(one, caller.api_key(), f"together {victim} {point} {n}") for n, one in enumerate(writes)]
    before = await counted(house, "svc-tickets")
    try:
        house.strike("svc-tickets", point, "kill" if victim == "svc-tickets" else "hold")
        firsts = [asyncio.create_task(caller.send(*one)) for one in asked]
        if victim == "svc-tickets":
            await house.struck(victim)
        else:
            await house.held("svc-tickets")
            await house.kill(victim)
            house.go_on("svc-tickets")
    finally:
        await house.mend()
    for first in await asyncio.gather(*firsts):
        assert first.status in (0, 201, 500), first
    replies = await asyncio.gather(*(caller.insist(*one) for one in asked))
    assert {one.status for one in replies} == {201}
    assert since(before, await counted(house, "svc-tickets")) == sum_of(writes, "svc-tickets", alone)
