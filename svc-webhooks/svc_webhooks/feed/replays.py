"""Works through replays that are under way: makes their deliveries due in batches, and notes their end.

Any process may continue a replay that another has begun: the row says how far it is. The attempts are made by sweeps of
the present slot, so they take the same turns as all others.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import Set

import structlog

from chassis.db.database import Database, DatabaseUnavailable
from chassis.runtime.failpoints import failpoint
from chassis.schedule.clocks import Companies, CompanyClocks
from chassis.schedule.instants import Clock
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.days import DAY, KEPT_DAYS, day_of, first_day_kept
from svc_webhooks.dispatch.sandboxes import Sandboxes
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.feed.queries import replays as queries
from svc_webhooks.rules.deliveries import ALL
from svc_webhooks.rules.subscriptions import KIND

EVENTS_OF_A_BATCH = 1000
BUSY_SECONDS = 0.2  # for an attempt that is under way, of a delivery that is to be sent again
LOOK_SECONDS = 2.0  # while a replay is under way
IDLE_SECONDS = 60.0  # to find replays of a process that died

log = structlog.stdlib.get_logger(__name__)


class Replays:
    """One per process. Several processes may work at once."""

    def __init__(self, database: Database, scheduler: Scheduler, sandboxes: Sandboxes, clocks: CompanyClocks) -> None:
        self._database = database
        self._scheduler = scheduler
        self._sandboxes = sandboxes
        self._clocks = clocks
        self._asked = asyncio.Event()

    def wake(self) -> None:
        """A replay was requested."""
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled. Raises DatabaseUnavailable."""
        while True:
            self._asked.clear()
            are_left = await self.go_on()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), LOOK_SECONDS if are_left else IDLE_SECONDS)

    async def every_hour(self, _slot: datetime.datetime) -> None:
        """Deletes replays that finished 30 days ago."""
        with contextlib.suppress(DatabaseUnavailable):
            await queries.old_forgotten(self._database, self._clocks.real() - KEPT_DAYS * DAY)

    async def expire(self, sandbox: Companies) -> None:
        """`every_hour` for a sandbox, by its own clock."""
        await queries.old_forgotten(self._database, sandbox.clock() - KEPT_DAYS * DAY, sandbox.sandbox_id)

    async def go_on(self) -> bool:
        """Queues and finishes what can be; returns whether a replay is still under way."""
        under_way = await queries.under_way(self._database)
        for replay in under_way:
            queued = replay.is_queued
            while not queued:
                queued = await self._queue(replay.id)
        if not under_way:
            return False
        clocks = await self._attempt_due({replay.company_id for replay in under_way})
        is_under_way = False
        for replay in await queries.under_way(self._database):
            waiting, outcome = await queries.progress(self._database, replay)
            if waiting or not replay.is_queued:
                is_under_way = True
                continue
            clock = clocks.get(replay.company_id, self._clocks.real)
            await queries.finished(self._database, replay, clock(), outcome)
            self._database.committed([(replay.company_id, KIND, replay.subscription_id)])
            log.info("replay_finished", replay_id=replay.id, **outcome._asdict())
        return is_under_way

    async def _attempt_due(self, company_ids: Set[int]) -> dict[int, Clock]:
        """Begins to attempt what is due in these companies. Returns the clocks of the sandboxes among them."""
        clocks: dict[int, Clock] = {}
        for sandbox in await self._clocks.sandboxes():
            if sandbox.sandbox_id is not None and sandbox.sandbox_id in company_ids:
                clocks[sandbox.sandbox_id] = sandbox.clock
                self._sandboxes.begin(sandbox)
        if company_ids - clocks.keys():
            await self._scheduler.attempt_due()
        return clocks

    async def _queue(self, replay_id: int) -> bool:
        """Makes the next deliveries due, in one transaction. True if that was the end, or another process does it."""
        async with self._database.transaction(BY_INDEX) as connection:
            replay = await queries.replay_taken(connection, replay_id)
            if replay is None or replay.is_queued:
                return True
            target = await queries.target_locked(connection, replay.company_id, replay.subscription_id)
            if target is None:
                await queries.forgotten(connection, replay.id)  # the subscription was deleted
                return True
            entries = await queries.entries(connection, replay, EVENTS_OF_A_BATCH)
            first_day = first_day_kept(self._clocks.real())
            slot = self._scheduler.slot_of(self._clocks.ahead_by(target.clock_offset))
            replayable = [
                entry for entry in entries if entry.event in replay.events and day_of(entry.event_id) >= first_day
            ]
            candidates = {
                row.event_id: row
                for row in await queries.candidates(connection, replay, [entry.event_id for entry in replayable])
            }
            is_about = {event_id: row.is_chosen for event_id, row in candidates.items()}
            matched = [entry for entry in replayable if is_about.get(entry.event_id, replay.state == ALL)]
            passing = {entry.event_id for entry in matched}
            if target.has_filter:
                passing = await queries.passing(connection, replay, list(passing))
            chosen = [entry for entry in matched if entry.event_id in candidates and entry.event_id in passing]
            free = await queries.free_locked(connection, replay, [entry.event_id for entry in chosen])
            until = replay.until_position if len(entries) < EVENTS_OF_A_BATCH else entries[-1].position
            # What is being attempted at this moment is looked at again, with all that follows.
            busy = next((entry.position for entry in chosen if entry.event_id not in free), None)
            if busy is not None:
                until = busy - 1
            due = [entry.event_id for entry in chosen if entry.position <= until]
            await queries.made_due(connection, replay, due, slot)
            reached = [entry.event_id for entry in matched if entry.position <= until]
            new = [event_id for event_id in reached if event_id in passing and event_id not in candidates]
            queued = len(due) + await queries.added(connection, replay, new, slot)
            filtered = sum(event_id not in passing for event_id in reached)
            await queries.advanced(connection, replay, until, queued, filtered)
            connection.changed.add((replay.company_id, KIND, replay.subscription_id))
        failpoint("replay-queued")
        if busy is not None:
            await self._attempt_due({replay.company_id})
            await asyncio.sleep(BUSY_SECONDS)
        return until >= replay.until_position
