"""Capacity that parties share, so that one party never holds all of it."""

from __future__ import annotations

import asyncio
from collections import deque

# With 3, a party that is alone holds three quarters of the capacity, two hold three sevenths each, and so on. A part is
# always free, so a party that arrives waits for no other.
TIMES_WHAT_IS_FREE = 3


class Shares:
    """Capacity that parties share. A party may take one more while it holds less than three times what is free."""

    __slots__ = ("_held", "capacity", "held")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held = 0
        self._held: dict[int, int] = {}

    def room(self, party: int) -> int:
        """How many more the party may take now."""
        free = self.capacity - self.held
        return max(0, -((self._held.get(party, 0) - TIMES_WHAT_IS_FREE * free) // (TIMES_WHAT_IS_FREE + 1)))

    def held_by(self, party: int) -> int:
        return self._held.get(party, 0)

    def take(self, party: int, amount: int = 1) -> None:
        self.held += amount
        self._held[party] = self._held.get(party, 0) + amount

    def give_back(self, party: int, amount: int = 1) -> None:
        self.held -= amount
        held = self._held[party] - amount
        if held:
            self._held[party] = held
        else:
            del self._held[party]


class Turns(Shares):
    """Capacity that parties also wait for. Of those that wait, the party that holds fewest goes first.

    patience_seconds: how long each waits; for ever by default. One timer serves all that wait.
    """

    __slots__ = ("_patience_seconds", "_timer", "_waiting")

    def __init__(self, capacity: int, patience_seconds: float | None = None) -> None:
        super().__init__(capacity)
        self._patience_seconds = patience_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: dict[int, deque[tuple[float, asyncio.Future[bool]]]] = {}

    @property
    def is_idle(self) -> bool:
        return not (self.held or self._waiting)

    def room(self, party: int) -> int:
        return 0 if party in self._waiting else super().room(party)

    async def enter(self, party: int) -> bool:
        """Takes one. False if none came free in time."""
        if self.room(party) > 0:
            self.take(party)
            return True
        loop = asyncio.get_running_loop()
        entered: asyncio.Future[bool] = loop.create_future()
        self._waiting.setdefault(party, deque()).append((loop.time(), entered))
        if self._timer is None and self._patience_seconds is not None:
            self._timer = loop.call_later(self._patience_seconds, self._give_up, loop)
        try:
            return await entered
        except asyncio.CancelledError:
            if entered.done() and not entered.cancelled() and entered.result():
                self.leave(party)
            raise

    def leave(self, party: int) -> None:
        self.give_back(party)
        if self._waiting:
            self.wake()

    def wake(self) -> None:
        """Lets in those that wait, as far as there is room."""
        while self._waiting:
            party = min(self._waiting, key=self.held_by) if len(self._waiting) > 1 else next(iter(self._waiting))
            if super().room(party) <= 0:
                return
            queue = self._waiting[party]
            _, entered = queue.popleft()
            if not queue:
                del self._waiting[party]
            if not entered.done():
                self.take(party)
                entered.set_result(True)

    def _give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._patience_seconds is not None
        self._timer = None
        until = loop.time() - self._patience_seconds + 0.001
        for party, queue in list(self._waiting.items()):
            while queue and (queue[0][0] <= until or queue[0][1].done()):
                _, entered = queue.popleft()
                if not entered.done():
                    entered.set_result(False)
            if not queue:
                del self._waiting[party]
        if self._waiting:
            oldest = min(queue[0][0] for queue in self._waiting.values())
            self._timer = loop.call_at(oldest + self._patience_seconds, self._give_up, loop)


def total_where_one_party_gets(amount: int) -> int:
    """The shared capacity of which a party that is alone holds `amount`."""
    return amount * (TIMES_WHAT_IS_FREE + 1) // TIMES_WHAT_IS_FREE
