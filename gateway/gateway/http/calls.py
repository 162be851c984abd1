"""One RPC: calls the service that owns the answer, as the caller, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import Call, Identity
from chassis.db.database import DatabaseUnavailable
from gateway.http.bearer import Caller
from gateway.http.routes import Operation

OwnRpcs = Mapping[type, Callable[[Any, Call], Awaitable[Any]]]
"""RPCs that this process answers, by the class of their request."""


class OwnService:
    """The gateway's own RPCs for integrations, called without gRPC."""

    def __init__(self, methods: OwnRpcs) -> None:
        self._methods = methods

    async def call(
        self, request: Any, response: Any, *, identity: Identity, request_id: str = "", deadline_seconds: float
    ) -> Any:
        """As `ServiceClient.call`."""
        try:
            async with asyncio.timeout(deadline_seconds):
                return await self._methods[type(request)](request, Call(identity, request_id))
        except TimeoutError:
            raise DatabaseUnavailable("the database did not answer in time") from None


class Calls:
    """The RPCs of all operations."""

    def __init__(self, clients: Mapping[str, ServiceClient | OwnService]) -> None:
        self._clients = clients

    async def call(self, operation: Operation, request: Any, caller: Caller, request_id: str, service: str = "") -> Any:
        """The response. Raises Refusal if the service refuses, ServiceUnavailable if it fails or is late.

        service: the one to ask, of an operation that asks several.
        """
        return await self._clients[service or operation.service].call(
            request,
            operation.response,
            identity=caller.identity,
            request_id=request_id,
            deadline_seconds=operation.deadline_seconds,
        )
