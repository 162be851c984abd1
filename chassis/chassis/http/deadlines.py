"""How long a connection waits for its client, and the one deadline that it has at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

# Longer than load balancers keep idle connections (60 s): they must close first, or requests are lost.
IDLE_SECONDS = 75.0
HEAD_SECONDS = 20.0
BODY_SECONDS = 30.0
# The longest pause inside a body. When a chunk is malformed, aiohttp's parser does not notify the body's reader: the
# body just stops growing. This limit ends that wait.
STALL_SECONDS = 10.0
UNREAD_SECONDS = 60.0
LINGER_SECONDS = 2.0
# How long the end of an evicted connection may take; its memory is needed.
EVICTION_SECONDS = 1.0

_NEVER = float("inf")


class Deadline:
    """When a connection has waited too long, and what happens then. A look once a second costs less than a timer for
    each request."""

    __slots__ = ("_at", "_loop", "_overdue")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._at = _NEVER
        self._overdue: Callable[[], None] | None = None

    def set(self, seconds: float, overdue: Callable[[], None]) -> None:
        self._at = self._loop.time() + seconds
        self._overdue = overdue

    def clear(self) -> None:
        self._at = _NEVER

    def forget(self) -> None:
        """Clears it, and drops what would happen: a method of the connection would keep it in memory until a collection
        of cycles."""
        self._at = _NEVER
        self._overdue = None

    def look(self, now: float) -> None:
        """Does what is due at `now`, by the loop's clock."""
        if now >= self._at and self._overdue is not None:
            self._at = _NEVER
            self._overdue()
