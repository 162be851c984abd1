"""One sweep: shares out concurrent attempts among companies, then among their subscriptions, in turns.

One company's attempts always leave a part of the places free, so a company that starts later does not wait for them.
Within a company, an attempt that lasts longer than SLOW_AFTER_SECONDS returns its permit and
continues. Its endpoint then shares a smaller number of permits with other slow ones until it answers promptly again, so
endpoints that hang take nothing from those that answer, however they behaved before. The sweep claims only deliveries
that it can send at once, so memory does not grow with the backlog. Subscriptions whose receiver has no place (hosts.py)
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
from typing import Any, NamedTuple

import structlog

from chassis.db.database import Database
from chassis.refusals import Unavailable
from svc_webhooks.dispatch.attempts import SLOW_AFTER_SECONDS, Attempts
from svc_webhooks.dispatch.hosts import Place
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.sender import Claimed
from svc_webhooks.http_client.client import DEADLINE_SECONDS
from svc_webhooks.http_client.shares import Shares, total_where_one_party_gets
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.rules.subscriptions import HEALTHY

# For a company that is alone; all companies together may use a third more.
PERMITS_MAX = 512
SLOW_PERMITS_MAX = 256
UNDER_WAY_MAX = 1024  # includes attempts that returned their permit and continue
OF_A_SUBSCRIPTION_MAX = 16
OF_A_SUBSCRIPTION_MIN = 2
LISTED_AT_ONCE = 1000
CLAIM_PAUSE_SECONDS = 0.02  # a claim costs 1 ms and 20 µs a row, so one claim replaces all attempts that end meanwhile
STOP_SECONDS = 3.0
# How long a sweep goes on when all that is left waits for receivers that have never answered.
NEW_SECONDS_MAX = DEADLINE_SECONDS + 5.0
LOOK_FOR_PLACES_SECONDS = 0.25

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Counts:
    """The counts of a sweep. Those of `failed` that used up the ladder are `parked`. Deliveries that are due and were
    not attempted, because their receiver had no place, are `waiting_for_host`."""

    attempted: int = 0
    succeeded: int = 0
    failed: int = 0
    parked: int = 0
    waiting_for_host: int = 0


@dataclass(slots=True, eq=False)
class _Subscriber:
    """A subscription in a sweep. Its `host` is a `HttpClient.name_of`. It is `slow` if its attempts last longer than
    SLOW_AFTER_SECONDS, as far as is known. It `waits_for` the receiver that had no place."""

    id: int
    company_id: int
    host: str
    slow: bool
    under_way: int = 0
    overdue: int = 0
    waits_for: str = ""


@dataclass(slots=True, eq=False)
class _Permit:
    """An attempt's permit, `slow` if it is one of the slow subscriptions' permits, and `overdue` if it is in use for
    longer than SLOW_AFTER_SECONDS."""

    subscriber: _Subscriber
    place: Place
    began: float
    slow: bool
    overdue: bool = False
    ended: bool = False

    @property
    def is_held(self) -> bool:
        """A prompt subscription's permit is free once it is overdue, a slow one's when its attempt ends."""
        return not self.ended and (self.slow or not self.overdue)


class _TakenPlaces(NamedTuple):
    """Places for deliveries of one subscription. They have the permits of slow subscriptions if `slow`."""

    slow: bool
    places: list[Place]


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
        # Subscriptions that have more due deliveries, by the receiver that had no place.
        self._aside: dict[str, _OfCompanies] = {}
        permits = (PERMITS_MAX, SLOW_PERMITS_MAX)
        self._permits = tuple(Shares(total_where_one_party_gets(many)) for many in permits)
        self._places = Shares(total_where_one_party_gets(UNDER_WAY_MAX))
        self._begun: deque[_Permit] = deque()
        self._under_way: dict[asyncio.Task[bool], _Permit] = {}
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
            if taken := self._take_places():
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
        """The subscriptions with due deliveries that wait for a place at their receiver."""
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
        """Stops claiming, and gives running attempts a moment to be recorded; after that their leases run out."""
        self._stopped = True
        self._changed.set()
        await end_tasks(self._under_way)

    def _only_new_receivers_left(self) -> bool:
        """Whether all that is left is at receivers that have never answered, or waits for their places."""
        return (
            not any(self._queues)
            and all(map(self._hosts.is_new, self._aside))
            and all(permit.place.is_at_new_receiver for permit in self._under_way.values())
        )

    def _let_in(self) -> None:
        """Queues subscriptions whose receiver has places again, as many as it has."""
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

    def _take_places(self) -> dict[int, _TakenPlaces]:
        """The deliveries of each subscription that can be sent at once, by their places. Companies take turns, and so
        do a company's subscriptions. They go to their queue's end."""
        taken: dict[int, _TakenPlaces] = {}
        if self._stopped:
            return taken
        for slow, permits in ((False, PERMITS_MAX), (True, SLOW_PERMITS_MAX)):
            queue = self._queues[slow]
            turns = deque(
                (company_id, iter(list(of_company.values())), len(of_company))
                for company_id, of_company in queue.items()
            )
            share_of_company = permits // max(1, len(turns))
            while turns and self._places.held < self._places.places:
                company_id, subscribers, many = turns.popleft()
                share = min(OF_A_SUBSCRIPTION_MAX, max(OF_A_SUBSCRIPTION_MIN, share_of_company // many))
                if self._take(company_id, subscribers, share, slow=slow, taken=taken):
                    turns.append((company_id, subscribers, many))
        return taken

    def _take(
        self,
        company_id: int,
        subscribers: Iterator[_Subscriber],
        share: int,
        *,
        slow: bool,
        taken: dict[int, _TakenPlaces],
    ) -> bool:
        """Takes places for the company's next subscription. False if the company gets no more."""
        room = min(self._places.room(company_id), self._permits[slow].room(company_id))
        if room <= 0:
            return False
        for subscriber in subscribers:
            rows = min(share - subscriber.under_way, room)
            if rows <= 0:
                continue
            places = self._hosts.places(subscriber.host, company_id, rows)
            if isinstance(places, str):
                self._set_aside(subscriber, places)
                continue
            taken[subscriber.id] = _TakenPlaces(slow, places)
            self._places.take(company_id, len(places))
            self._permits[slow].take(company_id, len(places))
            self._queues[slow].move_to_end(company_id)
            self._queues[slow][company_id].move_to_end(subscriber.id)
            return True
        return False

    async def _claim(self, taken: dict[int, _TakenPlaces]) -> None:
        """Claims deliveries and sends them at once: see `Sender.attempt`."""
        claimed: list[Claimed] = []
        try:
            rows = {sub_id: len(places) for sub_id, (_, places) in taken.items()}
            claimed = await self._attempts.claim_due(rows, self.now)
        except Exception as fault:
            self._fault, self._stopped = fault, True  # raised when the running attempts have ended
        counts = Counter(attempt.delivery.subscription_id for attempt in claimed)
        began = asyncio.get_running_loop().time()
        permits: dict[int, list[_Permit]] = {}
        for sub_id, (slow, places) in taken.items():
            subscriber = self._subscribers[sub_id]
            used, unused = places[: counts[sub_id]], places[counts[sub_id] :]
            subscriber.under_way += len(used)
            permits[sub_id] = [_Permit(subscriber, place, began, slow) for place in used]
            if unused:
                self._places.give_back(subscriber.company_id, len(unused))
                self._permits[slow].give_back(subscriber.company_id, len(unused))
                for place in unused:
                    place.end()
                _drop(self._queues[subscriber.slow], subscriber)
                self._forget(subscriber)
        for attempt in claimed:
            permit = permits[attempt.delivery.subscription_id].pop()
            self._begun.append(permit)
            task = asyncio.create_task(self._deliver(attempt, permit.place))
            self._under_way[task] = permit
            task.add_done_callback(functools.partial(self._end, permit))

    async def _deliver(self, claimed: Claimed, place: Place) -> bool:
        """True if the delivery waits for its receiver."""
        try:
            attempt = await self._attempts.make(claimed, self.now, place, since=self.since)
            if attempt is None:
                return bool(place.refused_by)
            self.counts.attempted += 1
            self.counts.succeeded += attempt.state == rules.SUCCEEDED
            self.counts.failed += bool(attempt.error)
            self.counts.parked += attempt.state == rules.PARKED
        except Unavailable as fault:
            self._fault = fault
        except Exception:
            # Only this attempt fails: the others continue, and it is repeated when its lease has run out.
            log.exception("attempt_failed", subscription_id=claimed.delivery.subscription_id)
        return False

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
            if not permit.is_held:
                self._permits[permit.slow].give_back(permit.subscriber.company_id)
            permit.place.give_back()
            self._requeue(permit.subscriber, slow=True)

    def _end(self, permit: _Permit, attempt: asyncio.Task[bool]) -> None:
        del self._under_way[attempt]
        subscriber = permit.subscriber
        self._places.give_back(subscriber.company_id)
        if permit.is_held:
            self._permits[permit.slow].give_back(subscriber.company_id)
        permit.ended = True
        subscriber.under_way -= 1
        subscriber.overdue -= permit.overdue
        self._requeue(subscriber, slow=permit.overdue or subscriber.overdue > 0)
        if not attempt.cancelled() and attempt.result() and not subscriber.waits_for:
            self._set_aside(subscriber, permit.place.refused_by[0])
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
        """Waits until an attempt ends or is overdue, or a receiver may have places again."""
        while self._begun and self._begun[0].ended:
            self._begun.popleft()
        seconds = None
        if self._begun:
            seconds = max(0.0, self._begun[0].began + SLOW_AFTER_SECONDS - asyncio.get_running_loop().time()) + 0.001
        if self._aside:  # places come free in other sweeps too, and with time
            seconds = min(seconds or LOOK_FOR_PLACES_SECONDS, LOOK_FOR_PLACES_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass


async def end_tasks(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Gives tasks a moment to end by themselves, then cancels them."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
        for task in late:
            task.cancel()
