"""Calls of the contexts' RPCs, each with a token of the person who asks and with a deadline."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from chassis.auth.clients import ServiceClient, ServiceUnavailable
from chassis.auth.rpcs import response_to, services_of
from chassis.refusals import Refusal
from console.kit.sessions import Sessions
from console.kit.texts import _

CALL_SECONDS = 5.0
ACTION_SECONDS = 15.0
"""Some actions send a webhook and wait for its receiver."""
PANEL_SECONDS = 1.5
GATEWAY = "gateway"

Value = TypeVar("Value")


@functools.cache
def contract(rpc: str) -> MethodDescriptor:
    """The RPC that pages.py spells `webhooks.DeliveriesService/ListDeliveries`."""
    bounded_context, _, path = rpc.partition(".")
    service, _, method = path.partition("/")
    return services_of(f"makeready.{bounded_context}.v1")[service].methods_by_name[method]


def service_of(rpc: str) -> str:
    """The service that serves an RPC of a context's own contract."""
    bounded_context = rpc.partition(".")[0]
    assert bounded_context != "common", f"every service serves {rpc}: name one"
    return GATEWAY if bounded_context == "identity" else f"svc-{bounded_context}"


class Calls:
    """The clients of all services."""

    def __init__(self, clients: Mapping[str, ServiceClient], sessions: Sessions) -> None:
        self._clients, self._sessions = clients, sessions

    async def __call__(
        self, session: str, rpc: str, request: Message, *, service: str = "", deadline_seconds: float = CALL_SECONDS
    ) -> Any:
        """The RPC's response. Raises Refusal and ServiceUnavailable.

        session: its person calls. service: the one to ask, where several serve the RPC.
        """
        service = service or service_of(rpc)
        token = await self._sessions.token(session, service)
        response = response_to(type(request))
        return await self._clients[service].call(request, response, token=token, deadline_seconds=deadline_seconds)


@dataclass(frozen=True, slots=True)
class Panel(Generic[Value]):
    """A part of a page that can be missing while the rest of the page stands. Templates test `.ok` first."""

    value: Value | None
    reason: str = ""

    @property
    def ok(self) -> bool:
        return not self.reason

    def __getattr__(self, name: str) -> Any:
        return getattr(self.value, name)


async def panel(work: Awaitable[Value], seconds: float = PANEL_SECONDS) -> Panel[Value]:
    """The result of the work, or why there is none."""
    try:
        async with asyncio.timeout(seconds):
            return Panel(await work)
    except Refusal as refusal:
        return Panel(None, refusal.message)
    except (TimeoutError, ServiceUnavailable):
        return Panel(None, _("Unavailable right now."))


async def together(*work: Awaitable[Any]) -> list[Any]:
    """All results, in order, of work that runs at the same time. One failure ends the others, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_awaited(awaitable)) for awaitable in work]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _awaited(work: Awaitable[Value]) -> Value:
    return await work
