"""The Valkey that all gateway processes share: what it is asked, and what happens while it fails.

While it fails, no request waits for it: it is tried once a second, by one request.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog
from prometheus_client import Gauge
from valkey.asyncio import Valkey

STORE_SECONDS_MAX = 0.25
RETRY_STORE_SECONDS = 1.0

log = structlog.stdlib.get_logger(__name__)
CONNECTED = Gauge(
    "makeready_rate_limit_store_connected",
    "1 while the shared store of rate limits answers; NaN without one, and until it is asked first",
)
CONNECTED.set(math.nan)

Answer = TypeVar("Answer")


class Store:
    """url: `memory://` if there is none, or that of a Valkey or Redis server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_shared = url.partition("://")[0] != "memory"
        self._ask_at = 0.0
        self._client: Any = None
        if self.is_shared:
            self._client = Valkey.from_url(
                url.replace("redis", "valkey", 1) if url.startswith("redis") else url,
                socket_timeout=STORE_SECONDS_MAX,
                socket_connect_timeout=STORE_SECONDS_MAX,
            )

    async def run(self, script: str, key: str, *values: str | int) -> Any:
        """The answer of a script in Lua about one key; None if there is no store, or it fails."""
        if self._client is None:
            return None
        return await self.ask(lambda: self._client.eval(script, 1, key, *values))

    async def ask(self, question: Callable[[], Awaitable[Answer]]) -> Answer | None:
        """The answer; None if the store fails. It is then not asked for a second."""
        now = time.monotonic()
        if now < self._ask_at:
            return None
        was_failing, self._ask_at = self._ask_at > 0, 0.0
        if was_failing:
            self._ask_at = now + RETRY_STORE_SECONDS  # one request tries the store, the others don't wait for it
        try:
            async with asyncio.timeout(STORE_SECONDS_MAX):
                answer = await question()
        except Exception as error:  # from the client, the network or the library: in each case the store can't be used
            self._ask_at = time.monotonic() + RETRY_STORE_SECONDS
            CONNECTED.set(0)
            if not was_failing:
                log.warning("rate_limit_store_away", reason=str(error) or type(error).__name__)
            return None
        self._ask_at = 0.0
        CONNECTED.set(1)
        if was_failing:
            log.info("rate_limit_store_back")
        return answer
