"""Coalesces concurrent requests: those that arrive while a statement runs share the next one.

A request that arrives alone is served at once, and nothing waits for a time unless the user of the coalescer says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import structlog

AT_ONCE = 32
BUSY_SECONDS = 0.02
PATIENCE_SECONDS = 0.05  # a statement that takes longer does not delay the next one

log = structlog.stdlib.get_logger(__name__)
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Coalescer(Generic[Asked, Answer]):
    """Answers concurrent requests together.

    Two or more are answered by `several`, in their order, with None for a request that `alone` must answer. If it
    fails, `alone` answers each request, so that a bad one fails by itself. In the BUSY_SECONDS after a statement that
    several shared, the next one waits `linger_seconds` for more requests.
    """

    def __init__(
        self,
        several: Callable[[Sequence[Asked]], Awaitable[Sequence[Answer | None]]],
        alone: Callable[[Asked], Awaitable[Answer]],
        linger_seconds: float = 0.0,
    ) -> None:
        self._several = several
        self._alone = alone
        self._linger_seconds = linger_seconds
        self._waiting: list[tuple[Asked, asyncio.Future[Answer]]] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._awaited: asyncio.Task[None] | None = None
        """The statement after which the next one begins."""
        self._shared_at = -BUSY_SECONDS

    async def ask(self, request: Asked) -> Answer:
        """Raises what `alone` raises."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        if self._awaited is None:
            self._begin()
        return await answer

    def _begin(self) -> None:
        task = self._awaited = asyncio.create_task(self._run())
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if task.cancelled():  # with all others, at the end of the process
            self._awaited = None
        else:
            self._go_on(task)

    def _go_on(self, task: asyncio.Task[None]) -> None:
        """Begins the next statement, if the task's was the last one that began."""
        if self._awaited is task:
            self._awaited = None
            if self._waiting:
                self._begin()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        if self._linger_seconds and loop.time() - self._shared_at < BUSY_SECONDS:
            await asyncio.sleep(self._linger_seconds)
        batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        assert self._awaited is not None
        patience = loop.call_later(PATIENCE_SECONDS, self._go_on, self._awaited)
        try:
            await self._answer(batch)
        finally:
            patience.cancel()
            if len(batch) > 1:
                self._shared_at = loop.time()

    async def _answer(self, batch: Sequence[tuple[Asked, asyncio.Future[Answer]]]) -> None:
        answers: Sequence[Answer | None] = [None] * len(batch)
        if len(batch) > 1:
            try:
                answers = await self._several([request for request, _ in batch])
            except Exception as error:
                # Only the error's type is logged: PostgreSQL's message may hold the row.
                log.warning("asked_one_by_one", many=len(batch), reason=type(error).__name__)
        alone = []
        for waiting, answer in zip(batch, answers, strict=True):
            if answer is None:
                alone.append(self._answer_alone(*waiting))
            elif not waiting[1].done():
                waiting[1].set_result(answer)
        if len(alone) == 1:
            await alone[0]
        elif alone:
            await asyncio.gather(*alone)

    async def _answer_alone(self, request: Asked, future: asyncio.Future[Answer]) -> None:
        try:
            answer = await self._alone(request)
        except Exception as error:
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(answer)
