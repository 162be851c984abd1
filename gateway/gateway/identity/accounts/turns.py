"""Turns at hashing passwords: a few at a time, fair between networks, and none for who has waited too long.

A hash takes a core for some 100 ms. Without turns, 250 sign-ins at once would make everybody wait for all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from gateway.identity.accounts import rules

AT_A_TIME = 2
WAIT_SECONDS_MAX = 4.0
"""Within the 10 s of the console's call, with time for the hash itself and for what follows."""
WAITING_MAX = 200

Result = TypeVar("Result")
_Place = asyncio.Future[None]
_Queues = dict[str, deque[_Place]]


@dataclass(frozen=True, slots=True)
class Line:
    """Where somebody waits: in the queue of a network, or of a browser or person that is known.

    Queues of a kind take turns. Every second turn is for those who are known, while any of them wait: strangers from
    however many networks do not keep them out, nor do they keep out strangers.
    """

    name: str
    is_known: bool = False


class Turns:
    """Runs work in AT_A_TIME threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="password")
        self._running = 0
        # By name, the next one first. None is empty.
        self._known: _Queues = {}
        self._strangers: _Queues = {}
        self._last_was_known = False

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queues in (self._known, self._strangers) for queue in queues.values())

    async def run(self, line: Line, work: Callable[..., Result], *arguments: object) -> Result:
        """The work's result. Raises Refusal 503, and has not begun the work then."""
        await self._turn(line)
        loop = asyncio.get_running_loop()
        job: Future[Result] = self._threads.submit(work, *arguments)
        job.add_done_callback(lambda _: _call_in(loop, self._next))
        return await asyncio.wrap_future(job)

    async def _turn(self, line: Line) -> None:
        if self._running < AT_A_TIME:
            self._running += 1
            return
        if self.waiting >= WAITING_MAX and not self._makes_room(line):
            raise rules.sign_in_busy()
        queues = self._known if line.is_known else self._strangers
        place: _Place = asyncio.get_running_loop().create_future()
        queues.setdefault(line.name, deque()).append(place)
        try:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                await place
        except TimeoutError:
            self._leave(queues, line.name, place)
            raise rules.sign_in_busy() from None
        except asyncio.CancelledError:
            self._leave(queues, line.name, place)
            raise

    def _makes_room(self, line: Line) -> bool:
        """Whether the last one of the network with the most in line was evicted for this one."""
        if not self._strangers:
            return False
        name = max(self._strangers, key=lambda network: len(self._strangers[network]))
        most = self._strangers[name]
        if not line.is_known and len(most) <= len(self._strangers.get(line.name, ())) + 1:
            return False
        last = most[-1]
        _remove(self._strangers, name, last)
        if not last.done():
            last.set_exception(rules.sign_in_busy())
        return True

    def _leave(self, queues: _Queues, name: str, place: _Place) -> None:
        """Whose place it is gives up. If their turn had come, the next one has it."""
        if place.done() and not place.cancelled() and place.exception() is None:
            self._next()
        else:
            _remove(queues, name, place)

    def _next(self) -> None:
        """A turn is over: the next one in line has it."""
        while self._known or self._strangers:
            self._last_was_known = bool(self._known) and not (self._last_was_known and self._strangers)
            queues = self._known if self._last_was_known else self._strangers
            name = next(iter(queues))
            queue = queues.pop(name)
            place = queue.popleft()
            if queue:
                queues[name] = queue  # behind the others
            if not place.done():
                place.set_result(None)
                return
        self._running -= 1


def _remove(queues: _Queues, name: str, place: _Place) -> None:
    if name in queues and place in queues[name]:
        queues[name].remove(place)
        if not queues[name]:
            del queues[name]


def _call_in(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: the process stops
        loop.call_soon_threadsafe(work)
