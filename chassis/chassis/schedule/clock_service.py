"""CompanyClockService: moves a sandbox's clock, and does what time makes due on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

from chassis.auth.identity import Call
from chassis.refusals import invalid_request
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.sweeps import Due
from makeready.common.v1 import company_clock_pb2 as pb

NextOf = Callable[[int], Awaitable[Due | None]]
DoneOf = Callable[[int], Awaitable[Mapping[str, int]]]
Settles = Callable[[int, Collection[str]], Awaitable[bool]]


class CompanyClockService:
    """The clocks of one context's sandboxes."""

    def __init__(self, clocks: CompanyClocks, next_due: NextOf, do_due: DoneOf, settle: Settles) -> None:
        """For `next_due` and `do_due` see `ScheduledSweeps`; `settle` takes a company and the producers to hear of, and
        returns whether all is published."""
        self._clocks, self._next_due, self._do_due, self._settle = clocks, next_due, do_due, settle

    async def NextDue(self, request: pb.NextDueRequest, _call: Call) -> pb.NextDueResponse:
        await self._clocks.check_not_live(request.company_id)
        due = await self._next_due(request.company_id)
        response = pb.NextDueResponse()
        if due is not None:
            response.due_at.FromDatetime(due.at)
            response.what = due.what_is_due
        return response

    async def SetClock(self, request: pb.SetClockRequest, _call: Call) -> pb.SetClockResponse:
        try:
            offset = request.offset.ToTimedelta()
        except (ValueError, OverflowError):
            raise invalid_request("offset is no duration.", "offset") from None
        await self._clocks.advance(request.company_id, offset)
        return pb.SetClockResponse()

    async def DoDue(self, request: pb.DoDueRequest, _call: Call) -> pb.DoDueResponse:
        return pb.DoDueResponse(done=await self._do_due(request.company_id))

    async def Settle(self, request: pb.SettleRequest, _call: Call) -> pb.SettleResponse:
        return pb.SettleResponse(is_settled=await self._settle(request.company_id, request.producers))
