"""The clocks of a sandbox in all contexts: each RPC goes to all of them at once, or in their order."""

from __future__ import annotations

import asyncio
import datetime
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from chassis.auth.clients import ServiceClient
from chassis.refusals import Refusal, Unavailable
from chassis.schedule.sweeps import Due
from gateway.sandbox.clock.rules import SERVICES
from makeready.common.v1 import company_clock_pb2 as pb

SECONDS, SETTLE_SECONDS, DO_DUE_SECONDS = 10.0, 60.0, 300.0


class ServiceMissing(Unavailable):
    """A service did not answer, or refused."""

    def __init__(self, service: str, reason: Exception) -> None:
        super().__init__(f"{service}: {reason}")
        self.service = service


class ContextClocks:
    """CompanyClockService of all contexts. Each method raises ServiceMissing."""

    def __init__(self, clients: Mapping[str, ServiceClient]) -> None:
        self._clients = clients

    async def next_due(self, company_id: int) -> dict[str, Due]:
        """What falls due next in each context in which something will."""
        responses = await self._of_each(pb.NextDueRequest(company_id=company_id), pb.NextDueResponse)
        return {
            service: Due(response.due_at.ToDatetime(datetime.UTC), response.what)
            for service, response in responses.items()
            if response.HasField("due_at")
        }

    async def set(self, company_id: int, offset: datetime.timedelta) -> None:
        """Moves the clock. After that, each write that begins in any context has at least this offset."""
        request = pb.SetClockRequest(company_id=company_id)
        request.offset.FromTimedelta(offset)
        await self._of_each(request, pb.SetClockResponse)

    async def do_due(self, company_id: int, services: Collection[str]) -> Mapping[str, Counter[str]]:
        """Does what is due in these contexts. Returns what has been done in each."""
        request = pb.DoDueRequest(company_id=company_id)
        responses = await self._of_each(request, pb.DoDueResponse, services, DO_DUE_SECONDS)
        return {
            service: Counter({name: count for name, count in response.done.items() if count})
            for service, response in responses.items()
        }

    async def settle(self, company_id: int, first: str | None) -> None:
        """Passes on what the context `first` has caused, and each behind it after that; None: what any service has."""
        first_place = 0 if first is None else SERVICES.index(first)
        for place in range(0 if first is None else first_place + 1, len(SERVICES)):
            producers = () if first is None else SERVICES[first_place:place]
            request = pb.SettleRequest(company_id=company_id, producers=producers)
            await self._of_each(request, pb.SettleResponse, SERVICES[place : place + 1], SETTLE_SECONDS)

    async def _of_each(
        self, request: Any, response: type[Any], services: Collection[str] = SERVICES, seconds: float = SECONDS
    ) -> dict[str, Any]:
        calls = [self._clients[service].call(request, response, deadline_seconds=seconds) for service in services]
        # All calls end before the first fault is raised.
        answers = dict(zip(services, await asyncio.gather(*calls, return_exceptions=True), strict=True))
        for service, answer in answers.items():
            if isinstance(answer, (Unavailable, Refusal)):
                raise ServiceMissing(service, answer)
            if isinstance(answer, BaseException):
                raise answer
        return answers
