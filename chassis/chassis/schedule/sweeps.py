"""What a context's clock starts: several sweeps, one after another, at every slot and when an operator asks."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping, Sequence

from chassis.auth.identity import Call
from chassis.refusals import invalid_request
from chassis.schedule import instants
from makeready.common.v1 import sweeps_pb2 as pb

PERIOD_SECONDS = 900  # the timezones' offsets are multiples of it
YEARS = range(1971, 9000)  # what local dates, and the times to come, can be reckoned for

# Does what is due as of an instant. How often each event fired, and how many records changed, each under its name.
Sweep = Callable[[datetime.datetime], Awaitable[Mapping[str, int]]]


class ScheduledSweeps:
    """The sweeps of one context. Any number of processes may run them at once: what is due is done once."""

    def __init__(self, sweeps: Sequence[Sweep]) -> None:
        self._sweeps = sweeps

    async def sweep(self, now: datetime.datetime) -> dict[str, int]:
        """What was done. Every sweep is tried, whatever became of the one before; then the first fault is raised."""
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
        self, request: pb.RunScheduledSweepsRequest, _call: Call
    ) -> pb.RunScheduledSweepsResponse:
        try:
            now = request.now.ToDatetime(datetime.UTC) if request.HasField("now") else instants.now()
        except ValueError:  # no calendar has it
            now = datetime.datetime.min
        if now.year not in YEARS:
            raise invalid_request(f"now must lie in the years {YEARS.start} to {YEARS.stop - 1}.", "now")
        response = pb.RunScheduledSweepsResponse(done=await self.sweep(now))
        response.now.FromDatetime(now)
        return response
