"""Kill -9 of one process after another, at random moments; each is restarted a moment later."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass

from .harness import Harness

POSTGRES, NATS = "PostgreSQL", "NATS"
DOWN_SECONDS_MAX = 1.0


@dataclass
class Kill:
    """One kill. Times are Unix timestamps."""

    who: str
    at: float
    back_at: float = 0.0


class Killer:
    """Kills the processes in random order: each once before any is killed again, and only after its last restart."""

    def __init__(self, harness: Harness, chance: random.Random, apart_seconds: tuple[float, float]) -> None:
        self.kills: list[Kill] = []
        self.harness = harness
        self._chance = chance
        self._apart_seconds = apart_seconds
        self._coming_back: set[asyncio.Task[None]] = set()
        self._line: list[str] = []

    async def run(self, kills_max: int | None) -> None:
        """Kills until cancelled or kills_max is reached (None: no limit). May return before the last victims are back:
        see `rest`."""
        while kills_max is None or len(self.kills) < kills_max:
            await asyncio.sleep(self._chance.uniform(*self._apart_seconds))
            await self._kill(self._next())

    async def rest(self) -> None:
        """Waits until all victims are back."""
        await asyncio.gather(*self._coming_back)

    def by_process(self) -> Counter[str]:
        return Counter(kill.who for kill in self.kills)

    def _next(self) -> str:
        if not self._line:
            names = [POSTGRES, NATS, *self.harness.names]
            self._line = self._chance.sample(names, len(names))
        return self._line.pop()

    async def _kill(self, who: str) -> None:
        for task in list(self._coming_back):
            if task.done() or task.get_name() == who:
                await task  # the next victim must be up again before it is killed
                self._coming_back.discard(task)
        kill = Kill(who, time.time())
        self.kills.append(kill)
        if who == POSTGRES:
            self.harness.postgres.kill()
        elif who == NATS:
            self.harness.nats.kill()
        else:
            await self.harness.kill(who)
        down_seconds = self._chance.uniform(0, DOWN_SECONDS_MAX)
        self._coming_back.add(asyncio.create_task(self._bring_back(kill, down_seconds), name=who))

    async def _bring_back(self, kill: Kill, down_seconds: float) -> None:
        await asyncio.sleep(down_seconds)
        # A server dies with the thread that started it, so start it in this one.
        if kill.who == POSTGRES:
            self.harness.postgres.start()
        elif kill.who == NATS:
            self.harness.nats.start()
        else:
            await self.harness.start(kill.who)
        kill.back_at = time.time()
