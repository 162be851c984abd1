"""Sweeps attempt every delivery that is due as of an instant once (spec 6.3).

A sweep's `now` is its slot or the operator's instant. It decides which deliveries are due, and their next due time.
Claims and fences use the database's clock, signatures the real one, recorded times that of the company. sweep.py has
the rest, and sandboxes.py when sandboxes are swept.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import uuid
from dataclasses import asdict, replace

import structlog
from prometheus_client import Gauge

from chassis.db.database import Database, DatabaseUnavailable
from chassis.messaging.consumer import Consumer
from chassis.refusals import Unavailable
from chassis.runtime import traces
from chassis.schedule.clocks import Companies, CompanyClocks
from chassis.schedule.instants import Clock, slot_of
from makeready.common.v1.status_pb2 import DeliveriesBacklog
from svc_webhooks.dispatch.attempts import CLAIM_SECONDS, Attempts
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.queries.recording import Attempt
from svc_webhooks.dispatch.sender import Claimed
from svc_webhooks.dispatch.sweep import Counts, Sweep, end_tasks
from svc_webhooks.rules import deliveries as rules

CATCH_UP_SECONDS = 10.0
POLL_SECONDS = 0.2
POLL_SECONDS_MAX = 2.0  # each poll queries all subscriptions
RETRY_SECONDS = 5.0
WATCH_SECONDS = 60.0

log = structlog.stdlib.get_logger(__name__)
DUE = Gauge("makeready_webhooks_subscriptions_due", "Subscriptions with deliveries due, once a minute")
OLDEST = Gauge("makeready_webhooks_oldest_due_seconds", "How long the delivery that waits longest is due")
SWEPT = Gauge("makeready_webhooks_sweep_timestamp_seconds", "When a sweep last ended without a fault")
WAITING = Gauge("makeready_webhooks_waiting_for_host", "Deliveries that waited for their receiver when a sweep ended")


class Scheduler:
    """Sweeps live companies at every slot, and on an operator's request."""

    def __init__(
        self, database: Database, consumer: Consumer, attempts: Attempts, clocks: CompanyClocks, *, period_seconds: int
    ) -> None:
        self.database = database
        self.attempts = attempts
        self.period_seconds = period_seconds
        self.clocks = clocks
        self._consumer = consumer
        self._clock = clocks.real
        self._sweeps: dict[asyncio.Task[Counts], Sweep] = {}
        self._retries: set[asyncio.Task[Attempt | None]] = set()
        self._of_slots: Sweep | None = None
        self._rest: Sweep | None = None  # the requested sweep that goes on with what waits for receivers
        self._asked_for = asyncio.Lock()

    async def run(self) -> None:
        """Sweeps at every slot, starting with the last missed one, until cancelled."""
        slot = slot_of(self._clock(), self.period_seconds)
        try:
            while True:
                traces.begin()
                try:
                    await self._catch_up()
                except Unavailable as error:
                    log.warning("sweep_without_catching_up", reason=str(error))
                try:
                    is_over = await self._slot_is_over(slot, await self._sweep_of_slot(slot))
                except Unavailable as error:  # running sweeps continue
                    log.warning("slot_waits", slot=slot.isoformat(), reason=str(error))
                    is_over = False
                if is_over:
                    slot = slot_of(self._clock(), self.period_seconds)
                else:
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            await self.stop()

    async def sweep(self, now: datetime.datetime) -> tuple[int, Counts]:
        """Stores events committed before the call, attempts live companies' deliveries due as of `now`, and returns
        both counts.

        Deliveries whose receiver has no room are counted; they are attempted after the return, when it has. Raises
        Unavailable if a producer or the database does not answer within ten seconds.
        """
        stored = await self._catch_up()
        # Requested sweeps run one at a time, next to the slots' sweep: each has its own attempts and their memory.
        async with self._asked_for:
            # In a separate task: a caller that disconnects must not cut attempts off between sending and recording.
            settled: asyncio.Future[Counts] = asyncio.get_running_loop().create_future()
            task = self._begin(Sweep(self.database, self.attempts, now, self._clock()), settled)
            await asyncio.wait((task, settled), return_when=asyncio.FIRST_COMPLETED)
            return stored, settled.result() if settled.done() else task.result()

    async def attempt_due(self) -> None:
        """Begins to attempt what is due in live companies for the present slot, as replays are. What becomes due after
        it waits for the next slot unchanged. Raises DatabaseUnavailable."""
        await self._sweep_of_slot(self.slot_of(self._clock))

    def slot_of(self, clock: Clock) -> datetime.datetime:
        """The present slot of a clock."""
        return slot_of(clock(), self.period_seconds)

    async def sweep_sandbox(
        self, sandbox: Companies, seconds_max: float | None = None, hung: set[str] | None = None
    ) -> Counts:
        """Attempts what is due for the present slot of a sandbox's clock, and returns the counts once no process
        attempts any of it. What is left, for want of room or after `seconds_max`, waits for the next slot. For `hung`
        see `Sweep`. Raises Unavailable."""
        assert sandbox.sandbox_id is not None
        slot = self.slot_of(sandbox.clock)
        sweep = Sweep(self.database, self.attempts, slot, sandbox_id=sandbox.sandbox_id, hung=hung)
        # In a separate task: see `sweep`.
        task = self._begin(sweep)
        timer = None if seconds_max is None else asyncio.get_running_loop().call_later(seconds_max, sweep.retire)
        try:
            await asyncio.wait((task,))
        finally:
            if timer is not None:
                timer.cancel()
        counts = task.result()
        if await sweep.due(0, 1):
            await queries.deliveries_put_off(self.database, sandbox.sandbox_id, slot, rules.due_after(slot))
        return counts

    async def live_ones_are_swept(self, seconds_max: float) -> None:
        """Waits until the slot's sweep of live companies has ended, but so long at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds_max):
                while self._of_slots is None:  # noqa: ASYNC110 - at the process's start alone
                    await asyncio.sleep(POLL_SECONDS)
                if tasks := [task for task, sweep in self._sweeps.items() if sweep is self._of_slots]:
                    await asyncio.wait(tasks)

    async def attempt_now(
        self, event_id: uuid.UUID, subscription_id: int, cause: str = rules.BY_RETRY, actor: str = ""
    ) -> bool:
        """Attempts a waiting delivery at once, due or not, and records cause and actor.

        Returns once the attempt is recorded. False if there was no attempt: the delivery does not wait, its
        subscription is paused or deleted, its company is inactive, its receiver has no room, or another dispatcher has
        a claim on it. Raises DatabaseUnavailable.
        """
        claimed = await self.attempts.claim_one(event_id, subscription_id)
        return await self._attempted(claimed, cause, actor)

    async def send_again(
        self, event_id: uuid.UUID, subscription_id: int, state: str, attempts: int, cause: str, actor: str
    ) -> bool:
        """As `attempt_now`, for a delivery that has succeeded or for a test. state, attempts: as the request found
        them, so that one request sends it once."""
        claimed = await self.attempts.claim_settled(event_id, subscription_id, state, attempts)
        return await self._attempted(claimed, cause, actor)

    async def _attempted(self, claimed: Claimed | None, cause: str, actor: str) -> bool:
        if claimed is None:
            return False
        task = asyncio.create_task(self.attempts.make_now(claimed, self._clock(), cause, actor))
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)
        return await asyncio.shield(task) is not None

    async def watch(self) -> None:
        """Sets the metrics of due deliveries every WATCH_SECONDS, until cancelled."""
        while True:
            with contextlib.suppress(DatabaseUnavailable):
                many, since = await queries.backlog(self.database, self._clock())
                DUE.set(many)
                OLDEST.set((self._clock() - since).total_seconds() if since else 0)
            await asyncio.sleep(WATCH_SECONDS)

    async def counts(self) -> DeliveriesBacklog:
        """The deliveries that have not succeeded yet, for `makeready status`."""
        return DeliveriesBacklog(**await queries.counts(self.database, self._clock()))

    async def stop(self) -> None:
        await asyncio.gather(end_tasks(self._retries), *(sweep.stop() for sweep in self._sweeps.values()))
        await self.attempts.finish()

    async def _sweep_of_slot(self, slot: datetime.datetime) -> asyncio.Task[Counts]:
        """The sweep of `slot`. A sweep that still runs, perhaps for an endpoint that hangs, takes over this slot."""
        sweep = self._of_slots
        task = next((task for task, running in self._sweeps.items() if running is sweep), None)
        if sweep is not None and task is not None:
            sweep.now = sweep.since = slot
            await sweep.look()
            if not task.done():
                return task
        self._of_slots = Sweep(self.database, self.attempts, slot)
        return self._begin(self._of_slots)

    async def _slot_is_over(self, slot: datetime.datetime, task: asyncio.Task[Counts]) -> bool:
        """Waits for another slot, which is an earlier one if the clock was ahead. Returns False at once if the sweep
        fails before that."""
        while slot_of(now := self._clock(), self.period_seconds) == slot:
            # In short steps, because clocks can be set and machines can sleep.
            seconds = min(self.period_seconds - (now - slot).total_seconds(), 60)
            if not task.done():
                await asyncio.wait({task}, timeout=seconds)
            elif task.cancelled() or task.exception() is not None:
                return False
            else:
                await asyncio.sleep(seconds)
        return True

    def _begin(self, sweep: Sweep, settled: asyncio.Future[Counts] | None = None) -> asyncio.Task[Counts]:
        task = asyncio.create_task(self._run_to_end(sweep, settled))
        self._sweeps[task] = sweep
        task.add_done_callback(self._sweep_ended)
        return task

    def _sweep_ended(self, task: asyncio.Task[Counts]) -> None:
        sweep = self._sweeps.pop(task)
        if self._rest is sweep:
            self._rest = None
        if not task.cancelled() and (error := task.exception()):
            log.warning("sweep_failed", now=sweep.now.isoformat(), reason=str(error) or type(error).__name__)

    async def _run_to_end(self, sweep: Sweep, settled: asyncio.Future[Counts] | None) -> Counts:
        """Runs the sweep, waits for what other dispatchers hold, and goes on with what waits for receivers.

        settled: for a requested sweep; it gets the counts as soon as only deliveries that wait for receivers are left.
        """
        await sweep.run()
        await self._wait_for_claims(sweep)
        if sweep.sandbox_id is not None:
            sweep.retire()
            return await sweep.go_on()
        counts = await self._settled(sweep)
        if settled is not None and sweep.aside:
            settled.set_result(counts)
            if self._rest is not None and self._rest.now > sweep.now:
                sweep.retire()  # that one attempts the same deliveries
            else:
                if self._rest is not None:
                    self._rest.retire()
                self._rest = sweep
        while sweep.aside:
            now = sweep.now
            await sweep.change()
            await sweep.go_on()
            if sweep.now != now:  # it has taken over another slot
                await self._wait_for_claims(sweep)
                await self._settled(sweep)
        await sweep.go_on()  # until the last attempts have ended, so that a stop finds them
        return counts

    async def _settled(self, sweep: Sweep) -> Counts:
        """Reports that nothing is left but what waits for receivers. Returns the counts."""
        aside = sweep.aside
        waiting = await queries.waiting(self.database, aside, sweep.now) if aside else 0
        counts = replace(sweep.counts, waiting_for_host=waiting)
        SWEPT.set_to_current_time()
        WAITING.set(waiting)
        log.info("sweep_done", now=sweep.now.isoformat(), **asdict(counts))
        return counts

    async def _wait_for_claims(self, sweep: Sweep) -> None:
        """Waits up to a claim's length for deliveries that another dispatcher holds, or held when it died."""
        pause = POLL_SECONDS
        give_up = asyncio.get_running_loop().time() + CLAIM_SECONDS + RETRY_SECONDS
        while asyncio.get_running_loop().time() < give_up:
            now, aside = sweep.now, set(sweep.aside)
            due = await sweep.due(0, len(aside) + 1)
            if aside.issuperset(subscription.id for subscription in due) and sweep.now == now:
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS_MAX)
            await sweep.run()

    async def _catch_up(self) -> int:
        """Raises Unavailable if the producers do not answer within the limit."""
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
