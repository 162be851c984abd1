"""One request, one RPC: calls the service that owns the answer, as the caller, with a deadline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import grpc

from chassis.auth.clients import ServiceClient, refusal_of, unavailable
from chassis.auth.identity import TokenSigner
from chassis.runtime import traces
from gateway.http.bearer import Caller
from gateway.http.routes import Operation


class Calls:
    """The RPCs of all operations, over one channel for each service."""

    def __init__(
        self, issuer: TokenSigner, peers: Mapping[str, ServiceClient], operations: Iterable[Operation]
    ) -> None:
        self._issuer = issuer
        self._methods: dict[Operation, Any] = {
            operation: peers[operation.service].channel.unary_unary(
                operation.rpc_path,
                request_serializer=operation.request.SerializeToString,
                response_deserializer=operation.response.FromString,
            )
            for operation in operations
            if operation.rpc_path
        }

    async def call(self, operation: Operation, request: Any, caller: Caller, request_id: str) -> Any:
        """The response. Raises Refusal if the service refuses, ServiceUnavailable if it fails or is late."""
        token = self._issuer.token(operation.service, caller.identity)
        try:
            return await self._methods[operation](
                request,
                metadata=(
                    ("authorization", token),
                    ("x-request-id", request_id),
                    (traces.HEADER, traces.current()),
                ),
                timeout=operation.deadline_seconds,
            )
        except grpc.aio.AioRpcError as error:
            if refused := refusal_of(error):
                raise refused from None
            raise unavailable(operation.service, error) from None
