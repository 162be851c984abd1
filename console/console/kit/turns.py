"""Whose page is made next: one client's after the other's, a few in each turn of the event loop.

A page is made without a pause, in milliseconds. Without turns, whoever sends a thousand requests at once has a thousand
pages made between two steps of everybody else's.
"""

from __future__ import annotations

import asyncio
from collections import deque

AT_ONCE = 2


class Turns:
    """Requests that wait, by client."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The client whose turn is next comes first."""
        self._is_running = False

    async def turn(self, client: str) -> None:
        """Waits until it is this client's turn."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiting.setdefault(client, deque()).append(waiter)
        if not self._is_running:
            self._is_running = True
            self._next(loop)
        await waiter

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        left = AT_ONCE
        while left and self._waiting:
            client = next(iter(self._waiting))
            waiters = self._waiting.pop(client)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[client] = waiters
            if not waiter.done():  # its request may have ended
                waiter.set_result(None)
                left -= 1
        if left == AT_ONCE:
            self._is_running = False
        else:
            loop.call_soon(self._next, loop)  # behind the pages that begin now
