"""A storm of writes: many clients, writes of all kinds, each retried with its own key until its final answer."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable

from .effects import Effect, counted_all, since, sum_of
from .harness import Harness
from .processes import PATIENCE_SECONDS
from .writes import KINDS, Caller, Records, Reply

CLIENTS = 8
_storms = itertools.count(1)


class Storm:
    """One storm; call `blow` once."""

    def __init__(self, harness: Harness, caller: Caller, records: Records, each: int) -> None:
        """each: the number of writes of each kind."""
        self.harness = harness
        self.caller = caller
        self.number = next(_storms)
        writes = [kind.make(records) for kind in KINDS.values() for _ in range(each)]
        # Each storm has another order, and it is the same in every run.
        self.writes = random.Random(self.number).sample(writes, len(writes))
        self.answers: dict[int, Reply] = {}
        self.attempts: list[Reply] = []
        self._waiting = iter(list(enumerate(self.writes)))
        self._api_keys = [caller.api_key() for _ in self.writes]

    async def blow(self, strokes: list[int], strike: Callable[[], Awaitable[None]]) -> None:
        """Strikes whenever the number of answered writes reaches one of `strokes`; returns when all are answered."""
        async with asyncio.timeout(2 * PATIENCE_SECONDS), asyncio.TaskGroup() as clients:
            for _ in range(CLIENTS):
                clients.create_task(self._client())
            for stroke in strokes:
                while len(self.answers) < stroke:  # noqa: ASYNC110 - nothing here sets an event
                    await asyncio.sleep(0.005)
                await strike()

    async def _client(self) -> None:
        for number, write in self._waiting:
            self.answers[number] = await self.caller.insist(
                write, self._api_keys[number], self._key(number), self.attempts
            )

    def _key(self, number: int) -> str:
        return f"storm {self.number} write {number}"

    async def check(self, before: dict[str, Effect], alone: dict[str, Effect]) -> None:
        """Checks that each write was done once with its whole effect, and that each answer is stored for replay."""
        assert {reply.status for reply in self.answers.values()} <= {200, 201}, self.outcomes()
        for number, write in enumerate(self.writes):
            again = await self.caller.send(write, self._api_keys[number], self._key(number))
            reply = self.answers[number]
            assert again.replayed and again.status == reply.status, (write, reply, again)
            assert again.body == reply.body or "secret" in reply.json, (write, reply, again)
        for service, counts in (await counted_all(self.harness)).items():
            assert since(before[service], counts) == sum_of(self.writes, service, alone), service

    def outcomes(self) -> Counter[tuple[int, str]]:
        """Counts the attempts by status and error code; without an answer, by 0 and the name of the exception."""
        return Counter(
            (attempt.status, attempt.code if attempt.status else attempt.body.decode()) for attempt in self.attempts
        )
