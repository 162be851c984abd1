"""When to ask again, for what goes on for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

from makeready_client.errors import MakereadyError
from makeready_client.exchange import log
from makeready_client.failures import may_pass
from makeready_client.paging import FeedPage

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 1.0, 30.0
# A wait ends a little early or late, by the clocks of both sides.
EARLY_SECONDS = 1.0

OnRetry: TypeAlias = Callable[[MakereadyError, float], None]
"""Is told of a failure that may pass, and in how many seconds the next request follows."""


class Pauses:
    """The seconds between the requests of one follower: 1, 2, 4 … 30 while nothing comes of them."""

    def __init__(self, wait: int, on_retry: OnRetry | None) -> None:
        """wait: seconds, that of the requests."""
        self._wait = wait
        self._on_retry = on_retry
        self._seconds = PAUSE_SECONDS
        self._asked_at = 0.0
        self._has_warned = False

    def ask(self) -> None:
        """Notes that a request is sent now."""
        self._asked_at = time.monotonic()

    def after_page(self, page: FeedPage[Any]) -> float:
        """The pause after a page: 0, unless it came empty before its wait was over."""
        is_empty = not page.data and page.next_cursor is None
        if page.superseded and not self._has_warned:
            self._has_warned = True
            log.warning("Other programs follow with this API key, more than may wait: each should have a key.")
        if is_empty and time.monotonic() - self._asked_at < self._wait - EARLY_SECONDS:
            return self._longer()
        self._seconds = PAUSE_SECONDS
        return 0.0

    def after_failure(self, error: MakereadyError) -> float:
        """The pause after a failure. Raises the error if the same request cannot work a little later."""
        if not may_pass(error):
            raise error
        seconds = self._longer()
        if self._on_retry:
            self._on_retry(error, seconds)
        return seconds

    def _longer(self) -> float:
        seconds = self._seconds
        self._seconds = min(seconds * 2, PAUSE_SECONDS_MAX)
        return seconds
