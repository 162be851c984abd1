"""The job that advances the clocks of sandboxes.

An advance does all that would have happened, in the order of time. It repeats: asks each context what falls due next,
moves the clock there, has it done, and passes its events on, until nothing falls due before the target. The company's
offset is stored here before any context has it. Every gateway takes advances that none carries out: each step may be
repeated, so one that was killed anywhere goes on, and nothing is done twice.
"""

from __future__ import annotations

import asyncio
import datetime
import uuid

import structlog

from chassis.db.database import Database
from chassis.messaging.outbox import Outbox
from chassis.refusals import Unavailable
from chassis.runtime.failpoints import failpoint
from chassis.schedule.clocks import OFFSET_MAX
from chassis.schedule.instants import Clock
from gateway.identity.companies.references import company_reference
from gateway.sandbox.clock import queries
from gateway.sandbox.clock.contexts import ContextClocks, ServiceMissing
from gateway.sandbox.clock.queries import Advance
from gateway.sandbox.clock.rules import SERVICES

LEASE_SECONDS, LOOK_SECONDS = 15.0, 4.0
AT_ONCE_MAX = 8
AGAIN_SECONDS = 1.0
# A context's clock may be behind this process's, so that nothing is due there yet.
BEHIND, BEHIND_MAX = datetime.timedelta(milliseconds=1), datetime.timedelta(minutes=5)

log = structlog.stdlib.get_logger(__name__)


class Advances:
    """The advances that this process carries out."""

    def __init__(self, database: Database, contexts: ContextClocks, outbox: Outbox, clock: Clock) -> None:
        self._database, self._contexts, self._outbox, self._clock = database, contexts, outbox, clock
        self._woken = asyncio.Event()
        self._tokens: set[uuid.UUID] = set()

    def wake(self) -> None:
        """Says that an advance has begun."""
        self._woken.set()

    async def run(self) -> None:
        """Carries out advances until cancelled. Raises DatabaseUnavailable."""
        self._tokens.clear()  # of a run that failed: their leases end
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._take_up(tasks)
        except ExceptionGroup as faults:  # the others have been ended: their leases end, too
            raise faults.exceptions[0] from None

    async def _take_up(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            self._woken.clear()
            if self._tokens:
                await queries.renew(self._database, list(self._tokens), LEASE_SECONDS)
            if room := AT_ONCE_MAX - len(self._tokens):
                for advance in await queries.claim(self._database, LEASE_SECONDS, room):
                    self._tokens.add(advance.token)
                    tasks.create_task(self._carry_out(advance))
            try:
                await asyncio.wait_for(self._woken.wait(), LOOK_SECONDS)
            except TimeoutError:
                continue

    async def stop(self) -> None:
        """Leaves what is under way to other processes."""
        if self._tokens:
            try:
                await queries.renew(self._database, list(self._tokens), 0)
            except Unavailable as error:
                log.warning("advances_not_left", reason=str(error))

    async def _carry_out(self, advance: Advance) -> None:
        course = _Course(self._database, self._contexts, self._clock, advance)
        while not await course.is_at_target():
            pass
        if not course.is_lost:
            await self._finish(advance)
        self._tokens.discard(advance.token)
        self._woken.set()  # there is room for another

    async def _finish(self, advance: Advance) -> None:
        failpoint("advance-at-target")
        async with self._database.transaction() as connection:
            company = await queries.finish(connection, advance)
            if company is not None:
                await self._outbox.add(connection, company_reference(self._outbox, company, self._clock()))
        self._outbox.wake()


class _Course:
    """One advance on its way."""

    def __init__(self, database: Database, contexts: ContextClocks, clock: Clock, advance: Advance) -> None:
        self._database, self._contexts, self._clock, self._advance = database, contexts, clock, advance
        self._company_id = advance.company_id
        self._is_settled = False
        """Whether everything caused has been passed on: not what came before the advance, or what a process that was
        killed had caused."""
        self._first_doer: str | None = None
        """The first context that has done something which is not passed on yet."""
        self._behind = datetime.timedelta()
        self.is_lost = False
        """Whether another process carries it out now."""

    async def is_at_target(self) -> bool:
        """Takes a step, or waits a moment if a service does not answer. Whether the advance needs no other."""
        try:
            return await self._step()
        except ServiceMissing as missing:
            log.warning("advance_waits", company_id=self._company_id, reason=str(missing))
            await queries.miss(self._database, self._advance, missing.service)
            await asyncio.sleep(AGAIN_SECONDS)
            return False

    async def _step(self) -> bool:
        if not self._is_settled:
            await self._contexts.settle(self._company_id, self._first_doer)
            self._is_settled = True
        target = self._advance.target
        dues = await self._contexts.next_due(self._company_id)
        at = min([target, *(due.at for due in dues.values())])
        offset = at + self._behind - self._clock()
        stored = await queries.move(self._database, self._advance, offset, OFFSET_MAX)
        if stored is None:
            self.is_lost = True
            return True
        failpoint("advance-moved")
        await self._contexts.set(self._company_id, stored)
        due_services = [service for service in SERVICES if service in dues and dues[service].at <= at]
        if not due_services:
            return True
        self._is_settled, self._first_doer = False, due_services[0]  # also if one of them does not answer
        done = await self._contexts.do_due(self._company_id, due_services)
        failpoint("advance-done")
        for counts in done.values():
            self._advance.done.update(counts)
        self._first_doer = next((service for service in SERVICES if done.get(service)), None)
        self._is_settled = self._first_doer is None
        if self._first_doer is None:
            await self._wait_for_clocks()
        return False

    async def _wait_for_clocks(self) -> None:
        """What fell due was not due yet by its context's clock, or others held its rows."""
        self._behind = min(max(self._behind * 2, BEHIND), BEHIND_MAX)
        await asyncio.sleep(min(self._behind.total_seconds(), AGAIN_SECONDS))
