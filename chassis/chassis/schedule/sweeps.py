"""A context's scheduled sweeps: they run one after another, at every slot and at an operator's request.

Those of live companies come first, as of one instant. Then each sandbox is swept, as of its own clock.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from chassis.auth.identity import Call
from chassis.refusals import invalid_request
from chassis.schedule import instants
from chassis.schedule.clocks import LIVE, Companies, CompanyClocks
from chassis.schedule.future_instants import RecordSweep, guard
from makeready.common.v1 import sweeps_pb2 as pb

PERIOD_SECONDS = 900  # timezone offsets are multiples of it
ROUNDS_MAX = 10  # what one round makes due is done by the next; more than two are a fault of a sweep
YEARS = range(1971, 9000)  # local dates and later instants can be computed for these


class Due(NamedTuple):
    """What falls due next in a company by time alone: when, and the event or the work by its name."""

    at: datetime.datetime
    what_is_due: str

    @classmethod
    def of(cls, at: datetime.datetime | None, what_is_due: str) -> Due | None:
        return None if at is None else cls(at, what_is_due)


class Sweep(Protocol):
    """Work that time alone makes due."""

    async def sweep(self, now: datetime.datetime, companies: Companies = LIVE) -> Mapping[str, int]:
        """Does the work due at an instant. Returns, by name, how often each event fired and how many records
        changed."""

    async def next_due(self, company_id: int) -> Due | None:
        """What falls due next in a company, and may be due already; None if nothing ever will be."""


class ScheduledSweeps:
    """The sweeps of one context. Any number of processes may run them at once: due work is done once."""

    def __init__(self, sweeps: Sequence[Sweep], clocks: CompanyClocks, record: RecordSweep | None = None) -> None:
        """`record` stores who starts a sweep as of a future instant."""
        self._sweeps, self._clocks, self._record = sweeps, clocks, record

    async def sweep(self, now: datetime.datetime) -> Counter[str]:
        """Sweeps the live companies as of `now`, then each sandbox as of its own clock. Returns the counts of the live
        ones. Runs every sweep, even if one before it failed, then raises the first fault."""
        done, _ = await self._sweep_all(now)
        return done

    async def _sweep_all(self, now: datetime.datetime) -> tuple[Counter[str], Counter[str]]:
        """The counts of the live companies, and those of the sandboxes."""
        done, faults = await self._run(now, LIVE)
        in_sandboxes: Counter[str] = Counter()
        for sandbox in await self._clocks.sandboxes():
            done_there, faults_there = await self._run(sandbox.clock(), sandbox)
            in_sandboxes.update(done_there)
            faults += faults_there
        if faults:
            raise faults[0]
        return done, in_sandboxes

    async def _run(self, now: datetime.datetime, companies: Companies) -> tuple[Counter[str], list[Exception]]:
        """Runs every sweep. Returns their counts, and the faults."""
        done: Counter[str] = Counter()
        faults = []
        for scheduled in self._sweeps:
            try:
                done.update(await scheduled.sweep(now, companies))
            except Exception as fault:
                faults.append(fault)
        return done, faults

    async def next_due(self, company_id: int) -> Due | None:
        """What falls due first in a company: see `Sweep.next_due`."""
        dues = [await scheduled.next_due(company_id) for scheduled in self._sweeps]
        return min((due for due in dues if due is not None), default=None)

    async def do_due(self, company_id: int) -> Mapping[str, int]:
        """Does what is due in a sandbox by its own clock, until nothing is. Returns the counts. Raises Refusal 404 for
        a live company, the first fault of a sweep, and RuntimeError if there is no end to what is due."""
        counts: Counter[str] = Counter()
        for _ in range(ROUNDS_MAX):
            sandbox = await self._clocks.sandbox(company_id)
            done, faults = await self._run(sandbox.clock(), sandbox)
            counts.update(done)
            if faults:
                raise faults[0]
            if not any(done.values()):
                return counts
        raise RuntimeError(f"after {ROUNDS_MAX} rounds something is due yet in company {company_id}: {dict(done)}")

    async def RunScheduledSweeps(
        self, request: pb.RunScheduledSweepsRequest, call: Call
    ) -> pb.RunScheduledSweepsResponse:
        try:
            now = request.now.ToDatetime(datetime.UTC) if request.HasField("now") else instants.now()
        except ValueError:  # outside the calendar
            now = datetime.datetime.min
        if now.year not in YEARS:
            raise invalid_request(f"now must lie in the years {YEARS.start} to {YEARS.stop - 1}.", "now")
        # The sandboxes have their own time; an instant ahead moves none of them.
        await guard("stale", now, request, call, self._record)
        done, in_sandboxes = await self._sweep_all(now)
        response = pb.RunScheduledSweepsResponse(done=done, done_in_sandboxes=in_sandboxes)
        response.now.FromDatetime(now)
        return response
