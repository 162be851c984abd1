"""Stubs of the contexts' CompanyClockService: what falls due is set by a test, and when each was done is noted."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import grpc

from chassis.auth.identity import TokenVerifier
from chassis.schedule import instants
from makeready.common.v1 import company_clock_pb2 as pb

_SERVICE = pb.DESCRIPTOR.services_by_name["CompanyClockService"]


class Done(NamedTuple):
    """Work that a context has done."""

    service: str
    event: str
    due_at: datetime.datetime
    at: datetime.datetime
    """By the context's clock of the company."""


class StubClocks:
    """The clocks of all contexts."""

    def __init__(self) -> None:
        self.offsets: dict[tuple[str, int], datetime.timedelta] = defaultdict(datetime.timedelta)
        self.due: dict[tuple[str, int], list[tuple[datetime.datetime, str]]] = defaultdict(list)
        """What falls due, by context and company; no order is needed."""
        self.causes: dict[str, tuple[str, datetime.timedelta, str]] = {}
        """What an event causes once it has been passed on: in a context, after a time, an event."""
        self.done: list[Done] = []
        self.calls: list[tuple[str, str]] = []
        """The context and the RPC of each call."""
        self.away: set[str] = set()
        """Contexts that do not answer."""
        self.behind: dict[str, datetime.timedelta] = {}
        """How far the clock of a context's machine is behind."""
        self._unsettled: list[Done] = []

    def now(self, service: str, company_id: int) -> datetime.datetime:
        real = instants.now() - self.behind.get(service, datetime.timedelta())
        return real + self.offsets[service, company_id]

    def handlers(self, service: str, ring: TokenVerifier) -> dict[str, Any]:
        """The handlers of a context's CompanyClockService by the names of its RPCs."""
        methods: dict[str, Callable[[str, Any], Any]] = {
            "NextDue": self._next_due,
            "SetClock": self._set_clock,
            "DoDue": self._do_due,
            "Settle": self._settle,
        }
        return {name: self._handler(service, ring, name, method) for name, method in methods.items()}

    def _handler(self, service: str, ring: TokenVerifier, name: str, method: Callable[[str, Any], Any]) -> Any:
        async def handle(request: Any, context: Any) -> Any:
            who = ring.verify(dict(context.invocation_metadata())["authorization"])
            assert (who.kind, who.issuer) == ("service", "gateway")
            if service in self.away:
                await context.abort(grpc.StatusCode.INTERNAL, "away")
            self.calls.append((service, name))
            return method(service, request)

        request_class = getattr(pb, _SERVICE.methods_by_name[name].input_type.name)
        answer: Callable[[Any, Any], Awaitable[Any]] = handle
        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=request_class.FromString,
            response_serializer=lambda reply: reply.SerializeToString(),
        )

    def _next_due(self, service: str, request: pb.NextDueRequest) -> pb.NextDueResponse:
        due = self.due[service, request.company_id]
        response = pb.NextDueResponse()
        if due:
            at, response.what = min(due)
            response.due_at.FromDatetime(at)
        return response

    def _set_clock(self, service: str, request: pb.SetClockRequest) -> pb.SetClockResponse:
        key = service, request.company_id
        self.offsets[key] = max(self.offsets[key], request.offset.ToTimedelta())
        return pb.SetClockResponse()

    def _do_due(self, service: str, request: pb.DoDueRequest) -> pb.DoDueResponse:
        now, key = self.now(service, request.company_id), (service, request.company_id)
        response = pb.DoDueResponse(done={"never": 0})
        for at, event in sorted(self.due[key]):
            if at <= now:
                self.due[key].remove((at, event))
                response.done[event] += 1
                done = Done(service, event, at, now)
                self.done.append(done)
                self._unsettled.append(done)
        return response

    def _settle(self, service: str, request: pb.SettleRequest) -> pb.SettleResponse:
        for done in [done for done in self._unsettled if self.causes.get(done.event, ("",))[0] == service]:
            self._unsettled.remove(done)
            _, after, event = self.causes[done.event]
            self.due[service, request.company_id].append((done.due_at + after, event))
        return pb.SettleResponse(is_settled=True)
