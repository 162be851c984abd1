"""One trigger under way: what it may read, and the commands that it gives."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from google.protobuf.message import Message

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import ADMINISTRATOR, Call, Identity
from chassis.auth.rpcs import response_to
from chassis.refusals import Refusal, not_found
from chassis.runtime.failpoints import failpoint
from chassis.schedule.instants import local_date, overdue_before
from gateway.sandbox.triggers.steps import Steps
from makeready.common.v1.company_clock_pb2 import DoDueRequest, DoDueResponse

DAY = datetime.timedelta(days=1)
_object = msgspec.json.Decoder(dict[str, Any]).decode


class Caused(NamedTuple):
    """What the event is about."""

    entity_type: str
    """As `GET /events` filters by it."""
    entity_id: int
    to: str = ""
    """`to` of its change; empty where it has none, or any will do."""
    due_in: str = ""
    """The context that fires it, if time does."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """It reads public records as the key, and gives commands as the administrator who minted the key."""

    call: Call
    clients: Mapping[str, ServiceClient]
    steps: Steps
    record_id: int | None
    """The record that the caller names; None if it names none."""
    noun: str
    """What it is, for refusals."""
    timezone: str
    now: datetime.datetime
    """By the company's clock, as are all days here."""

    @property
    def company_id(self) -> int:
        return self.call.identity.company_id

    async def decided(self, name: str, decide: Callable[[], Awaitable[Any]]) -> Any:
        """See `Steps`."""
        return await self.steps.decided(name, decide)

    async def day_over(self) -> str:
        """The latest day whose next morning has come in the company: work of that day is overdue."""

        async def decide() -> str:
            return (overdue_before(self.now, self.timezone) - DAY).isoformat()

        day: str = await self.decided("day_over", decide)
        return day

    def today(self) -> datetime.date:
        return local_date(self.now, self.timezone)

    async def record(self, service: str, request: Message) -> dict[str, Any]:
        """A public record. Raises Refusal 404."""
        response = await self._ask(service, request, self.call.identity)
        return _object(response.document.json)

    async def details(self, service: str, request: Message) -> Any:
        """What people see of a record. Raises Refusal 404."""
        return await self._ask(service, request, self._administrator())

    async def command(self, step: str, service: str, request: Any) -> Any:
        """Has a person's command done, once for the step. Raises Refusal."""
        return await self.command_with_key(self.steps.key(step), service, request)

    async def command_with_key(self, key: str, service: str, request: Any) -> Any:
        """As `command`, once for the idempotency key."""
        request.idempotency_key = key
        failpoint("trigger-step")
        return await self._ask(service, request, self._administrator())

    async def as_gateway(self, step: str, service: str, request: Any) -> None:
        """As `command`, for one that is between services."""
        request.idempotency_key = self.steps.key(step)
        failpoint("trigger-step")
        await self._ask(service, request, None)

    async def reference(self, service: str, request: Message) -> Any:
        """What a context tells other services."""
        return await self._ask(service, request, None)

    async def do_due(self, service: str) -> None:
        """Has a context do what is due in the company. One whose clock is behind does it later."""
        await self.clients[service].call(DoDueRequest(company_id=self.company_id), DoDueResponse)

    def not_visible(self) -> Refusal:
        """The refusal of a named record that the key does not see."""
        return not_found(self.noun)

    def _administrator(self) -> Identity:
        caller = self.call.identity
        return Identity(
            ADMINISTRATOR,
            caller.issuer,
            caller.company_id,
            administrator_id=caller.administrator_id,
            is_sandbox=True,
        )

    async def _ask(self, service: str, request: Message, identity: Identity | None) -> Any:
        try:
            return await self.clients[service].call(
                request,
                response_to(type(request)),
                company_id=self.company_id,
                identity=identity,
                request_id=self.call.request_id,
            )
        except Refusal as refusal:
            if refusal.status == 404:  # its sentence is for people
                raise self.not_visible() from None
            raise
