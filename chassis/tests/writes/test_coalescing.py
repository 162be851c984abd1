"""Concurrent questions are answered together, and every caller gets the answer that is his."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chassis.writes import coalescing
from chassis.writes.coalescing import Coalescer


class Asked:
    """Doubles numbers; keeps in what company each was asked."""

    def __init__(self, *, bad: Sequence[int] = (), taken: Sequence[int] = ()) -> None:
        self.groups: list[list[int]] = []
        self.started: asyncio.Queue[list[int]] = asyncio.Queue()
        self.gate = asyncio.Event()
        self.gate.set()
        self._bad, self._taken = bad, taken

    async def several(self, some: Sequence[int]) -> list[int | None]:
        await self._begin(list(some))
        if set(self._bad) & set(some):
            raise ValueError("a bad one")
        return [None if one in self._taken else 2 * one for one in some]

    async def alone(self, one: int) -> int:
        await self._begin([one])
        if one in self._bad:
            raise ValueError(f"{one} is bad")
        return 2 * one

    async def _begin(self, some: list[int]) -> None:
        self.groups.append(some)
        self.started.put_nowait(some)
        await self.gate.wait()


async def test_who_comes_alone_is_served_alone() -> None:
    asked = Asked()
    assert await Coalescer(asked.several, asked.alone).ask(4) == 8
    assert asked.groups == [[4]]


async def test_those_who_come_meanwhile_share_the_next() -> None:
    asked = Asked()
    one = Coalescer(asked.several, asked.alone)
    asked.gate.clear()
    first = asyncio.create_task(one.ask(1))
    await asked.started.get()
    rest = [asyncio.create_task(one.ask(number)) for number in range(2, 6)]
    await asyncio.sleep(0)
    asked.gate.set()
    assert [await task for task in (first, *rest)] == [2, 4, 6, 8, 10]
    assert asked.groups == [[1], [2, 3, 4, 5]]


async def test_one_that_hangs_holds_up_nobody_who_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescing, "PATIENCE_SECONDS", 0.001)
    asked = Asked()
    one = Coalescer(asked.several, asked.alone)
    asked.gate.clear()
    hanging = asyncio.create_task(one.ask(1))
    await asked.started.get()
    later = [asyncio.create_task(one.ask(2)), asyncio.create_task(one.ask(3))]
    assert await asked.started.get() == [2, 3] and not hanging.done()
    asked.gate.set()
    assert [await hanging, await later[0], await later[1]] == [2, 4, 6]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=80), st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
async def test_everybody_gets_an_answer_that_is_his(numbers: list[int], bad: set[int], taken: set[int]) -> None:
    asked = Asked(bad=sorted(bad), taken=sorted(taken - bad))
    one = Coalescer(asked.several, asked.alone)
    answers = await asyncio.gather(*(one.ask(number) for number in numbers), return_exceptions=True)
    for number, answer in zip(numbers, answers, strict=True):
        assert str(answer) == (f"{number} is bad" if number in bad else str(2 * number))
    assert max(map(len, asked.groups)) <= coalescing.AT_ONCE


async def test_a_caller_who_goes_away_takes_no_answer_from_others() -> None:
    asked = Asked()
    one = Coalescer(asked.several, asked.alone)
    asked.gate.clear()
    tasks = [asyncio.create_task(one.ask(number)) for number in (1, 2, 3)]
    await asked.started.get()
    tasks[1].cancel()
    asked.gate.set()
    first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
    assert (first, third) == (2, 6) and isinstance(second, asyncio.CancelledError)
