"""Fifty clients at once: with one key there is one effect; with a key each, one order of things."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from fire_effects import Effect, counted, since
from fire_house import House
from fire_writes import KINDS, Caller, Records, Reply

CLIENTS = 50


def without_secret(body: bytes) -> Any:
    """A subscription's secret is told once (spec 2.12)."""
    found = json.loads(body)
    found.pop("secret", None)
    return found


@pytest.mark.parametrize("name", KINDS)
async def test_fifty_clients_with_one_key_have_one_effect(
    house: House, caller: Caller, records: Records, alone: dict[str, Effect], name: str
) -> None:
    kind = KINDS[name]
    write, api_key, key = kind.make(records), await house.key(caller.company), f"fifty {name}"
    before = await counted(house, kind.service)
    replies = await asyncio.gather(*(caller.send(write, api_key, key) for _ in range(CLIENTS)))
    firsts = [one for one in replies if one.status in (200, 201) and not one.replayed]
    replays = [one for one in replies if one.replayed]
    waiting = [one for one in replies if one.status == 409]
    assert len(firsts) == 1 and len(firsts) + len(replays) + len(waiting) == CLIENTS, Counter(
        (one.status, one.replayed) for one in replies
    )
    assert {one.code for one in waiting} <= {"idempotency_in_progress"}
    again = await caller.send(write, api_key, key)
    assert again.replayed and {one.status for one in (*replays, again)} == {firsts[0].status}
    assert {one.body for one in replays} <= {again.body}
    if name == "create webhook":
        assert again.json == without_secret(firsts[0].body)
    else:
        assert again.body == firsts[0].body
    assert since(before, await counted(house, kind.service)) == alone[name]


def total(replies: list[Reply]) -> Counter[tuple[int, bool]]:
    return Counter((one.status, one.replayed) for one in replies)
