"""gRPC's health service: whether the process is ready, and whether it lives. It needs no token."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2
from prometheus_client import Gauge

from chassis.auth.rpcs import Context

LIVENESS = "liveness"
"""The service by whose name a check asks whether the process lives; any other name asks whether it is ready."""
# A check that is read takes this long and this many bytes at most. After one that takes more, none is read for a while.
READ_SECONDS, READ_BYTES, REST_SECONDS = 0.5, 256, 2.0
READY = health_pb2.HealthCheckRequest()  # names no service
SERVING = Gauge("makeready_serving", "1 while the process is ready: it has started and is not stopping")
_LIVENESS = health_pb2.HealthCheckRequest(service=LIVENESS).SerializeToString()


class Health:
    """SERVING from the end of the start to the beginning of the stop, and for LIVENESS whenever the process answers.

    While both are SERVING no check is read, so those of strangers take no memory: 100 that were read, of 8 MiB each,
    took 370 MB. At other times one is read after the other, until one is larger or later than a probe's. A check
    that is not read gets the answer of readiness.
    """

    def __init__(self) -> None:
        self.is_serving = False
        self._servicer = health.aio.HealthServicer()
        self._reading = asyncio.Lock()
        self._read_again_at = 0.0

    async def handlers(self) -> grpc.GenericRpcHandler:
        """The RPCs of the service, which is NOT_SERVING."""
        await self._servicer.set(READY.service, health_pb2.HealthCheckResponse.NOT_SERVING)
        write = health_pb2.HealthCheckResponse.SerializeToString
        return grpc.method_handlers_generic_handler(
            health.SERVICE_NAME,
            {
                "Check": grpc.stream_unary_rpc_method_handler(self._check, response_serializer=write),
                "Watch": grpc.stream_stream_rpc_method_handler(self._watch, response_serializer=write),
            },
        )

    async def serve(self) -> None:
        self.is_serving = True
        SERVING.set(1)
        await self._servicer.set(READY.service, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self) -> None:
        self.is_serving = False
        SERVING.set(0)
        await self._servicer.enter_graceful_shutdown()

    async def _check(self, _requests: object, context: Context) -> Any:
        if not self.is_serving and await self._asks_for_liveness(context):
            return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
        return await self._servicer.Check(READY, context)

    async def _watch(self, _requests: object, context: Context) -> None:
        await self._servicer.Watch(READY, context)

    async def _asks_for_liveness(self, context: Context) -> bool:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(READ_SECONDS), self._reading:
                if loop.time() < self._read_again_at:
                    return False
                self._read_again_at = loop.time() + REST_SECONDS
                request = await context.read()
                if isinstance(request, bytes) and len(request) <= READ_BYTES:
                    self._read_again_at = 0.0
                return bool(request == _LIVENESS)
        except TimeoutError:
            return False
