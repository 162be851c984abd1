"""One request, one RPC: calls the service that owns the answer, as the caller, with a deadline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chassis.auth.clients import ServiceClient
from gateway.http.bearer import Caller
from gateway.http.routes import Operation


class Calls:
    """The RPCs of all operations."""

    def __init__(self, clients: Mapping[str, ServiceClient]) -> None:
        self._clients = clients

    async def call(self, operation: Operation, request: Any, caller: Caller, request_id: str) -> Any:
        """The response. Raises Refusal if the service refuses, ServiceUnavailable if it fails or is late."""
        return await self._clients[operation.service].call(
            request,
            operation.response,
            identity=caller.identity,
            request_id=request_id,
            deadline_seconds=operation.deadline_seconds,
        )
