"""One sweep: who may have how many attempts under way, and whose turn it is.

Places are shared out evenly among the subscriptions with something due, in turns. An attempt that lasts longer than a
moment gives its place back while it goes on, and its endpoint shares a smaller number of places with others like it
until it answers promptly again: endpoints that hang take nothing from those that answer, whatever they were before.
Only what can be sent at once is claimed, so that memory does not grow with the backlog.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
from collections import Counter, OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from chassis.refusals import Unavailable
from svc_webhooks.dispatch import rules
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.sender import Claimed
from svc_webhooks.http_client.client import DEADLINE_SECONDS
from svc_webhooks.subscriptions.rules import HEALTHY

if TYPE_CHECKING:
    from svc_webhooks.dispatch.scheduler import Sweeper

LEASE_SECONDS = int(DEADLINE_SECONDS) + 5  # until it is sent, the whole attempt, and time to record it
PLACES_MAX = 512
LATE_PLACES_MAX = 256
UNDER_WAY_MAX = 1024  # with attempts that gave their place back and go on
OF_A_SUBSCRIPTION_MAX = 16
OF_A_SUBSCRIPTION_MIN = 2
MOMENT_SECONDS = 2.0
LISTED_AT_ONCE = 1000
CLAIM_PAUSE_SECONDS = 0.02  # a claim costs 1 ms and 20 µs a row: what ends meanwhile is made up for together
STOP_SECONDS = 3.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Counts:
    """What a sweep did. parked: those of `failed` whose ladder is used up."""

    attempted: int = 0
    succeeded: int = 0
    failed: int = 0
    parked: int = 0


@dataclass(slots=True, eq=False)
class _Subscriber:
    """A subscription in a sweep. late: its attempts last longer than a moment, as far as anybody knows."""

    id: int
    late: bool
    under_way: int = 0
    overdue: int = 0


@dataclass(slots=True, eq=False)
class _Place:
    """An attempt under way. late: whose places it takes one of; overdue: for longer than a moment."""

    of: _Subscriber
    began: float
    late: bool
    overdue: bool = False
    ended: bool = False

    @property
    def takes(self) -> bool:
        """A prompt one's place is the others' again after a moment; a late one's when it has ended."""
        return not self.ended and (self.late or not self.overdue)


class Sweep:
    """One sweep, as of `now`."""

    def __init__(self, sweeper: Sweeper, now: datetime.datetime) -> None:
        self.now = now
        self.counts = Counts()
        self._of = sweeper
        self._subscribers: dict[int, _Subscriber] = {}
        # Those of whom more may be due, in the order of their turns: the prompt ones, the late ones.
        self._lines: tuple[OrderedDict[int, _Subscriber], ...] = (OrderedDict(), OrderedDict())
        self._taken = [0, 0]
        self._begun: deque[_Place] = deque()
        self._attempts: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stopped = False
        self._fault: Exception | None = None

    async def run(self) -> Counts:
        """Attempts what is due. Raises Unavailable where the database goes away for longer than a moment."""
        await self.look()
        while True:
            self._changed.clear()
            self._give_back()
            if wanted := self._wanted():
                await self._claim(wanted)
                await asyncio.sleep(CLAIM_PAUSE_SECONDS)
            elif self._attempts:
                await self._change()
            else:
                break
        if self._fault is not None:
            raise self._fault
        return self.counts

    async def look(self) -> None:
        """Gives every subscription with something due its place in the line."""
        after_id = 0
        while not self._stopped:
            rows = await queries.subscriptions_due(self._of.database, self.now, after_id, LISTED_AT_ONCE)
            for row in rows:
                one = self._subscribers.get(row["id"])
                if one is None:
                    one = self._subscribers[row["id"]] = _Subscriber(row["id"], row["health"] != HEALTHY)
                self._lines[one.late][one.id] = one
            self._changed.set()
            if len(rows) < LISTED_AT_ONCE:
                break
            after_id = rows[-1]["id"]

    async def stop(self) -> None:
        """No more claims; attempts under way get a moment to be recorded, then their leases run out."""
        self._stopped = True
        self._changed.set()
        await ended(self._attempts)

    def _wanted(self) -> dict[int, int]:
        """How many deliveries of whom can be sent at once; whoever is served goes to the end of the line."""
        wanted: dict[int, int] = {}
        if self._stopped:
            return wanted
        left = UNDER_WAY_MAX - len(self._attempts)
        for late, places in ((False, PLACES_MAX), (True, LATE_PLACES_MAX)):
            line = self._lines[late]
            share = places // max(1, len(line))
            share = min(OF_A_SUBSCRIPTION_MAX, max(OF_A_SUBSCRIPTION_MIN, share))
            room = min(left, places - self._taken[late])
            for one in list(line.values()):
                if room <= 0:
                    break
                rows = min(share - one.under_way, room)
                if rows > 0:
                    wanted[one.id] = rows
                    room -= rows
                    left -= rows
                    line.move_to_end(one.id)
        return wanted

    async def _claim(self, wanted: dict[int, int]) -> None:
        """Begins what it claims at once: see `Sender.attempt`."""
        try:
            claims = await queries.claimed_deliveries(self._of.database, wanted, self.now, LEASE_SECONDS)
        except Exception as fault:
            self._fault, self._stopped = fault, True  # raised when what is under way has ended
            return
        found = Counter(row["subscription_id"] for row in claims.rows)
        for sub_id, many in wanted.items():
            if found[sub_id] < many:
                self._lines[self._subscribers[sub_id].late].pop(sub_id, None)
                self._forget(self._subscribers[sub_id], found[sub_id])
        began = asyncio.get_running_loop().time()
        for claimed in self._of.sender.opened(claims):
            one = self._subscribers[claimed.row["subscription_id"]]
            place = _Place(one, began, one.late)
            one.under_way += 1
            self._taken[place.late] += 1
            self._begun.append(place)
            task = asyncio.create_task(self._deliver(claimed))
            self._attempts.add(task)
            task.add_done_callback(functools.partial(self._end, place))

    async def _deliver(self, claimed: Claimed) -> None:
        try:
            cause = rules.cause_of_due(claimed.row["rung"], self._of.ladder)
            attempt = await self._of.attempted(claimed, self.now, cause)
            if attempt is not None:
                self.counts.attempted += 1
                self.counts.succeeded += attempt.state == rules.SUCCEEDED
                self.counts.failed += bool(attempt.error)
                self.counts.parked += attempt.state == rules.PARKED
        except Unavailable as fault:
            self._fault = fault
        except Exception:
            # This one's alone: the others go on, and it is tried again when its lease has run out.
            log.exception("attempt_failed", subscription_id=claimed.row["subscription_id"])

    def _give_back(self) -> None:
        """Takes what has been under way for longer than a moment out of the way of the others."""
        limit = asyncio.get_running_loop().time() - MOMENT_SECONDS
        while self._begun and (self._begun[0].ended or self._begun[0].began < limit):
            place = self._begun.popleft()
            if place.ended:
                continue
            place.overdue = True
            place.of.overdue += 1
            self._taken[place.late] -= not place.takes
            self._line_up(place.of, late=True)

    def _end(self, place: _Place, attempt: asyncio.Task[None]) -> None:
        self._attempts.discard(attempt)
        one = place.of
        self._taken[place.late] -= place.takes
        place.ended = True
        one.under_way -= 1
        one.overdue -= place.overdue
        self._line_up(one, late=place.overdue or one.overdue > 0)
        self._forget(one)
        self._changed.set()

    def _line_up(self, one: _Subscriber, *, late: bool) -> None:
        """One that changes from prompt to late, or back, is the last there."""
        if one.late != late:
            waiting = self._lines[one.late].pop(one.id, None)
            one.late = late
            if waiting is not None:
                self._lines[late][one.id] = one

    def _forget(self, one: _Subscriber, coming: int = 0) -> None:
        if not one.under_way and not coming and one.id not in self._lines[one.late]:
            self._subscribers.pop(one.id, None)

    async def _change(self) -> None:
        """Waits until an attempt ends, or has lasted longer than a moment."""
        while self._begun and self._begun[0].ended:
            self._begun.popleft()
        left = None
        if self._begun:
            left = max(0.0, self._begun[0].began + MOMENT_SECONDS - asyncio.get_running_loop().time()) + 0.001
        try:
            async with asyncio.timeout(left):
                await self._changed.wait()
        except TimeoutError:
            pass


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Gives tasks a moment to end by themselves, then ends them."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
        for task in late:
            task.cancel()
