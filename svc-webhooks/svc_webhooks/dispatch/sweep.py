"""One sweep: limits each subscription's concurrent attempts, and schedules subscriptions in turn.

Subscriptions with due deliveries share the permits evenly, in turns. An attempt that lasts longer than
SLOW_AFTER_SECONDS returns its permit and continues. Its endpoint then shares a smaller number of permits with other
slow ones until it answers promptly again, so endpoints that hang take nothing from those that answer, however they
behaved before. The sweep claims only deliveries that it can send at once, so memory does not grow with the backlog.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
from collections import Counter, OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import structlog

from chassis.db.database import Database
from chassis.refusals import Unavailable
from svc_webhooks.dispatch import rules
from svc_webhooks.dispatch.attempts import Attempts
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.sender import Claimed
from svc_webhooks.subscriptions.rules import HEALTHY

PERMITS_MAX = 512
SLOW_PERMITS_MAX = 256
UNDER_WAY_MAX = 1024  # includes attempts that returned their permit and continue
OF_A_SUBSCRIPTION_MAX = 16
OF_A_SUBSCRIPTION_MIN = 2
SLOW_AFTER_SECONDS = 2.0
LISTED_AT_ONCE = 1000
CLAIM_PAUSE_SECONDS = 0.02  # a claim costs 1 ms and 20 µs a row, so one claim replaces all attempts that end meanwhile
STOP_SECONDS = 3.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Counts:
    """The counts of a sweep. parked: those of `failed` that used up the ladder."""

    attempted: int = 0
    succeeded: int = 0
    failed: int = 0
    parked: int = 0


@dataclass(slots=True, eq=False)
class _Subscriber:
    """A subscription in a sweep. slow: its attempts last longer than SLOW_AFTER_SECONDS, as far as is known."""

    id: int
    slow: bool
    under_way: int = 0
    overdue: int = 0


@dataclass(slots=True, eq=False)
class _Permit:
    """An attempt's permit. slow: one of the slow ones' permits. overdue: in use for longer than SLOW_AFTER_SECONDS."""

    subscriber: _Subscriber
    began: float
    slow: bool
    overdue: bool = False
    ended: bool = False

    @property
    def is_held(self) -> bool:
        """A prompt subscription's permit is free once it is overdue, a slow one's when its attempt ends."""
        return not self.ended and (self.slow or not self.overdue)


class Sweep:
    """A sweep as of `now`."""

    def __init__(self, database: Database, attempts: Attempts, now: datetime.datetime) -> None:
        self.now = now
        self.counts = Counts()
        self._database = database
        self._attempts = attempts
        self._subscribers: dict[int, _Subscriber] = {}
        # Subscriptions that may have more due deliveries, in the order of their turns: prompt ones, slow ones.
        self._queues: tuple[OrderedDict[int, _Subscriber], ...] = (OrderedDict(), OrderedDict())
        self._held = [0, 0]  # permits in use: prompt, slow
        self._begun: deque[_Permit] = deque()
        self._under_way: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stopped = False
        self._fault: Exception | None = None

    async def run(self) -> Counts:
        """Attempts due deliveries. Raises Unavailable if the database stays away for longer than a moment."""
        await self.look()
        while True:
            self._changed.clear()
            self._release_overdue()
            if wanted := self._wanted():
                await self._claim(wanted)
                await asyncio.sleep(CLAIM_PAUSE_SECONDS)
            elif self._under_way:
                await self._change()
            else:
                break
        if self._fault is not None:
            raise self._fault
        return self.counts

    async def look(self) -> None:
        """Queues every subscription with a due delivery."""
        after_id = 0
        while not self._stopped:
            rows = await queries.subscriptions_due(self._database, self.now, after_id, LISTED_AT_ONCE)
            for row in rows:
                one = self._subscribers.get(row.id)
                if one is None:
                    one = self._subscribers[row.id] = _Subscriber(row.id, row.health != HEALTHY)
                self._queues[one.slow][one.id] = one
            self._changed.set()
            if len(rows) < LISTED_AT_ONCE:
                break
            after_id = rows[-1].id

    async def stop(self) -> None:
        """Stops claiming, and gives running attempts a moment to be recorded; after that their leases run out."""
        self._stopped = True
        self._changed.set()
        await end_tasks(self._under_way)

    def _wanted(self) -> dict[int, int]:
        """The number of deliveries of each subscription that can be sent at once. A served subscription goes to its
        queue's end."""
        wanted: dict[int, int] = {}
        if self._stopped:
            return wanted
        left = UNDER_WAY_MAX - len(self._under_way)
        for slow, permits in ((False, PERMITS_MAX), (True, SLOW_PERMITS_MAX)):
            queue = self._queues[slow]
            share = permits // max(1, len(queue))
            share = min(OF_A_SUBSCRIPTION_MAX, max(OF_A_SUBSCRIPTION_MIN, share))
            room = min(left, permits - self._held[slow])
            for one in list(queue.values()):
                if room <= 0:
                    break
                rows = min(share - one.under_way, room)
                if rows > 0:
                    wanted[one.id] = rows
                    room -= rows
                    left -= rows
                    queue.move_to_end(one.id)
        return wanted

    async def _claim(self, wanted: dict[int, int]) -> None:
        """Claims deliveries and sends them at once: see `Sender.attempt`."""
        try:
            claimed = await self._attempts.claim_due(wanted, self.now)
        except Exception as fault:
            self._fault, self._stopped = fault, True  # raised when the running attempts have ended
            return
        found = Counter(one.delivery.subscription_id for one in claimed)
        for sub_id, many in wanted.items():
            if found[sub_id] < many:
                self._queues[self._subscribers[sub_id].slow].pop(sub_id, None)
                self._forget(self._subscribers[sub_id], found[sub_id])
        began = asyncio.get_running_loop().time()
        for one in claimed:
            subscriber = self._subscribers[one.delivery.subscription_id]
            permit = _Permit(subscriber, began, subscriber.slow)
            subscriber.under_way += 1
            self._held[permit.slow] += 1
            self._begun.append(permit)
            task = asyncio.create_task(self._deliver(one))
            self._under_way.add(task)
            task.add_done_callback(functools.partial(self._end, permit))

    async def _deliver(self, claimed: Claimed) -> None:
        try:
            attempt = await self._attempts.make(claimed, self.now)
            if attempt is not None:
                self.counts.attempted += 1
                self.counts.succeeded += attempt.state == rules.SUCCEEDED
                self.counts.failed += bool(attempt.error)
                self.counts.parked += attempt.state == rules.PARKED
        except Unavailable as fault:
            self._fault = fault
        except Exception:
            # Only this attempt fails: the others continue, and it is repeated when its lease has run out.
            log.exception("attempt_failed", subscription_id=claimed.delivery.subscription_id)

    def _release_overdue(self) -> None:
        """Marks attempts that last longer than SLOW_AFTER_SECONDS as overdue, which frees prompt subscriptions'
        permits."""
        limit = asyncio.get_running_loop().time() - SLOW_AFTER_SECONDS
        while self._begun and (self._begun[0].ended or self._begun[0].began < limit):
            permit = self._begun.popleft()
            if permit.ended:
                continue
            permit.overdue = True
            permit.subscriber.overdue += 1
            self._held[permit.slow] -= not permit.is_held
            self._requeue(permit.subscriber, slow=True)

    def _end(self, permit: _Permit, attempt: asyncio.Task[None]) -> None:
        self._under_way.discard(attempt)
        one = permit.subscriber
        self._held[permit.slow] -= permit.is_held
        permit.ended = True
        one.under_way -= 1
        one.overdue -= permit.overdue
        self._requeue(one, slow=permit.overdue or one.overdue > 0)
        self._forget(one)
        self._changed.set()

    def _requeue(self, one: _Subscriber, *, slow: bool) -> None:
        """A subscription that becomes slow, or prompt again, goes to the end of the other queue."""
        if one.slow != slow:
            waiting = self._queues[one.slow].pop(one.id, None)
            one.slow = slow
            if waiting is not None:
                self._queues[slow][one.id] = one

    def _forget(self, one: _Subscriber, coming: int = 0) -> None:
        if not one.under_way and not coming and one.id not in self._queues[one.slow]:
            self._subscribers.pop(one.id, None)

    async def _change(self) -> None:
        """Waits until an attempt ends or is overdue."""
        while self._begun and self._begun[0].ended:
            self._begun.popleft()
        left = None
        if self._begun:
            left = max(0.0, self._begun[0].began + SLOW_AFTER_SECONDS - asyncio.get_running_loop().time()) + 0.001
        try:
            async with asyncio.timeout(left):
                await self._changed.wait()
        except TimeoutError:
            pass


async def end_tasks(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Gives tasks a moment to end by themselves, then cancels them."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
        for task in late:
            task.cancel()
