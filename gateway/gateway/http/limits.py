"""120 requests a minute a key (spec 8), in a moving window; a refused request does not count.

The window lies in this process (`memory://`) or in a Valkey that all gateway processes share. While that store
fails, each process enforces the limit in its own memory, and a metric says so.
"""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections import deque
from typing import NamedTuple

from limits import RateLimitItemPerMinute
from limits.aio.storage import Storage as SharedStorage
from limits.aio.strategies import MovingWindowRateLimiter as SharedMovingWindow
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import MovingWindowRateLimiter
from prometheus_client import Counter

from gateway.http.store import STORE_SECONDS_MAX, Store

REQUESTS_A_MINUTE = 120
WINDOW_SECONDS = 60

ALONE = Counter("makeready_rate_limit_alone_total", "Requests counted in this process alone while the store failed")


class Allowance(NamedTuple):
    """The limit's verdict on one request."""

    admitted: bool
    remaining: int
    reset_seconds: int
    """Whole seconds, at least 1, until the oldest counted request leaves the window."""


class ProcessMemory(MemoryStorage):
    """The library's storage in memory, with windows of constant cost.

    The library's own storage sweeps all keys from a new thread every 10 ms: with 300 active keys and 2,000 requests a
    second that costs several times as much as counting them. Its clock is monotonic: a jump of the machine's time
    neither empties nor freezes a window.
    """

    STORAGE_SCHEME = ["process-memory"]  # noqa: RUF012 - the library's declaration

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[str, deque[float]] = {}

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        window = self._window(key, expiry)
        if len(window) + amount > limit:
            return False
        window.extend([time.monotonic()] * amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        window = self._window(key, expiry)
        return (window[0] if window else time.monotonic()), len(window)

    def _window(self, key: str, expiry: int) -> deque[float]:
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = deque()
        start = time.monotonic() - expiry
        while window and window[0] < start:
            window.popleft()
        return window

    def forget_idle(self) -> None:
        """Drops the windows of keys that were not used for a whole window."""
        start = time.monotonic() - WINDOW_SECONDS
        self._windows = {key: window for key, window in self._windows.items() if window and window[-1] >= start}


class Limits:
    """The limit of every key, counted in the store if there is one."""

    def __init__(self, store: Store) -> None:
        self._item = RateLimitItemPerMinute(REQUESTS_A_MINUTE)
        self._memory = ProcessMemory()
        self._alone = MovingWindowRateLimiter(self._memory)
        self._store = store
        self._shared: SharedMovingWindow | None = None
        if store.is_shared:
            storage = storage_from_string(
                f"async+{store.url}",
                wrap_exceptions=True,
                implementation="valkey",
                socket_timeout=STORE_SECONDS_MAX,
                socket_connect_timeout=STORE_SECONDS_MAX,
            )
            assert isinstance(storage, SharedStorage)
            self._shared = SharedMovingWindow(storage)

    async def take(self, api_key_id: int) -> Allowance:
        """Counts one request of the key, if the limit admits it."""
        key = str(api_key_id)
        if self._shared is not None:
            allowance = await self._store.ask(functools.partial(self._take_shared, self._shared, key))
            if allowance is not None:
                return allowance
            ALONE.inc()
        admitted = self._alone.hit(self._item, key)
        return _allowance(admitted, *self._alone.get_window_stats(self._item, key), time.monotonic())

    async def _take_shared(self, shared: SharedMovingWindow, key: str) -> Allowance:
        admitted = await shared.hit(self._item, key)
        stats = await shared.get_window_stats(self._item, key)
        return _allowance(admitted, *stats, time.time())  # by which the library counts in a shared store

    async def tidy(self) -> None:
        """Drops idle keys once per window, until cancelled."""
        while True:
            await asyncio.sleep(WINDOW_SECONDS)
            self._memory.forget_idle()


def _allowance(admitted: bool, reset_time: float, remaining: int, now: float) -> Allowance:
    return Allowance(admitted, max(0, remaining), max(1, math.ceil(reset_time - now)))
