"""`makeready status`: which processes run, where, and how far each consumer is behind."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.auth.clients import ServiceUnavailable
from makeready.events.v1 import events_pb2 as pb
from makeready.events.v1.events_pb2_grpc import ConsumerServiceStub, OutboxServiceStub
from makeready_cli.calls import Operator
from makeready_cli.errors import CommandError
from makeready_cli.output import Answer, table
from makeready_cli.parsers import Commands, command
from makeready_cli.system import is_alive

LOOK_SECONDS = 2.0


def add(commands: Commands) -> None:
    parser = command(commands, "status", "show ports, process ids, health and the lag of each consumer")
    parser.set_defaults(run=status)


async def status(operator: Operator, _arguments: argparse.Namespace) -> Answer:
    system = operator.system
    shown = await asyncio.gather(*(_process(operator, name, one) for name, one in system.processes.items()))
    processes = dict(zip(system.processes, shown, strict=True))
    value = {
        "base_url": system.base_url,
        "admin_url": system.admin_url,
        "state_dir": str(system.state_dir),
        "pid": system.pid,
        "alive": is_alive(system.pid),
        "processes": processes,
    }
    headers = ("PROCESS", "PID", "ALIVE", "ADDRESS", "METRICS", "HEALTH", "UNPUBLISHED", "LAG")
    rows = [
        (
            name,
            one["pid"],
            "yes" if one["alive"] else "no",
            one.get("grpc", one.get("port")),
            one.get("metrics"),
            one.get("health"),
            one.get("unpublished"),
            one.get("lag"),
        )
        for name, one in processes.items()
    ]
    runner = f"{'running' if value['alive'] else 'NOT RUNNING'}, process {system.pid}"
    text = f"API {system.base_url} · administrators {system.admin_url} · {runner}\n{table(headers, rows, '')}"
    return Answer(value, text)


async def _process(operator: Operator, name: str, process: Mapping[str, Any]) -> dict[str, Any]:
    """A process as recorded in runtime.json, with its current state."""
    found = {**process, "alive": is_alive(int(process["pid"]))}
    if "grpc" not in process:
        return found
    health, unpublished, lag = await asyncio.gather(
        _health(operator, name), _unpublished(operator, name), _lag(operator, name)
    )
    return {**found, "health": health, "unpublished": unpublished, "lag": lag}


async def _health(operator: Operator, service: str) -> str:
    stub = health_pb2_grpc.HealthStub(operator.channel(service))
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=LOOK_SECONDS)
    except grpc.aio.AioRpcError:
        return "UNREACHABLE"
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


async def _unpublished(operator: Operator, service: str) -> int | None:
    """Events that wait for the transport; None if the service has no outbox or does not answer."""
    outbox = OutboxServiceStub(operator.channel(service))
    try:
        answer = await operator.ask(service, outbox.GetOutbox, pb.GetOutboxRequest(), deadline_seconds=LOOK_SECONDS)
    except (ServiceUnavailable, CommandError):
        return None
    return answer.unpublished


async def _lag(operator: Operator, service: str) -> int | None:
    """Events that the consumer has not received yet; None if the service consumes nothing, or it or NATS is away."""
    consumer = ConsumerServiceStub(operator.channel(service))
    try:
        answer = await operator.ask(service, consumer.GetLag, pb.GetLagRequest(), deadline_seconds=LOOK_SECONDS)
    except (ServiceUnavailable, CommandError):
        return None
    return answer.pending if answer.HasField("pending") else None
