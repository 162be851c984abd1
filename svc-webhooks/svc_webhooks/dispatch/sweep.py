"""One sweep: shares out concurrent attempts among companies, then among their subscriptions, in turns.

One company's attempts always leave a part of the capacity free, so a company that starts later does not wait for them.
Within a company, an attempt that lasts longer than SLOW_AFTER_SECONDS no longer counts as prompt and
continues. Its endpoint then shares a smaller capacity with other slow ones until it answers promptly again, so
endpoints that hang take nothing from those that answer, however they behaved before. The sweep claims only deliveries
that it can send at once, so memory does not grow with the backlog. Subscriptions whose receiver has no room (hosts.py)
wait aside until it has.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from chassis.db.database import Database
from chassis.refusals import Unavailable
from svc_webhooks.dispatch.attempts import SLOW_AFTER_SECONDS, Attempts
from svc_webhooks.dispatch.capacity import Capacity, Running
from svc_webhooks.dispatch.hosts import Admission
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.sender import Claimed
from svc_webhooks.dispatch.subscribers import Subscriber, Subscribers
from svc_webhooks.http_client.client import DEADLINE_SECONDS
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.rules.subscriptions import HEALTHY

# For a company that is alone; all companies together may use a third more.
PROMPT_ATTEMPTS_MAX = 512
SLOW_ATTEMPTS_MAX = 256
UNDER_WAY_MAX = 1024  # includes overdue attempts, which continue
OF_A_SUBSCRIPTION_MAX = 16
OF_A_SUBSCRIPTION_MIN = 2
LISTED_AT_ONCE = 1000
CLAIM_PAUSE_SECONDS = 0.02  # a claim costs 1 ms and 20 µs a row, so one claim replaces all attempts that end meanwhile
STOP_SECONDS = 3.0
# How long a sweep goes on when all that is left waits for receivers that have never answered.
NEW_SECONDS_MAX = DEADLINE_SECONDS + 5.0
LOOK_FOR_ROOM_SECONDS = 0.25
HUNG_SECONDS = 1.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Counts:
    """The counts of a sweep. Those of `failed` that used up the ladder are `parked`. Deliveries that are due and were
    not attempted, because their receiver had no room, are `waiting_for_host`."""

    attempted: int = 0
    succeeded: int = 0
    failed: int = 0
    parked: int = 0
    waiting_for_host: int = 0


class _Admitted(NamedTuple):
    """Admissions for deliveries of one subscription. They count among those of slow subscriptions if `slow`."""

    slow: bool
    admissions: list[Admission]


class Sweep:
    """A sweep as of `now`: of all live companies, or of one sandbox.

    No attempt of any process as of that `now` began before `since`, which is `now` by default, as for a slot. In a
    sandbox, receivers that are `hung` get HUNG_SECONDS, and all their deliveries at once; those that hang become so.
    """

    def __init__(
        self,
        database: Database,
        attempts: Attempts,
        now: datetime.datetime,
        since: datetime.datetime | None = None,
        sandbox_id: int | None = None,
        hung: set[str] | None = None,
    ) -> None:
        self.now = now
        self.since = since or now
        self.sandbox_id = sandbox_id
        self.counts = Counts()
        self._hung = hung
        self._database = database
        self._attempts = attempts
        self._hosts = attempts.hosts
        self._subscribers = Subscribers(attempts.hosts)
        self._capacity = Capacity(PROMPT_ATTEMPTS_MAX, SLOW_ATTEMPTS_MAX, UNDER_WAY_MAX)
        self._under_way: dict[asyncio.Task[bool], Running] = {}
        self._changed = asyncio.Event()
        self._stopped = False
        self._fault: Exception | None = None

    async def run(self) -> Counts:
        """Attempts due deliveries, but those that wait for their receiver: see `aside`. Raises Unavailable if the
        database stays away for longer than a moment."""
        await self.look()
        return await self.go_on()

    async def go_on(self) -> Counts:
        """`run` with the subscriptions that are known."""
        clock = asyncio.get_running_loop().time
        since = None
        while True:
            self._changed.clear()
            self._release_overdue()
            self._subscribers.let_in()
            if taken := self._admit():
                await self._claim(taken)
                await asyncio.sleep(CLAIM_PAUSE_SECONDS)
                continue
            if not self._subscribers.full_receivers or not self._only_new_receivers_left():
                since = None
            else:
                since = since or clock()
                if not self._under_way or clock() - since > NEW_SECONDS_MAX:
                    break
            if not self._under_way and (self._stopped or not self._subscribers.full_receivers):
                break
            await self.change()
        if self._fault is not None:
            raise self._fault
        return self.counts

    @property
    def aside(self) -> list[int]:
        """The subscriptions with due deliveries that wait for room at their receiver."""
        return [] if self._stopped else self._subscribers.aside

    async def look(self) -> None:
        """Queues every subscription with a due delivery."""
        after_id = 0
        while not self._stopped:
            rows = await self.due(after_id, LISTED_AT_ONCE)
            hosts = [self._attempts.name_of(row.destination_url) for row in rows]
            await self._hosts.learn(hosts)
            for row, host in zip(rows, hosts, strict=True):
                self._subscribers.add(row.id, row.company_id, host, slow=row.health != HEALTHY)
            self._changed.set()
            if len(rows) < LISTED_AT_ONCE:
                break
            after_id = rows[-1].id

    async def due(self, after_id: int, rows: int) -> list[queries.DueSubscription]:
        """The next subscriptions with a due delivery, claimed or not. Raises DatabaseUnavailable."""
        return await queries.subscriptions_due(self._database, self.now, after_id, rows, self.sandbox_id)

    def retire(self) -> None:
        """Another sweep attempts what this one has not begun."""
        self._stopped = True
        self._changed.set()

    async def stop(self) -> None:
        """Stops claiming, and gives running attempts a moment to be recorded; after that their claims run out."""
        self._stopped = True
        self._changed.set()
        await end_tasks(self._under_way)

    def _only_new_receivers_left(self) -> bool:
        """Whether all that is left is at receivers that have never answered, or waits for room there."""
        return (
            not self._subscribers.are_queued
            and all(map(self._hosts.is_new, self._subscribers.full_receivers))
            and all(running.admission.is_at_new_receiver for running in self._under_way.values())
        )

    def _admit(self) -> dict[int, _Admitted]:
        """The deliveries of each subscription that can be sent at once, by their admissions. Companies take turns, and
        so do a company's subscriptions. They go to their queue's end."""
        taken: dict[int, _Admitted] = {}
        if self._stopped:
            return taken
        for slow, attempts_max in ((False, PROMPT_ATTEMPTS_MAX), (True, SLOW_ATTEMPTS_MAX)):
            turns = self._subscribers.turns(slow=slow)
            share_of_company = attempts_max // max(1, len(turns))
            while turns and not self._capacity.is_full:
                company_id, subscribers, many = turns.popleft()
                share = min(OF_A_SUBSCRIPTION_MAX, max(OF_A_SUBSCRIPTION_MIN, share_of_company // many))
                if admitted := self._admit_next(company_id, subscribers, share, slow=slow):
                    sub_id, admissions = admitted
                    taken[sub_id] = _Admitted(slow, admissions)
                    turns.append((company_id, subscribers, many))
        return taken

    def _admit_next(
        self, company_id: int, subscribers: Iterator[Subscriber], share: int, *, slow: bool
    ) -> tuple[int, list[Admission]] | None:
        """Admits deliveries of the company's next subscription. None if the company gets no more."""
        room = self._capacity.room(company_id, slow=slow)
        if room <= 0:
            return None
        for subscriber in subscribers:
            is_hung = self._hung is not None and subscriber.host in self._hung
            rows = min((SLOW_ATTEMPTS_MAX if is_hung else share) - subscriber.under_way, room)
            if rows <= 0:
                continue
            admissions = self._hosts.admissions(subscriber.host, company_id, rows)
            if isinstance(admissions, str):
                self._subscribers.set_aside(subscriber, admissions)
                continue
            self._capacity.take(company_id, len(admissions), slow=slow)
            self._subscribers.go_last(subscriber)
            return subscriber.id, admissions
        return None

    async def _claim(self, taken: dict[int, _Admitted]) -> None:
        """Claims deliveries and sends them at once: see `Sender.attempt`."""
        claimed: list[Claimed] = []
        try:
            rows = {sub_id: len(admissions) for sub_id, (_, admissions) in taken.items()}
            claimed = await self._attempts.claim_due(rows, self.now)
        except Exception as fault:
            self._fault, self._stopped = fault, True  # raised when the running attempts have ended
        counts = Counter(attempt.delivery.subscription_id for attempt in claimed)
        began = asyncio.get_running_loop().time()
        running_by_id: dict[int, list[Running]] = {}
        for sub_id, (slow, admissions) in taken.items():
            subscriber = self._subscribers[sub_id]
            used, unused = admissions[: counts[sub_id]], admissions[counts[sub_id] :]
            subscriber.under_way += len(used)
            running_by_id[sub_id] = [Running(subscriber, admission, began, slow) for admission in used]
            if unused:
                self._capacity.give_back(subscriber.company_id, len(unused), slow=slow)
                for admission in unused:
                    admission.end()
                self._subscribers.take_out(subscriber)
        for attempt in claimed:
            running = running_by_id[attempt.delivery.subscription_id].pop()
            self._capacity.begin(running)
            task = asyncio.create_task(self._deliver(attempt, running.admission))
            self._under_way[task] = running
            task.add_done_callback(functools.partial(self._end, running))

    async def _deliver(self, claimed: Claimed, admission: Admission) -> bool:
        """True if the delivery waits for its receiver."""
        host = self._attempts.name_of(claimed.delivery.destination_url)
        if self._hung is not None and host in self._hung:
            admission.seconds_max = HUNG_SECONDS
        try:
            attempt = await self._attempts.make(claimed, self.now, admission, since=self.since)
            if attempt is None:
                return bool(admission.refused_by)
            if self._hung is not None and attempt.outcome.hung:
                self._hung.add(host)
            self.counts.attempted += 1
            self.counts.succeeded += attempt.after.state == rules.SUCCEEDED
            self.counts.failed += bool(attempt.outcome.error)
            self.counts.parked += attempt.after.state == rules.PARKED
        except Unavailable as fault:
            self._fault = fault
        except Exception:
            # Only this attempt fails: the others continue, and it is repeated when its claim has run out.
            log.exception("attempt_failed", subscription_id=claimed.delivery.subscription_id)
        return False

    def _release_overdue(self) -> None:
        """Marks attempts that last longer than SLOW_AFTER_SECONDS as overdue, which frees prompt subscriptions'
        capacity."""
        for running in self._capacity.become_overdue(SLOW_AFTER_SECONDS):
            running.subscriber.overdue += 1
            running.admission.give_back()
            self._subscribers.requeue(running.subscriber, slow=True)

    def _end(self, running: Running, attempt: asyncio.Task[bool]) -> None:
        del self._under_way[attempt]
        subscriber = running.subscriber
        self._capacity.end(running)
        subscriber.under_way -= 1
        subscriber.overdue -= running.overdue
        self._subscribers.requeue(subscriber, slow=running.overdue or subscriber.overdue > 0)
        if not attempt.cancelled() and attempt.result() and not subscriber.waits_for:
            self._subscribers.set_aside(subscriber, running.admission.refused_by[0])
        self._subscribers.forget(subscriber)
        self._changed.set()

    async def change(self) -> None:
        """Waits until an attempt ends or is overdue, or a receiver may have room again."""
        seconds = self._capacity.next_overdue(SLOW_AFTER_SECONDS)
        if self._subscribers.full_receivers:  # room comes free in other sweeps too, and with time
            seconds = min(seconds or LOOK_FOR_ROOM_SECONDS, LOOK_FOR_ROOM_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass


async def end_tasks(tasks: Collection[asyncio.Task[object]]) -> None:
    """Gives tasks a moment to end by themselves, then cancels them."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
        for task in late:
            task.cancel()
