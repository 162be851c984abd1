"""Whose page is made next: one client's after the other's, a few in each turn of the event loop.

A page is made without a pause, in milliseconds. Without turns, whoever sends a thousand requests at once has a thousand
pages made between two steps of everybody else's.
"""

from __future__ import annotations

import asyncio
from collections import deque

AT_ONCE = 8
# Of these so many are of people who are not signed in, if some of them wait; people who are come first otherwise.
OF_STRANGERS = 2

Waiting = dict[str, deque[asyncio.Future[None]]]


class Turns:
    """Requests that wait, by client. The client whose turn is next comes first."""

    def __init__(self) -> None:
        self._people: Waiting = {}
        self._strangers: Waiting = {}
        self._is_running = False

    async def turn(self, client: str, *, is_known: bool) -> None:
        """Waits until it is this client's turn. is_known: it is signed in."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        (self._people if is_known else self._strangers).setdefault(client, deque()).append(waiter)
        if not self._is_running:
            self._is_running = True
            self._next(loop)
        await waiter

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        begun = sum(_begin(self._strangers) for _ in range(OF_STRANGERS))
        begun += sum(_begin(self._people) or _begin(self._strangers) for _ in range(AT_ONCE - OF_STRANGERS))
        if begun:
            loop.call_soon(self._next, loop)  # behind the pages that begin now
        else:
            self._is_running = False


def _begin(waiting: Waiting) -> bool:
    """Begins the request whose turn it is; False if none waits."""
    while waiting:
        client = next(iter(waiting))
        waiters = waiting.pop(client)
        waiter = waiters.popleft()
        if waiters:
            waiting[client] = waiters
        if not waiter.done():  # its request may have ended
            waiter.set_result(None)
            return True
    return False
