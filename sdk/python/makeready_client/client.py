"""The clients."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from types import TracebackType

import httpx

from makeready_client.exchange import OnResponse, Settings, log
from makeready_client.resources import Api, AsyncApi

TIMEOUT_SECONDS = 120.0
RETRIES = 8


def _key_and_address(api_key: str | None, base_url: str | None) -> tuple[str, str]:
    api_key = api_key or os.environ.get("MAKEREADY_API_KEY")
    base_url = base_url or os.environ.get("MAKEREADY_BASE_URL")
    if not api_key:
        raise ValueError("no API key: give api_key, or set MAKEREADY_API_KEY")
    if not base_url:
        raise ValueError("no base address: give base_url, or set MAKEREADY_BASE_URL, as in https://HOST/api/v1")
    return api_key, base_url


def _log_as_asked() -> None:
    """MAKEREADY_LOG=debug prints each request to stderr, never with the key."""
    level = os.environ.get("MAKEREADY_LOG", "").upper()
    if not level:
        return
    if level not in ("DEBUG", "INFO", "WARNING"):
        raise ValueError("MAKEREADY_LOG must be debug, info or warning")
    log.setLevel(level)
    if not log.handlers:
        log.addHandler(logging.StreamHandler())


class Makeready(Api):
    """The API of one company.

    api_key, base_url: MAKEREADY_API_KEY and MAKEREADY_BASE_URL of the environment if left out. timeout: seconds for one
    call with all its retries and waits for the rate limit, besides the `wait` of a feed. retries: how often a call is
    repeated at most. headers: sent besides the client's own. on_response: is told of each request that was sent.
    transport: of httpx, for a proxy or a private certificate authority. Threads may share a client; a fork of a process
    that has a client opens connections of its own.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        headers: Mapping[str, str] | None = None,
        on_response: OnResponse | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        _log_as_asked()
        key, address = _key_and_address(api_key, base_url)
        super().__init__(Settings(key, address, timeout, retries, headers or {}, on_response), transport)

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
        headers: Mapping[str, str] | None = None,
        on_response: OnResponse | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        _log_as_asked()
        key, address = _key_and_address(api_key, base_url)
        super().__init__(Settings(key, address, timeout, retries, headers or {}, on_response), transport)

    async def __aenter__(self) -> AsyncMakeready:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
