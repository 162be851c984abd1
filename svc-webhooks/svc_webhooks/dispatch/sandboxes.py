"""When sandboxes are swept: at the slots of their own clocks, and when the gateway moves a clock."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from chassis.refusals import Unavailable
from chassis.schedule.clocks import Companies, CompanyClocks
from chassis.schedule.instants import slot_of
from chassis.schedule.sweeps import Due
from svc_webhooks.dispatch.queries.claims import next_due_at
from svc_webhooks.dispatch.scheduler import Scheduler

LOOK_SECONDS = 60.0
AT_ONCE = 8
SECONDS_MAX = 60.0  # of a slot's sweep, so that no sandbox holds up the others for long
HUNG_FOR_SECONDS = 60.0  # after the last call of an advance
MOVED = datetime.timedelta(seconds=1)  # the machine's own clock may be set by less
DUE = "delivery.due"

log = structlog.stdlib.get_logger(__name__)

# Deletes what a sandbox keeps no longer by its own clock.
Retention = Callable[[Companies], Awaitable[None]]


class Sandboxes:
    """One per process. Any number of processes may sweep a sandbox at once: each attempt is made once."""

    def __init__(self, scheduler: Scheduler, clocks: CompanyClocks) -> None:
        self._scheduler, self._clocks = scheduler, clocks
        self.retention: list[Retention] = []
        self._expired: dict[int, datetime.date] = {}  # by sandbox, the day of its clock
        self._swept: dict[int, datetime.datetime] = {}  # by sandbox, the last slot
        self._ahead: dict[int, datetime.timedelta] = {}  # by sandbox, at the last look
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._hung: dict[int, tuple[float, set[str]]] = {}
        self._begun: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Sweeps each sandbox soon after a slot of its own clock, and after the live companies, until cancelled."""
        while True:
            try:
                due = await self.due()
                if due:
                    await self._scheduler.live_ones_are_swept(SECONDS_MAX)
                await self.sweep(due)
            except Unavailable as error:
                log.warning("sandboxes_wait", reason=str(error))
            await asyncio.sleep(min(self._scheduler.period_seconds, LOOK_SECONDS))

    async def due(self) -> Sequence[Companies]:
        """The sandboxes whose clock has had a slot since they were swept. One whose clock was moved since the last call
        is left to its advance, which counts the attempts."""
        sandboxes = await self._clocks.sandboxes()
        before, self._ahead = self._ahead, {_id(each): each.clock() - self._clocks.real() for each in sandboxes}
        moved = {key for key, ahead in self._ahead.items() if ahead - before.get(key, ahead) > MOVED}
        return [each for each in sandboxes if _id(each) not in moved and self._swept.get(_id(each)) != self._slot(each)]

    async def sweep(self, sandboxes: Sequence[Companies]) -> None:
        """Sweeps each as of its own clock."""
        await asyncio.gather(*map(self._sweep, sandboxes))

    async def _sweep(self, sandbox: Companies) -> None:
        async with self._at_once:
            slot = self._slot(sandbox)
            try:
                await self._scheduler.sweep_sandbox(sandbox, SECONDS_MAX)
                await self._expire(sandbox)
                self._swept[_id(sandbox)] = slot
            except Unavailable as error:
                log.warning("sandbox_waits", company_id=sandbox.sandbox_id, reason=str(error))

    async def _expire(self, sandbox: Companies) -> None:
        """Once a day of its clock: whole days go."""
        day = sandbox.clock().date()
        if self._expired.get(_id(sandbox)) != day:
            for expire in self.retention:
                await expire(sandbox)
            self._expired[_id(sandbox)] = day

    def begin(self, sandbox: Companies) -> None:
        """Begins to attempt what is due in a sandbox, as replays are, unless that is under way."""
        if _id(sandbox) not in self._begun:
            task = self._begun[_id(sandbox)] = asyncio.create_task(self._sweep(sandbox))
            task.add_done_callback(lambda _: self._begun.pop(_id(sandbox)))

    # Advances

    async def next_due(self, company_id: int) -> Due | None:
        """The slot of the sandbox's clock at which its next delivery is attempted; None if none waits."""
        due_at = await next_due_at(self._scheduler.database, company_id)
        if due_at is None:
            return None
        period = self._scheduler.period_seconds
        slot = slot_of(due_at, period)
        return Due(slot if slot == due_at else slot + datetime.timedelta(seconds=period), DUE)

    async def do_due(self, company_id: int) -> Mapping[str, int]:
        """Attempts what is due in a sandbox by its own clock, and then deletes what it keeps no longer. Returns the
        attempts by outcome. Raises Refusal 404 for a live company, Unavailable."""
        sandbox = await self._clocks.sandbox(company_id)
        hung = self._hung_of(company_id)
        counts = await self._scheduler.sweep_sandbox(sandbox, hung=hung)
        await self._expire(sandbox)
        self._hung[company_id] = time.monotonic(), hung
        return {
            "delivery.succeeded": counts.succeeded,
            "delivery.failed": counts.failed - counts.parked,
            "delivery.parked": counts.parked,
        }

    def _hung_of(self, company_id: int) -> set[str]:
        """The receivers that have hung in the sandbox's advance."""
        now = time.monotonic()
        self._hung = {key: value for key, value in self._hung.items() if value[0] > now - HUNG_FOR_SECONDS}
        _, hung = self._hung.get(company_id, (now, set[str]()))
        self._hung[company_id] = now, hung
        return hung

    def _slot(self, sandbox: Companies) -> datetime.datetime:
        return self._scheduler.slot_of(sandbox.clock)


def _id(sandbox: Companies) -> int:
    assert sandbox.sandbox_id is not None
    return sandbox.sandbox_id
