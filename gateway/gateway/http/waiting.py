"""Requests that wait for something new: they ask their service again when it hints at a change, and once a second.

While a request waits it holds its connection and a few hundred bytes; no call and no database connection is open. A
hint is `hints.<service>.<company>.<kind>.<id>` (see `chassis.messaging.hints`). It may be lost, or be sent before the
change is visible in the order of changes: the question each second finds those changes.

All questions of a company are asked at the same instant of each second, so that equal ones are asked once.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog
from prometheus_client import Gauge

from chassis.http.requests import Request
from chassis.messaging.transport import FAULTS, Transport
from chassis.refusals import Unavailable
from gateway.http.shared_limits import SharedLimits

POLL_SECONDS = 1.0
# Between two questions of one request: an import hints at changes fifty times a second.
BETWEEN_SECONDS = 0.2
# A company's hints are heard for so long after its last request: most callers wait again at once.
LINGER_SECONDS = 60.0
LOOK_SECONDS = 1.0
# Of one key at one path: a program, its next release at the same time, a developer's `listen`, and a few more.
WAITS_MAX = 8

log = structlog.stdlib.get_logger(__name__)
WAITING = Gauge("makeready_http_waiting_requests", "Requests that wait for something new")


A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Awaited(Generic[A]):
    """What a waiting request gets."""

    answer: A
    is_superseded: bool
    """Whether newer requests of the same queue ended the wait."""


@dataclass(frozen=True, slots=True)
class Question(Generic[A]):
    """What a waiting request asks again and again."""

    service: str
    company_id: int
    same: Hashable
    """Equal for questions of the company that have the same answer."""
    ask: Callable[[], Awaitable[A]]
    is_news: Callable[[A], bool]
    """Whether an answer ends the wait."""


class Topic:
    """One service's changes of one company: who waits for them."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.waits: set[Wait] = set()
        self.heard = 0
        """How many hints have come."""
        self.left_at = time.monotonic()
        self.stop: Callable[[], Awaitable[None]] | None = None

    def hear(self, _subject: str) -> None:
        self.heard += 1
        for wait in self.waits:
            wait.woken.set()


class Wait:
    """One waiting request."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        """By a hint since the last question, or by the end."""
        self.over = asyncio.Event()
        self.is_superseded = False

    def supersede(self) -> None:
        """Ends it, as newer requests wait in its queue."""
        self.is_superseded = True
        self.end()

    def end(self) -> None:
        """Has the request answered at once, with what there is."""
        self.over.set()
        self.woken.set()


class Waiting:
    """All waiting requests of this process."""

    def __init__(self, transport: Transport, shared: SharedLimits) -> None:
        """`shared` are the limits of all gateways."""
        self._transport = transport
        self._shared = shared
        self._topics: dict[tuple[str, int], Topic] = {}
        self._wanted = asyncio.Event()
        self._queues: defaultdict[str, list[Wait]] = defaultdict(list)
        """The requests of this process that wait in each queue, the oldest first."""
        self._asked: dict[Hashable, asyncio.Task[Any]] = {}
        """The questions under way, for those who ask the same."""

    async def answer(self, request: Request, queue: str, seconds: float, question: Question[A]) -> Awaited[A]:
        """The first answer that is news, or the last one once `seconds` are over.

        It comes earlier if WAITS_MAX newer requests wait in the same queue, here or (within a second) in other
        gateways, if the client hangs up, or if the gateway stops. Raises what the first `ask` raises, and the refusals
        of later ones; while the service is away it waits for it.
        """
        until = time.monotonic() + seconds
        topic = self._topic(question.service, question.company_id)
        wait = Wait()
        waits = self._queues[queue]
        waits.append(wait)
        if len(waits) > WAITS_MAX:
            waits.pop(0).supersede()
        topic.waits.add(wait)
        request.on_abort(wait.end)
        WAITING.inc()
        token = ""
        try:
            token = await self._shared.join(f"waits:{queue}", WAITS_MAX)
            answer = await question.ask()
            while not question.is_news(answer):
                asked_at = time.monotonic()
                next_at = asked_at + _until_question(question.company_id, asked_at)
                await _occurs(wait.woken, min(next_at, until))
                await _occurs(wait.over, min(asked_at + BETWEEN_SECONDS, until))
                now = time.monotonic()
                request.idle_seconds += now - asked_at
                if wait.over.is_set() or now >= until:
                    break
                wait.woken.clear()
                if not await self._shared.is_in(f"waits:{queue}", token):
                    wait.supersede()
                    break
                with contextlib.suppress(Unavailable):
                    answer = await self._ask_once((question.company_id, question.same, topic.heard), question.ask)
            return Awaited(answer, wait.is_superseded)
        finally:
            WAITING.dec()
            request.on_abort(None)
            topic.waits.discard(wait)
            topic.left_at = time.monotonic()
            if wait in waits:
                waits.remove(wait)
            if not waits and self._queues.get(queue) is waits:
                del self._queues[queue]
            if token:
                await self._shared.quit(f"waits:{queue}", token)

    async def _ask_once(self, question: Hashable, ask: Callable[[], Awaitable[A]]) -> A:
        """The answer to a question that several requests may ask at the same time. A hint makes it another question."""
        task = self._asked.get(question)
        if task is None:
            task = self._asked[question] = asyncio.ensure_future(ask())
            task.add_done_callback(lambda _: self._asked.pop(question, None))
        answer: A = await asyncio.shield(task)
        return answer

    def _topic(self, service: str, company_id: int) -> Topic:
        topic = self._topics.get((service, company_id))
        if topic is None:
            topic = self._topics[service, company_id] = Topic(f"hints.{service}.{company_id}.>")
            self._wanted.set()
        return topic

    async def run(self) -> None:
        """Listens to the hints of companies whose requests wait, until cancelled."""
        await self._transport.connected()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wanted.wait()
            self._wanted.clear()
            for name, topic in list(self._topics.items()):
                try:
                    if not topic.waits and time.monotonic() - topic.left_at > LINGER_SECONDS:
                        del self._topics[name]
                        if topic.stop is not None:
                            await topic.stop()
                    elif topic.stop is None and self._transport.is_connected:
                        topic.stop = await self._transport.listen(topic.subject, topic.hear)
                except FAULTS as error:
                    log.info("hints_unheard", reason=str(error) or type(error).__name__)


async def _occurs(event: asyncio.Event, until: float) -> None:
    """Returns once the event has occurred, or at an instant of the monotonic clock."""
    if not event.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                await event.wait()


def _until_question(company_id: int, now: float) -> float:
    """The seconds until the company's next question: each company has its instant in each second."""
    offset = company_id * 0.6180339887 % 1.0
    return POLL_SECONDS * (math.floor(now / POLL_SECONDS - offset) + 1 + offset) - now
