"""The wait for the services at the start."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.auth.clients import ServiceClient

ASK_SECONDS = 0.1
TELL_SECONDS = 5.0

log = structlog.stdlib.get_logger(__name__)


async def every_service_serves(clients: Mapping[str, ServiceClient], wait_seconds: int) -> None:
    """Waits until all services report SERVING, at most `wait_seconds`, and logs the missing ones now and then."""
    loop = asyncio.get_running_loop()
    waiting = dict(clients)
    give_up_at, tell_at = loop.time() + wait_seconds, loop.time() + TELL_SECONDS
    while waiting:
        serving = await asyncio.gather(*(_serves(client) for client in waiting.values()))
        came = [name for name, serves in zip(waiting, serving, strict=True) if serves]
        for name in came:
            del waiting[name]
        if waiting and (came or loop.time() >= tell_at):
            log.info("waiting_for_services", waiting=sorted(waiting))
            tell_at = loop.time() + TELL_SECONDS
        if waiting and loop.time() >= give_up_at:
            log.warning("ready_without", services=sorted(waiting))
            return
        if waiting:
            await asyncio.sleep(ASK_SECONDS)


async def _serves(client: ServiceClient) -> bool:
    try:
        answer = await health_pb2_grpc.HealthStub(client.channel).Check(health_pb2.HealthCheckRequest(), timeout=1)
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
