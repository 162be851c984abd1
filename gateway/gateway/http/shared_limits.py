"""Limits that hold for all gateways together: of waiting requests, and of snapshots.

The requests that count are in the shared store, for some seconds: one of a gateway that was killed soon counts no more.
Without a store, or while it fails, each process knows its own requests alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator

from gateway.http.store import Store

PREFIX = "makeready:"
HOLD_SECONDS = 15.0

# A waiting request is over by then, whichever gateway it waits in.
WAIT_SECONDS_MAX = 40.0

# Each answers 1 if the caller may go on. ARGV: the caller's token, milliseconds.
# A line of waiting requests is a sorted set of tokens by the microsecond of their arrival.
_JOIN = """local now = redis.call('time')
redis.call('zadd', KEYS[1], string.format('%.0f', now[1] * 1000000 + now[2]), ARGV[1])
redis.call('zremrangebyrank', KEYS[1], 0, -1 - ARGV[3])
redis.call('pexpire', KEYS[1], ARGV[2])
return 1"""
_IS_IN = """if redis.call('exists', KEYS[1]) == 0 or redis.call('zscore', KEYS[1], ARGV[1]) then return 1 end
return 0"""
_QUIT = "return redis.call('zrem', KEYS[1], ARGV[1])"
_HOLD = """local holder = redis.call('get', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return 1"""
_LEAVE = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end return 1"


class SharedLimits:
    """The limits of all gateways on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def join(self, name: str, newest: int) -> str:
        """Joins those who wait under a name, of whom the `newest` may stay. Returns the token to ask `is_in` with."""
        token = secrets.token_hex(8)
        await self._store.run(_JOIN, PREFIX + name, token, round(WAIT_SECONDS_MAX * 1000), newest)
        return token

    async def is_in(self, name: str, token: str) -> bool:
        """Whether the holder of the token may still wait."""
        answer: int | None = await self._store.run(_IS_IN, PREFIX + name, token)
        return answer != 0

    async def quit(self, name: str, token: str) -> None:
        """Leaves those who wait."""
        await self._store.run(_QUIT, PREFIX + name, token)

    @contextlib.asynccontextmanager
    async def held(self, name: str) -> AsyncIterator[bool]:
        """Holds the name to the end of the block, if it is free; says whether it was."""
        token, key = secrets.token_hex(8), PREFIX + name
        milliseconds = round(HOLD_SECONDS * 1000)
        if not self._store.is_shared:
            yield True
            return
        if await self._store.run(_HOLD, key, token, milliseconds) == 0:
            yield False
            return

        async def renew() -> None:
            while True:
                await asyncio.sleep(HOLD_SECONDS / 3)
                await self._store.run(_HOLD, key, token, milliseconds)

        renewing = asyncio.create_task(renew())
        try:
            yield True
        finally:
            renewing.cancel()
            await self._store.run(_LEAVE, key, token)
