"""120 requests a minute a key (spec 8), in a moving window; a refused request does not count.

The window lies in this process (`memory://`) or in a Valkey that all gateway processes share. While that store
fails, each process enforces the limit in its own memory, and a metric says so.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from typing import NamedTuple

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from prometheus_client import Counter

from gateway.http.store import Store

REQUESTS_A_MINUTE = 120
WINDOW_SECONDS = 60

# A window in the store: the instants of its requests, the newest first, by the store's clock, so that gateways whose
# clocks differ share it. Name and form are those of the `limits` library, with which the release before counts. An
# instant that is a window ahead was counted before the store's clock was set back: the window begins anew.
# ARGV: requests, seconds. Answers 1 if the request is admitted; how many are left; milliseconds until one more is.
_KEY = f"LIMITS:LIMITER/{{}}/{REQUESTS_A_MINUTE}/1/minute"
_TAKE = """local time, limit, window = redis.call('time'), tonumber(ARGV[1]), tonumber(ARGV[2])
local now = time[1] + time[2] / 1000000
local newest = tonumber(redis.call('lindex', KEYS[1], 0))
if newest and newest > now + window then redis.call('del', KEYS[1]) end
local oldest = tonumber(redis.call('lindex', KEYS[1], -1))
while oldest and oldest < now - window do
  redis.call('rpop', KEYS[1])
  oldest = tonumber(redis.call('lindex', KEYS[1], -1))
end
local count, admitted = redis.call('llen', KEYS[1]), 0
if count < limit then
  count, admitted = count + 1, 1
  redis.call('lpush', KEYS[1], string.format('%.6f', now))
  redis.call('expire', KEYS[1], window)
end
return {admitted, limit - count, math.ceil(((oldest or now) + window - now) * 1000)}"""

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

    async def take(self, api_key_id: int) -> Allowance:
        """Counts one request of the key, if the limit admits it."""
        key = str(api_key_id)
        if self._store.is_shared:
            answer = await self._store.run(_TAKE, _KEY.format(key), REQUESTS_A_MINUTE, WINDOW_SECONDS)
            if answer is not None:
                admitted, remaining, milliseconds = answer
                return _allowance(admitted == 1, milliseconds / 1000, remaining)
            ALONE.inc()
        is_admitted = self._alone.hit(self._item, key)
        reset_time, remaining = self._alone.get_window_stats(self._item, key)
        return _allowance(is_admitted, reset_time - time.monotonic(), remaining)

    async def tidy(self) -> None:
        """Drops idle keys once per window, until cancelled."""
        while True:
            await asyncio.sleep(WINDOW_SECONDS)
            self._memory.forget_idle()


def _allowance(admitted: bool, reset_seconds: float, remaining: int) -> Allowance:
    return Allowance(admitted, max(0, remaining), max(1, math.ceil(reset_seconds)))
