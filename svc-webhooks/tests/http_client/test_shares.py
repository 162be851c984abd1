"""Capacity that parties share."""

import asyncio

import pytest

from svc_webhooks.http_client.shares import Shares, Turns, total_where_one_party_gets


def filled(capacity: int, parties: int) -> list[int]:
    """How much each party gets if all take what they can, one at a time."""
    shares = Shares(capacity)
    while any(shares.room(party) for party in range(parties)):
        for party in range(parties):
            if shares.room(party):
                shares.take(party)
    return [shares.held_by(party) for party in range(parties)]


@pytest.mark.parametrize("capacity", [1, 2, 3, 8, 16, 64, 600, 1365])
@pytest.mark.parametrize("parties", [1, 2, 3, 5, 40])
def test_parties_get_the_same_and_leave_a_part(capacity: int, parties: int) -> None:
    held = filled(capacity, parties)
    assert max(held) - min(held) <= 1
    assert sum(held) <= capacity
    if capacity >= 4 * parties:
        assert sum(held) < capacity


@pytest.mark.parametrize("capacity", [1, 2, 8, 24, 64, 256, 512, 1024])
def test_a_party_that_is_alone_gets_so_many(capacity: int) -> None:
    assert filled(total_where_one_party_gets(capacity), 1) == [capacity]


@pytest.mark.parametrize("capacity", [1, 7, 16, 64])
def test_the_room_is_what_can_be_taken_one_after_another(capacity: int) -> None:
    shares = Shares(capacity)
    for party in (0, 1, 0, 2):
        room, taken = shares.room(party), 0
        while shares.room(party):
            shares.take(party)
            taken += 1
        assert taken == room


def test_a_place_that_is_given_back_is_free() -> None:
    shares = Shares(4)
    shares.take(1, 3)
    assert (shares.room(1), shares.room(2)) == (0, 1)
    shares.give_back(1, 3)
    assert (shares.held, shares.room(1)) == (0, 3)


async def test_who_holds_fewest_goes_first_then_who_waits_longest() -> None:
    turns, order = Turns(4), list[str]()

    async def enter(party: int, name: str) -> None:
        assert await turns.enter(party)
        order.append(name)

    for _ in range(3):
        assert await turns.enter(1)
    assert await turns.enter(2)
    waiting = [asyncio.create_task(enter(*entrant)) for entrant in ((1, "1a"), (1, "1b"), (3, "3a"), (2, "2a"))]
    await asyncio.sleep(0)
    for party in (1, 2, 1, 1):
        turns.leave(party)
        await asyncio.sleep(0.001)
    assert order == ["3a", "2a", "1a", "1b"]
    await asyncio.gather(*waiting)


async def test_one_that_waits_gives_up_after_its_patience_and_leaves_its_turn_to_the_next() -> None:
    turns = Turns(1, patience_seconds=0.02)
    assert await turns.enter(1)
    assert await asyncio.gather(*(turns.enter(party) for party in (1, 1, 2))) == [False] * 3
    turns.leave(1)
    assert turns.is_idle and await turns.enter(2)


async def test_one_that_is_cancelled_while_it_waits_takes_no_place() -> None:
    turns = Turns(1)
    assert await turns.enter(1)
    waiting = [asyncio.create_task(turns.enter(party)) for party in (2, 3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    turns.leave(1)
    waiting[1].cancel()  # it has entered already
    await asyncio.wait(waiting)
    assert turns.held == 0 and await turns.enter(1)
