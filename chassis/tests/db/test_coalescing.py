"""Concurrent requests share a statement, and each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chassis.db import coalescing
from chassis.db.coalescing import AT_ONCE, Coalescer
from testkit import patience


class Doubling:
    """Answers numbers with their double, and records which numbers shared a call."""

    def __init__(self, bad: Sequence[int] = (), passed_on: Sequence[int] = (), linger_seconds: float = 0.0) -> None:
        self.batches: list[list[int]] = []
        self.begun: asyncio.Queue[list[int]] = asyncio.Queue()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.bad, self.passed_on = frozenset(bad), frozenset(passed_on)
        self.coalescer = Coalescer(self._several, self._alone, linger_seconds)

    async def _several(self, numbers: Sequence[int]) -> list[int | None]:
        await self._work(list(numbers))
        if self.bad & set(numbers):
            raise ValueError("one of them is bad")
        return [None if number in self.passed_on else 2 * number for number in numbers]

    async def _alone(self, number: int) -> int:
        await self._work([number])
        if number in self.bad:
            raise ValueError(f"{number} is bad")
        return 2 * number

    async def _work(self, numbers: list[int]) -> None:
        self.batches.append(numbers)
        self.begun.put_nowait(numbers)
        await self.may_end.wait()


async def test_a_request_that_comes_alone_is_answered_alone_at_once() -> None:
    doubling = Doubling()
    assert await doubling.coalescer.ask(4) == 8
    assert doubling.batches == [[4]]


async def test_requests_that_come_while_one_is_answered_share_the_next_batch() -> None:
    doubling = Doubling()
    doubling.may_end.clear()
    first = asyncio.create_task(doubling.coalescer.ask(1))
    await doubling.begun.get()
    others = [asyncio.create_task(doubling.coalescer.ask(number)) for number in (2, 3, 4)]
    await asyncio.sleep(0)
    doubling.may_end.set()
    assert await asyncio.gather(first, *others) == [2, 4, 6, 8]
    assert doubling.batches == [[1], [2, 3, 4]]


@pytest.mark.parametrize("linger_seconds", [0.0, 0.002])
async def test_after_a_shared_batch_those_that_come_a_moment_later_share_the_next_if_it_may_wait(
    linger_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coalescing, "BUSY_SECONDS", 60)
    doubling = Doubling(linger_seconds=linger_seconds)
    await asyncio.gather(*map(doubling.coalescer.ask, (1, 2)))
    gathering, gathered = asyncio.Event(), asyncio.Event()

    async def gather(seconds: float) -> None:
        assert seconds == linger_seconds
        gathering.set()
        await gathered.wait()

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", gather)
        third = asyncio.create_task(doubling.coalescer.ask(3))
        async with asyncio.timeout(patience.PATIENCE_SECONDS):
            await (gathering.wait() if linger_seconds else third)
    fourth = asyncio.create_task(doubling.coalescer.ask(4))
    await asyncio.sleep(0)
    gathered.set()
    assert [await third, await fourth] == [6, 8]
    assert doubling.batches == ([[1, 2], [3, 4]] if linger_seconds else [[1, 2], [3], [4]])


async def test_a_request_that_comes_later_does_not_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescing, "BUSY_SECONDS", 0)
    doubling = Doubling(linger_seconds=3600)
    await asyncio.gather(*map(doubling.coalescer.ask, (1, 2)))
    async with asyncio.timeout(patience.PATIENCE_SECONDS):
        assert await doubling.coalescer.ask(3) == 6


async def test_a_batch_that_hangs_does_not_hold_up_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescing, "PATIENCE_SECONDS", 0.001)
    doubling = Doubling()
    doubling.may_end.clear()
    hanging = asyncio.create_task(doubling.coalescer.ask(1))
    await doubling.begun.get()
    later = asyncio.create_task(doubling.coalescer.ask(2))
    async with asyncio.timeout(patience.PATIENCE_SECONDS):
        assert await doubling.begun.get() == [2]
    assert not hanging.done()
    doubling.may_end.set()
    assert [await hanging, await later] == [2, 4]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=80), st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
async def test_each_request_gets_its_own_answer_or_fault(
    numbers: list[int], bad: set[int], passed_on: set[int]
) -> None:
    doubling = Doubling(sorted(bad), sorted(passed_on - bad))
    answers = await asyncio.gather(*map(doubling.coalescer.ask, numbers), return_exceptions=True)
    expected = [f"{number} is bad" if number in bad else str(2 * number) for number in numbers]
    assert list(map(str, answers)) == expected
    assert max(map(len, doubling.batches)) <= AT_ONCE


async def test_a_caller_that_gives_up_leaves_the_others_their_answers() -> None:
    doubling = Doubling()
    doubling.may_end.clear()
    tasks = [asyncio.create_task(doubling.coalescer.ask(number)) for number in (1, 2, 3)]
    await doubling.begun.get()
    tasks[1].cancel()
    doubling.may_end.set()
    async with asyncio.timeout(patience.PATIENCE_SECONDS):
        first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
    assert first == 2 and third == 6 and isinstance(second, asyncio.CancelledError)
