"""Sweeps: every delivery that is due as of an instant is attempted once (spec 6.3).

A sweep's `now` is its slot, or the operator's instant; it decides what is due and the next due time. Leases
and fences use the database's clock, signatures and recorded times the real one. Rows are claimed a few at a
time, subscription by subscription in turns, so that memory does not grow with the backlog and one endpoint
that hangs takes a few turns and nobody else's place.
"""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

import structlog
from asyncpg import Record

from chassis.consumer import Consumer
from chassis.database import Database
from chassis.instants import slot_of
from chassis.killpoints import killed_here
from chassis.refusals import Unavailable
from svc_webhooks import queries_sweep as queries
from svc_webhooks import rules
from svc_webhooks.egress import DEADLINE_SECONDS
from svc_webhooks.recorder import Recorder
from svc_webhooks.sender import Sender

CATCH_UP_SECONDS = 10.0
LEASE_SECONDS = int(DEADLINE_SECONDS) + 5  # the whole attempt, and time to record it while PostgreSQL restarts
TURNS_MAX = 32
SLOW_TURNS_MAX = 16  # of them for endpoints that fail or are slow
ROWS_OF_A_TURN = 16  # a subscription's requests under way
SLOW_TURN_SECONDS = 2.0
LISTED_AT_ONCE = 1000
CLAIMS_AT_ONCE = 4  # connections that turns may hold, of the pool's ten
STOP_SECONDS = 3.0
POLL_SECONDS = 0.2
RETRY_SECONDS = 5.0

Clock = Callable[[], datetime.datetime]

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class Counts:
    """What a sweep did. parked: those of `failed` whose ladder is used up."""

    attempted: int = 0
    succeeded: int = 0
    failed: int = 0
    parked: int = 0


class Sweeper:
    """Sweeps at every slot, and when an operator asks."""

    def __init__(
        self,
        database: Database,
        consumer: Consumer,
        sender: Sender,
        *,
        ladder: rules.Ladder,
        period_seconds: int,
        clock: Clock,
    ) -> None:
        self.database = database
        self.sender = sender
        self.recorder = Recorder(database)
        self.ladder = ladder
        self.period_seconds = period_seconds
        self.claiming = asyncio.Semaphore(CLAIMS_AT_ONCE)
        self._consumer = consumer
        self._clock = clock
        self._sweeps: dict[asyncio.Task[Counts], Sweep] = {}
        self._retries: set[asyncio.Task[queries.Attempt | None]] = set()
        self._of_slots: Sweep | None = None

    async def run(self) -> None:
        """Sweeps every slot, beginning with the last one missed, until cancelled."""
        slot = slot_of(self._clock(), self.period_seconds)
        try:
            while True:
                try:
                    await self._catch_up()
                except Unavailable as error:
                    log.warning("sweep_without_catching_up", reason=str(error))
                task = await self._at(slot)
                if await self._passed(slot + datetime.timedelta(seconds=self.period_seconds), task):
                    slot = slot_of(self._clock(), self.period_seconds)
                else:
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            await self.stop()

    async def sweep(self, now: datetime.datetime) -> tuple[int, Counts]:
        """Stores what was committed before the call, attempts what is due as of `now`, and returns both counts.

        Raises Unavailable where a producer or the database does not answer within ten seconds.
        """
        stored = await self._catch_up()
        # On its own: a caller that goes away must not cut attempts off between sending and recording.
        task = self._begin(Sweep(self, now), patient=True)
        return stored, await asyncio.shield(task)

    async def attempt_now(self, event_id: uuid.UUID, subscription_id: int) -> bool:
        """Attempts a waiting delivery at once, due or not, on record as an administrator's retry.

        Returns when the attempt is recorded; False where there was none: the delivery does not wait, its subscription
        is paused or gone, its company inactive, or another dispatcher has it just now. Raises DatabaseUnavailable.
        """
        row = await queries.claimed_delivery(self.database, event_id, subscription_id, LEASE_SECONDS)
        if row is None:
            return False
        task = asyncio.create_task(self.attempted(row, self._clock(), rules.BY_RETRY))
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)
        return await asyncio.shield(task) is not None

    async def attempted(self, row: Record, now: datetime.datetime, cause: str) -> queries.Attempt | None:
        """Sends a claimed delivery and records it; None where it is gone or another dispatcher's by now."""
        killed_here("delivery-claimed")
        attempt = await self.sender.attempt(row, now, self.ladder, self.period_seconds, cause)
        return attempt if await self.recorder.record(attempt, known_health=row["health"]) else None

    async def stop(self) -> None:
        ending = [sweep.stop() for sweep in self._sweeps.values()]
        if self._retries:
            ending.append(_ended(self._retries))
        await asyncio.gather(*ending)
        await self.recorder.finish()

    async def _at(self, slot: datetime.datetime) -> asyncio.Task[Counts]:
        """The sweep of `slot`. One still under way, for some endpoint that hangs, becomes this slot's."""
        sweep = self._of_slots
        task = next((task for task, one in self._sweeps.items() if one is sweep), None)
        if sweep is not None and task is not None:
            sweep.now = slot
            await sweep.look()
            if not task.done():
                return task
        self._of_slots = Sweep(self, slot)
        return self._begin(self._of_slots, patient=False)

    async def _passed(self, until: datetime.datetime, task: asyncio.Task[Counts]) -> bool:
        """Waits for an instant; False at once where the sweep fails before."""
        while (left := (until - self._clock()).total_seconds()) > 0:
            # In short steps, for clocks are set and machines sleep.
            if not task.done():
                await asyncio.wait({task}, timeout=min(left, 60))
            elif task.cancelled() or task.exception() is not None:
                return False
            else:
                await asyncio.sleep(min(left, 60))
        return True

    def _begin(self, sweep: Sweep, *, patient: bool) -> asyncio.Task[Counts]:
        task = asyncio.create_task(self._through(sweep, patient=patient))
        self._sweeps[task] = sweep
        task.add_done_callback(self._sweep_ended)
        return task

    def _sweep_ended(self, task: asyncio.Task[Counts]) -> None:
        sweep = self._sweeps.pop(task)
        if task.cancelled():
            return
        if error := task.exception():
            log.warning("sweep_failed", now=sweep.now.isoformat(), reason=str(error) or type(error).__name__)
        else:
            log.info("sweep_done", now=sweep.now.isoformat(), **asdict(sweep.counts))

    async def _through(self, sweep: Sweep, *, patient: bool) -> Counts:
        """patient: also waits for what another dispatcher holds, or died holding, as long as a lease lasts."""
        counts = await sweep.run()
        give_up = asyncio.get_running_loop().time() + LEASE_SECONDS + RETRY_SECONDS
        while patient and asyncio.get_running_loop().time() < give_up:
            if not await queries.subscriptions_due(self.database, sweep.now, 0, 1):
                break
            await asyncio.sleep(POLL_SECONDS)
            await sweep.run()
        return counts

    async def _catch_up(self) -> int:
        """Raises Unavailable where the producers can't be asked within the limit."""
        reason = "no answer in time"
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                while True:
                    try:
                        return await self._consumer.catch_up()
                    except Unavailable as error:
                        reason = str(error)
                        await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise Unavailable(f"events could not be taken in within {CATCH_UP_SECONDS:.0f} s: {reason}") from None


async def _ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Gives tasks a moment to end by themselves, then ends them."""
    _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
    for task in late:
        task.cancel()


class Sweep:
    """One sweep. Subscriptions take turns; a turn claims a few rows, sends them and records them."""

    def __init__(self, sweeper: Sweeper, now: datetime.datetime) -> None:
        self.now = now
        self.counts = Counts()
        self._of = sweeper
        self._listed: set[int] = set()  # waiting for a turn or taking one
        self._prompt: deque[int] = deque()
        self._slow: deque[int] = deque()
        self._turns: set[asyncio.Task[None]] = set()
        self._slow_turns = 0
        self._stopped = False
        self._fault: BaseException | None = None

    async def run(self) -> Counts:
        """Attempts what is due. Raises Unavailable where the database goes away for longer than a moment."""
        await self.look()
        while self._turns:
            await asyncio.wait(self._turns)
        if self._fault is not None:
            raise self._fault
        return self.counts

    async def look(self) -> None:
        """Gives every subscription with something due its place in the line."""
        after_id = 0
        while not self._stopped:
            rows = await queries.subscriptions_due(self._of.database, self.now, after_id, LISTED_AT_ONCE)
            for row in rows:
                if row["id"] not in self._listed:
                    self._listed.add(row["id"])
                    line = self._prompt if row["health"] == rules.HEALTHY else self._slow
                    line.append(row["id"])
            self._fill()
            if len(rows) < LISTED_AT_ONCE:
                break
            after_id = rows[-1]["id"]

    async def stop(self) -> None:
        """No more turns; those under way get a moment to record what they sent, then their leases run out."""
        self._stopped = True
        if self._turns:
            await _ended(self._turns)

    def _fill(self) -> None:
        while not self._stopped and len(self._turns) < TURNS_MAX:
            if self._prompt:
                slow, subscription_id = False, self._prompt.popleft()
            elif self._slow and self._slow_turns < SLOW_TURNS_MAX:
                slow, subscription_id = True, self._slow.popleft()
            else:
                return
            self._slow_turns += slow
            turn = asyncio.create_task(self._turn(subscription_id, slow))
            self._turns.add(turn)
            turn.add_done_callback(self._turn_ended)

    def _turn_ended(self, turn: asyncio.Task[None]) -> None:
        self._turns.discard(turn)
        self._fill()

    async def _turn(self, subscription_id: int, slow: bool) -> None:
        began = asyncio.get_running_loop().time()
        again = False
        try:
            async with self._of.claiming:
                rows = await queries.claimed_deliveries(
                    self._of.database, subscription_id, self.now, ROWS_OF_A_TURN, LEASE_SECONDS
                )
            await asyncio.gather(*(self._deliver(row) for row in rows))
            again = len(rows) == ROWS_OF_A_TURN
        except Exception as fault:
            log.warning("turn_failed", subscription_id=subscription_id, reason=str(fault) or type(fault).__name__)
            self._fault = fault
        finally:
            self._slow_turns -= slow
            if again:
                lasted = asyncio.get_running_loop().time() - began
                (self._slow if lasted > SLOW_TURN_SECONDS else self._prompt).append(subscription_id)
            else:
                self._listed.discard(subscription_id)

    async def _deliver(self, row: Record) -> None:
        attempt = await self._of.attempted(row, self.now, rules.BY_SWEEP)
        if attempt is None:
            return
        self.counts.attempted += 1
        self.counts.succeeded += attempt.state == rules.SUCCEEDED
        self.counts.failed += bool(attempt.error)
        self.counts.parked += attempt.state == rules.PARKED
