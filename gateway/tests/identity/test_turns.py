"""Turns at hashing passwords: in which order they come, who is evicted, who waits in vain."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Awaitable

import pytest

from chassis.refusals import Refusal
from gateway.identity.accounts import turns
from gateway.identity.accounts.turns import AT_A_TIME, WAITING_MAX, Line, Turns
from testkit.patience import comes_true


class Bench:
    """Turns whose threads are held until the test lets them go; what runs is noted in its order."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.notes: list[tuple[int, str]] = []
        """The thread and the name of each that has run."""
        self.let_go = threading.Event()
        self.tasks: list[asyncio.Task[str]] = []

    def _hold(self) -> str:
        self.let_go.wait()
        return "held"

    def _note(self, name: str) -> str:
        self.notes.append((threading.get_ident(), name))
        return name

    @property
    def ran(self) -> list[str]:
        return [name for _, name in self.notes]

    async def hold(self) -> None:
        """Takes all threads."""
        for number in range(AT_A_TIME):
            self.tasks.append(asyncio.create_task(self.turns.run(Line(f"held {number}"), self._hold)))
        await asyncio.sleep(0)

    async def wait(self, name: str, line: Line) -> asyncio.Task[str]:
        """One more in line; returns when it stands there, or has been refused."""
        task = asyncio.create_task(self.turns.run(line, self._note, name))
        self.tasks.append(task)
        await asyncio.sleep(0)
        return task


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    line = Bench()
    yield line
    line.let_go.set()
    await asyncio.gather(*line.tasks, return_exceptions=True)


async def refusal_of(call: Awaitable[object]) -> str:
    with pytest.raises(Refusal) as refused:
        await call
    assert refused.value.status == 503
    return refused.value.code


async def test_networks_take_turns_however_many_wait_in_one(bench: Bench) -> None:
    await bench.hold()
    for number in range(100):
        await bench.wait(f"flood {number}", Line("10.0.0.0/24"))
    late = await bench.wait("genuine", Line("10.9.9.0/24"))
    other = await bench.wait("another", Line("10.8.8.0/24"))
    bench.let_go.set()
    await asyncio.gather(late, other)
    assert bench.ran.index("genuine") <= AT_A_TIME and bench.ran.index("another") <= AT_A_TIME + 1
    await asyncio.gather(*bench.tasks)
    # Within a network it is first come, first served. One thread may note later than the other what it began before.
    for thread in {thread for thread, _ in bench.notes}:
        numbers = [
            int(name.split()[1]) for ran_in, name in bench.notes if ran_in == thread and name.startswith("flood")
        ]
        assert numbers == sorted(numbers)
    assert bench.turns.waiting == 0 and len(bench.ran) == 102


async def test_a_genuine_sign_in_waits_for_one_hash_of_each_network_at_most(bench: Bench) -> None:
    """While 200 from five networks wait: some hundred milliseconds of hashing, and half of that for a known browser."""
    networks = 5
    await bench.hold()
    for number in range(WAITING_MAX):
        await bench.wait(f"flood {number}", Line(f"10.0.{number % networks}.0/24"))
    stranger = await bench.wait("stranger", Line("10.9.9.0/24"))
    browser = await bench.wait("known", Line("browser", is_known=True))
    bench.let_go.set()
    assert (await stranger, await browser) == ("stranger", "known")
    # One more is the known one itself; two threads may note two neighbours the other way round.
    assert bench.ran.index("stranger") <= networks + 1 + AT_A_TIME
    assert bench.ran.index("known") <= 1 + AT_A_TIME


async def test_who_is_known_has_every_second_turn(bench: Bench) -> None:
    await bench.hold()
    for number in range(60):
        await bench.wait(f"stranger {number}", Line(f"10.0.{number}.0/24"))
    for number in range(10):
        await bench.wait(f"known {number}", Line("browser a", is_known=True))
    rare = await bench.wait("rare", Line("browser b", is_known=True))
    bench.let_go.set()
    await rare
    assert bench.ran.index("rare") <= 2 * 2 + AT_A_TIME
    await asyncio.gather(*bench.tasks)
    begun = bench.ran[: 2 * 11]
    # Those who are known keep out no strangers either. Two threads may note two neighbours the other way round.
    assert abs(sum(name.startswith("stranger") for name in begun) - 11) <= 2
    assert len(bench.ran) == 71


async def test_a_full_line_takes_from_the_network_with_the_most(bench: Bench) -> None:
    await bench.hold()
    flood = [await bench.wait(f"flood {number}", Line("10.0.0.0/24")) for number in range(WAITING_MAX)]
    assert bench.turns.waiting == WAITING_MAX
    assert await refusal_of(await bench.wait("flood too", Line("10.0.0.0/24"))) == "sign_in_busy"
    genuine = await bench.wait("genuine", Line("10.9.9.0/24"))
    browser = await bench.wait("known", Line("browser", is_known=True))
    for last in flood[-2:]:
        assert await refusal_of(last) == "sign_in_busy"
    assert bench.turns.waiting == WAITING_MAX
    bench.let_go.set()
    assert (await genuine, await browser) == ("genuine", "known")
    assert max(bench.ran.index(name) for name in ("genuine", "known")) <= 3 + AT_A_TIME


async def test_who_has_waited_too_long_is_refused_and_costs_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "WAIT_SECONDS_MAX", 0.01)
    await bench.hold()
    late = [await bench.wait(f"late {number}", Line("10.0.0.0/24")) for number in range(5)]
    assert {await refusal_of(sign_in) for sign_in in late} == {"sign_in_busy"}
    assert bench.turns.waiting == 0
    bench.let_go.set()
    await asyncio.gather(*bench.tasks, return_exceptions=True)
    assert bench.ran == []
    monkeypatch.undo()
    assert await bench.turns.run(Line("10.0.0.0/24"), bench._note, "later") == "later"


@pytest.mark.parametrize("given_up", range(6))
async def test_callers_that_give_up_lose_no_turn(bench: Bench, given_up: int) -> None:
    """Before their turn, and just as it comes."""
    await bench.hold()
    waiting = [await bench.wait(str(number), Line(f"10.0.{number % 2}.0/24")) for number in range(6)]
    waiting[given_up].cancel()
    bench.let_go.set()
    await asyncio.sleep(0)
    waiting[(given_up + 1) % 6].cancel()
    await asyncio.gather(*bench.tasks, return_exceptions=True)
    await comes_true(lambda: bench.turns._running == 0)
    assert bench.turns.waiting == 0
    counter = itertools.count()
    assert await asyncio.gather(*(bench.turns.run(Line("n"), next, counter) for _ in range(9))) == list(range(9))


async def test_work_that_fails_gives_its_turn_on(bench: Bench) -> None:
    def fail() -> None:
        raise ValueError("bad")

    for _ in range(3 * AT_A_TIME):
        with pytest.raises(ValueError, match="bad"):
            await bench.turns.run(Line("n"), fail)
    assert await bench.turns.run(Line("n"), bench._note, "after") == "after"
