"""The clients."""

from __future__ import annotations

import os
from types import TracebackType

import httpx

from makeready_client.core import Settings
from makeready_client.resources import Api, AsyncApi

TIMEOUT_SECONDS = 120.0
RETRIES = 8


def _settings(api_key: str | None, base_url: str | None, timeout: float, retries: int) -> Settings:
    api_key = api_key or os.environ.get("MAKEREADY_API_KEY")
    base_url = base_url or os.environ.get("MAKEREADY_BASE_URL")
    if not api_key:
        raise ValueError("no API key: give api_key, or set MAKEREADY_API_KEY")
    if not base_url:
        raise ValueError("no base address: give base_url, or set MAKEREADY_BASE_URL, as in https://HOST/api/v1")
    return Settings(api_key, base_url, timeout, retries)


class Makeready(Api):
    """The API of one company.

    api_key, base_url: MAKEREADY_API_KEY and MAKEREADY_BASE_URL of the environment if left out. timeout: seconds for one
    call with all its retries and waits for the rate limit, besides the `wait` of a feed. retries: how often a call is
    repeated at most. transport: of httpx, for a proxy or a private certificate authority. Threads may share a client; a
    fork of a process that has a client opens connections of its own.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(_settings(api_key, base_url, timeout, retries), transport)

    def __enter__(self) -> Makeready:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A signal may have come while httpcore held a lock, which nobody returns then: closing would wait for ever. The
        # connections end with the process.
        if kind is None or not issubclass(kind, KeyboardInterrupt | SystemExit):
            self.close()


class AsyncMakeready(AsyncApi):
    """As Makeready, with coroutines, in one event loop of asyncio at a time."""

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(_settings(api_key, base_url, timeout, retries), transport)

    async def __aenter__(self) -> AsyncMakeready:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
