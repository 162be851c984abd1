"""Waiting in tests: for a condition, and never for a time. No result depends on how long that takes.

A promise such as "within a second" is printed with `took`, and not asserted: a busy machine breaks it by chance.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

PATIENCE_SECONDS = 60.0
"""Longer than anything takes on a machine that is many times slower: a test that waits so long for something fails."""
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.01, 1.0
FIGURES: list[str] = []
"""The lines of `took`; they are printed at the end of the run."""


def pauses(seconds: float = PATIENCE_SECONDS) -> Iterator[float]:
    """Pauses between looks, which grow, so that looks over the API stay within a key's rate limit."""
    deadline, pause = time.monotonic() + seconds, PAUSE_SECONDS
    while time.monotonic() < deadline:
        yield pause
        pause = min(1.3 * pause, PAUSE_SECONDS_MAX)


def until(holds: Callable[[], object], complaint: object = "it did not come to pass") -> float:
    """Waits until it holds; returns the seconds that this took. Fails with the complaint, or what it returns."""
    started = time.monotonic()
    for pause in pauses():
        if holds():
            return time.monotonic() - started
        time.sleep(pause)
    raise AssertionError(complaint() if callable(complaint) else complaint)


async def eventually(holds: Callable[[], Awaitable[object]], complaint: object = "it did not come to pass") -> float:
    """As `until`, with a coroutine."""
    started = time.monotonic()
    for pause in pauses():
        if await holds():
            return time.monotonic() - started
        await asyncio.sleep(pause)
    raise AssertionError(complaint() if callable(complaint) else complaint)


async def comes_true(holds: Callable[[], object], complaint: object = "it did not come to pass") -> float:
    """As `until`, beside the other tasks of the event loop."""

    async def asked() -> object:
        return holds()

    return await eventually(asked, complaint)


def took(activity: str, seconds: float) -> None:
    """Prints a figure at the end of the run."""
    FIGURES.append(f"{seconds:8.3f} s until {activity}")
