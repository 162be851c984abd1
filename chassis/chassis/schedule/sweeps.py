"""A context's scheduled sweeps: they run one after another, at every slot and at an operator's request."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping, Sequence

from chassis.auth.identity import Call
from chassis.refusals import invalid_request
from chassis.schedule import instants
from chassis.schedule.future_instants import RecordSweep, guard
from makeready.common.v1 import sweeps_pb2 as pb

PERIOD_SECONDS = 900  # timezone offsets are multiples of it
YEARS = range(1971, 9000)  # local dates and later instants can be computed for these

# Does the work due at an instant. Returns, by name, how often each event fired and how many records changed.
Sweep = Callable[[datetime.datetime], Awaitable[Mapping[str, int]]]


class ScheduledSweeps:
    """The sweeps of one context. Any number of processes may run them at once: due work is done once."""

    def __init__(self, sweeps: Sequence[Sweep], record: RecordSweep | None = None) -> None:
        """`record` stores who starts a sweep as of a future instant."""
        self._sweeps, self._record = sweeps, record

    async def sweep(self, now: datetime.datetime) -> dict[str, int]:
        """Runs every sweep, even if one before it failed, then raises the first fault. Returns the counts."""
        done: dict[str, int] = {}
        faults = []
        for sweep in self._sweeps:
            try:
                done |= await sweep(now)
            except Exception as fault:
                faults.append(fault)
        if faults:
            raise faults[0]
        return done

    async def RunScheduledSweeps(
        self, request: pb.RunScheduledSweepsRequest, call: Call
    ) -> pb.RunScheduledSweepsResponse:
        try:
            now = request.now.ToDatetime(datetime.UTC) if request.HasField("now") else instants.now()
        except ValueError:  # outside the calendar
            now = datetime.datetime.min
        if now.year not in YEARS:
            raise invalid_request(f"now must lie in the years {YEARS.start} to {YEARS.stop - 1}.", "now")
        await guard("stale", now, request, call, self._record)
        response = pb.RunScheduledSweepsResponse(done=await self.sweep(now))
        response.now.FromDatetime(now)
        return response
