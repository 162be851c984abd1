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
from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import structlog

from chassis.db.database import Database
from chassis.refusals import Unavailable
from svc_webhooks.dispatch.attempts import SLOW_AFTER_SECONDS, Attempts
from svc_webhooks.dispatch.hosts import Admission
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.sender import Claimed
from svc_webhooks.http_client.client import DEADLINE_SECONDS
from svc_webhooks.http_client.shares import Shares, total_where_one_party_gets
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


@dataclass(slots=True, eq=False)
class _Subscriber:
    """A subscription in a sweep. Its `host` is a `HttpClient.name_of`. It is `slow` if its attempts last longer than
    SLOW_AFTER_SECONDS, as far as is known. It `waits_for` the receiver that had no room."""

    id: int
    company_id: int
    host: str
    slow: bool
    under_way: int = 0
    overdue: int = 0
    waits_for: str = ""


@dataclass(slots=True, eq=False)
class _Running:
    """A running attempt. It is `slow` if it counts among those of slow subscriptions, and `overdue` if it lasts longer
    than SLOW_AFTER_SECONDS."""

    subscriber: _Subscriber
    admission: Admission
    began: float
    slow: bool
    overdue: bool = False
    ended: bool = False

    @property
    def counts(self) -> bool:
        """A prompt subscription's attempt counts until it is overdue, a slow one's until it ends."""
        return not self.ended and (self.slow or not self.overdue)


class _Admitted(NamedTuple):
    """Admissions for deliveries of one subscription. They count among those of slow subscriptions if `slow`."""

    slow: bool
    admissions: list[Admission]


_OfCompanies = OrderedDict[int, OrderedDict[int, _Subscriber]]  # by company, by subscription, in their turns


def _put(queue: _OfCompanies, subscriber: _Subscriber) -> None:
    queue.setdefault(subscriber.company_id, OrderedDict())[subscriber.id] = subscriber


def _drop(queue: _OfCompanies, subscriber: _Subscriber) -> bool:
    """Whether it was there."""
    of_company = queue.get(subscriber.company_id)
    if of_company is None or of_company.pop(subscriber.id, None) is None:
        return False
    if not of_company:
        del queue[subscriber.company_id]
    return True


class Sweep:
    """A sweep as of `now`. No attempt of any process as of that `now` began before `since`, which is `now` by default,
    as for a slot."""

    def __init__(
        self, database: Database, attempts: Attempts, now: datetime.datetime, since: datetime.datetime | None = None
    ) -> None:
        self.now = now
        self.since = since or now
        self.counts = Counts()
        self._database = database
        self._attempts = attempts
        self._hosts = attempts.hosts
        self._subscribers: dict[int, _Subscriber] = {}
        # Subscriptions that may have more due deliveries: prompt ones, slow ones.
        self._queues: tuple[_OfCompanies, _OfCompanies] = (OrderedDict(), OrderedDict())
        # Subscriptions that have more due deliveries, by the receiver that had no room.
        self._aside: dict[str, _OfCompanies] = {}
        maxima = (PROMPT_ATTEMPTS_MAX, SLOW_ATTEMPTS_MAX)
        self._shares_by_speed = tuple(Shares(total_where_one_party_gets(many)) for many in maxima)
        self._shares_of_all = Shares(total_where_one_party_gets(UNDER_WAY_MAX))
        self._begun: deque[_Running] = deque()
        self._under_way: dict[asyncio.Task[bool], _Running] = {}
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
            self._let_in()
            if taken := self._admit():
                await self._claim(taken)
                await asyncio.sleep(CLAIM_PAUSE_SECONDS)
                continue
            if not self._aside or not self._only_new_receivers_left():
                since = None
            else:
                since = since or clock()
                if not self._under_way or clock() - since > NEW_SECONDS_MAX:
                    break
            if not self._under_way and (self._stopped or not self._aside):
                break
            await self.change()
        if self._fault is not None:
            raise self._fault
        return self.counts

    @property
    def aside(self) -> list[int]:
        """The subscriptions with due deliveries that wait for room at their receiver."""
        return (
            []
            if self._stopped
            else [sub_id for companies in self._aside.values() for ids in companies.values() for sub_id in ids]
        )

    async def look(self) -> None:
        """Queues every subscription with a due delivery."""
        after_id = 0
        while not self._stopped:
            rows = await queries.subscriptions_due(self._database, self.now, after_id, LISTED_AT_ONCE)
            hosts = [self._attempts.name_of(row.destination_url) for row in rows]
            await self._hosts.learn(hosts)
            for row, host in zip(rows, hosts, strict=True):
                subscriber = self._subscribers.get(row.id)
                if subscriber is None:
                    subscriber = _Subscriber(row.id, row.company_id, host, row.health != HEALTHY)
                    self._subscribers[row.id] = subscriber
                if not subscriber.waits_for:
                    _put(self._queues[subscriber.slow], subscriber)
            self._changed.set()
            if len(rows) < LISTED_AT_ONCE:
                break
            after_id = rows[-1].id

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
            not any(self._queues)
            and all(map(self._hosts.is_new, self._aside))
            and all(running.admission.is_at_new_receiver for running in self._under_way.values())
        )

    def _let_in(self) -> None:
        """Queues subscriptions whose receiver has room again, as many as fit."""
        for key, companies in list(self._aside.items()):
            for company_id, of_company in list(companies.items()):
                room = self._hosts.room(key, company_id)
                for subscriber in list(islice(of_company.values(), room)):
                    subscriber.waits_for = ""
                    _drop(companies, subscriber)
                    _put(self._queues[subscriber.slow], subscriber)
            if not companies:
                del self._aside[key]

    def _set_aside(self, subscriber: _Subscriber, key: str) -> None:
        _drop(self._queues[subscriber.slow], subscriber)
        subscriber.waits_for = key
        _put(self._aside.setdefault(key, OrderedDict()), subscriber)

    def _admit(self) -> dict[int, _Admitted]:
        """The deliveries of each subscription that can be sent at once, by their admissions. Companies take turns, and
        so do a company's subscriptions. They go to their queue's end."""
        taken: dict[int, _Admitted] = {}
        if self._stopped:
            return taken
        for slow, attempts_max in ((False, PROMPT_ATTEMPTS_MAX), (True, SLOW_ATTEMPTS_MAX)):
            queue = self._queues[slow]
            turns = deque(
                (company_id, iter(list(of_company.values())), len(of_company))
                for company_id, of_company in queue.items()
            )
            share_of_company = attempts_max // max(1, len(turns))
            while turns and self._shares_of_all.held < self._shares_of_all.capacity:
                company_id, subscribers, many = turns.popleft()
                share = min(OF_A_SUBSCRIPTION_MAX, max(OF_A_SUBSCRIPTION_MIN, share_of_company // many))
                if self._admit_next(company_id, subscribers, share, slow=slow, taken=taken):
                    turns.append((company_id, subscribers, many))
        return taken

    def _admit_next(
        self,
        company_id: int,
        subscribers: Iterator[_Subscriber],
        share: int,
        *,
        slow: bool,
        taken: dict[int, _Admitted],
    ) -> bool:
        """Admits deliveries of the company's next subscription. False if the company gets no more."""
        room = min(self._shares_of_all.room(company_id), self._shares_by_speed[slow].room(company_id))
        if room <= 0:
            return False
        for subscriber in subscribers:
            rows = min(share - subscriber.under_way, room)
            if rows <= 0:
                continue
            admissions = self._hosts.admissions(subscriber.host, company_id, rows)
            if isinstance(admissions, str):
                self._set_aside(subscriber, admissions)
                continue
            taken[subscriber.id] = _Admitted(slow, admissions)
            self._shares_of_all.take(company_id, len(admissions))
            self._shares_by_speed[slow].take(company_id, len(admissions))
            self._queues[slow].move_to_end(company_id)
            self._queues[slow][company_id].move_to_end(subscriber.id)
            return True
        return False

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
        running_by_id: dict[int, list[_Running]] = {}
        for sub_id, (slow, admissions) in taken.items():
            subscriber = self._subscribers[sub_id]
            used, unused = admissions[: counts[sub_id]], admissions[counts[sub_id] :]
            subscriber.under_way += len(used)
            running_by_id[sub_id] = [_Running(subscriber, admission, began, slow) for admission in used]
            if unused:
                self._shares_of_all.give_back(subscriber.company_id, len(unused))
                self._shares_by_speed[slow].give_back(subscriber.company_id, len(unused))
                for admission in unused:
                    admission.end()
                _drop(self._queues[subscriber.slow], subscriber)
                self._forget(subscriber)
        for attempt in claimed:
            running = running_by_id[attempt.delivery.subscription_id].pop()
            self._begun.append(running)
            task = asyncio.create_task(self._deliver(attempt, running.admission))
            self._under_way[task] = running
            task.add_done_callback(functools.partial(self._end, running))

    async def _deliver(self, claimed: Claimed, admission: Admission) -> bool:
        """True if the delivery waits for its receiver."""
        try:
            attempt = await self._attempts.make(claimed, self.now, admission, since=self.since)
            if attempt is None:
                return bool(admission.refused_by)
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
        limit = asyncio.get_running_loop().time() - SLOW_AFTER_SECONDS
        while self._begun and (self._begun[0].ended or self._begun[0].began < limit):
            running = self._begun.popleft()
            if running.ended:
                continue
            running.overdue = True
            running.subscriber.overdue += 1
            if not running.counts:
                self._shares_by_speed[running.slow].give_back(running.subscriber.company_id)
            running.admission.give_back()
            self._requeue(running.subscriber, slow=True)

    def _end(self, running: _Running, attempt: asyncio.Task[bool]) -> None:
        del self._under_way[attempt]
        subscriber = running.subscriber
        self._shares_of_all.give_back(subscriber.company_id)
        if running.counts:
            self._shares_by_speed[running.slow].give_back(subscriber.company_id)
        running.ended = True
        subscriber.under_way -= 1
        subscriber.overdue -= running.overdue
        self._requeue(subscriber, slow=running.overdue or subscriber.overdue > 0)
        if not attempt.cancelled() and attempt.result() and not subscriber.waits_for:
            self._set_aside(subscriber, running.admission.refused_by[0])
        self._forget(subscriber)
        self._changed.set()

    def _requeue(self, subscriber: _Subscriber, *, slow: bool) -> None:
        """A subscription that becomes slow, or prompt again, goes to the end of the other queue."""
        if subscriber.slow != slow:
            was_queued = _drop(self._queues[subscriber.slow], subscriber)
            subscriber.slow = slow
            if was_queued:
                _put(self._queues[slow], subscriber)

    def _forget(self, subscriber: _Subscriber) -> None:
        if (
            not subscriber.under_way
            and not subscriber.waits_for
            and subscriber.id not in self._queues[subscriber.slow].get(subscriber.company_id, ())
        ):
            self._subscribers.pop(subscriber.id, None)

    async def change(self) -> None:
        """Waits until an attempt ends or is overdue, or a receiver may have room again."""
        while self._begun and self._begun[0].ended:
            self._begun.popleft()
        seconds = None
        if self._begun:
            seconds = max(0.0, self._begun[0].began + SLOW_AFTER_SECONDS - asyncio.get_running_loop().time()) + 0.001
        if self._aside:  # room comes free in other sweeps too, and with time
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
