"""Places that one request holds in all gateways: that of a waiting request, and that of a snapshot.

They lie in the shared store, with a lease: the place of a gateway that was killed is free a few seconds later. Without
a store, or while it fails, each process knows its own requests alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator

from gateway.http.store import Store

PREFIX = "makeready:"
LEASE_SECONDS = 15.0

# Each answers 1 if the place is the caller's. ARGV: the caller's token, milliseconds.
_TAKE = "redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return 1"
_IS_MINE = """local holder = redis.call('get', KEYS[1])
if not holder or holder == ARGV[1] then return 1 end
return 0"""
_HOLD = """local holder = redis.call('get', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return 1"""
_LEAVE = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end return 1"


class Places:
    """The places of all gateways on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(self, name: str, seconds: float) -> str:
        """Takes a place for at most `seconds`, also from another holder. Returns the token to ask `is_mine` with."""
        token = secrets.token_hex(8)
        await self._store.run(_TAKE, PREFIX + name, token, round(seconds * 1000))
        return token

    async def is_mine(self, name: str, token: str) -> bool:
        """Whether nobody has taken the place since."""
        answer: int | None = await self._store.run(_IS_MINE, PREFIX + name, token)
        return answer != 0

    @contextlib.asynccontextmanager
    async def held(self, name: str) -> AsyncIterator[bool]:
        """Holds a place to the end of the block, if it is free; says whether it was."""
        token, key = secrets.token_hex(8), PREFIX + name
        milliseconds = round(LEASE_SECONDS * 1000)
        if not self._store.is_shared:
            yield True
            return
        if await self._store.run(_HOLD, key, token, milliseconds) == 0:
            yield False
            return

        async def renew() -> None:
            while True:
                await asyncio.sleep(LEASE_SECONDS / 3)
                await self._store.run(_HOLD, key, token, milliseconds)

        renewing = asyncio.create_task(renew())
        try:
            yield True
        finally:
            renewing.cancel()
            await self._store.run(_LEAVE, key, token)
