"""`makeready status`: which processes run, where, of which release, how full disks are, and what waits.

Exit status: 1 if something does not serve: a process that has ended, a service that does not report SERVING, a database
or NATS that cannot be used or has no disk space.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.auth.clients import ServiceUnavailable
from makeready.common.v1 import status_pb2
from makeready.events.v1 import events_pb2 as pb
from makeready_cli.calls import Operator
from makeready_cli.errors import CommandError
from makeready_cli.output import Answer, Record, table
from makeready_cli.parsers import Commands, command
from makeready_cli.system import Runtime, is_alive

LOOK_SECONDS = 2.0
SERVING = "SERVING"
STATUS_SECONDS = 10.0  # it counts the deliveries that wait


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "status",
        "show processes, releases, health, disks, and what waits",
        description="Shows ports, process ids, health, the release and the size of the database of each process, the "
        "events and deliveries that wait, and the disk. Ends with 1 if something does not serve, and says what.",
    )
    parser.set_defaults(run=status)


async def status(operator: Operator, _arguments: argparse.Namespace) -> Answer:
    system = operator.system
    details = await asyncio.gather(*(_process(operator, name, process) for name, process in system.processes.items()))
    processes = dict(zip(system.processes, details, strict=True))
    disk = _disk(system)
    deliveries = next((process["deliveries"] for process in processes.values() if process.get("deliveries")), None)
    faults = [fault for name, process in processes.items() for fault in _faults(name, process)]
    if not is_alive(system.pid):
        faults.insert(0, f"the runner, process {system.pid}, does not run")
    value = {
        "base_url": system.base_url,
        "admin_url": system.admin_url,
        "state_dir": str(system.state_dir),
        "pid": system.pid,
        "alive": is_alive(system.pid),
        "serving": not faults,
        "faults": faults,
        "disk": disk,
        "deliveries": deliveries,
        "processes": processes,
    }
    headers = (
        *("PROCESS", "PID", "ALIVE", "ADDRESS", "METRICS", "VERSION", "HEALTH", "DATABASE", "UNPUBLISHED", "LAG"),
    )
    rows = [
        (
            name,
            process["pid"],
            "yes" if process["alive"] else "no",
            process.get("grpc", process.get("port")),
            process.get("metrics"),
            process.get("version"),
            process.get("health"),
            _sized(process.get("database_bytes")),
            process.get("unpublished"),
            process.get("lag"),
        )
        for name, process in processes.items()
    ]
    runner = f"{'running' if value['alive'] else 'NOT RUNNING'}, process {system.pid}"
    lines = [f"API {system.base_url} · administrators {system.admin_url} · {runner}", table(headers, rows, "")]
    if deliveries is not None:
        lines.append(
            f"Deliveries: {deliveries['due']} due, {deliveries['waiting']} waiting for a later attempt, "
            f"{deliveries['parked']} parked"
        )
    if disk is not None:
        free, total = disk["free_bytes"], disk["total_bytes"]
        lines.append(f"Disk of {disk['path']}: {_sized(free)} free of {_sized(total)} ({100 * free // total} %)")
    lines += [f"FAULT: {fault}" for fault in faults]
    return Answer(value, "\n".join(lines), 1 if faults else 0)


def _faults(name: str, process: Record) -> list[str]:
    """Why a process does not serve, in a few words each."""
    faults = []
    if not process["alive"]:
        faults.append(f"{name} does not run")
    elif process.get("health", SERVING) != SERVING:
        faults.append(f"{name} is {process['health']}")
    if process.get("database_disk_full"):
        faults.append(f"the disk of {name}'s database is full")
    elif process.get("database_fault"):
        faults.append(f"{name} cannot use its database: {process['database_fault']}")
    if process.get("nats_disk_full"):
        faults.append(f"NATS has no disk space for the events of {name}")
    elif process.get("nats_fault"):
        faults.append(f"NATS takes no events of {name}: {process['nats_fault']}")
    return faults


def _disk(system: Runtime) -> Record | None:
    """The disk of the embedded PostgreSQL's data; None if the database runs elsewhere."""
    if "postgres" not in system.processes:
        return None
    path = system.state_dir / "postgres"
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return None
    return {"path": str(path), "free_bytes": usage.free, "total_bytes": usage.total}


def _sized(count: int | None) -> str | None:
    """Bytes for people."""
    if count is None:
        return None
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.0f} {units[0]}" if size >= 10 or units[0] == "B" else f"{size:.1f} {units[0]}"


async def _process(operator: Operator, name: str, process: Record) -> Record:
    """A process as recorded in runtime.json, with its current state."""
    record = {**process, "alive": is_alive(int(process["pid"]))}
    if "grpc" not in process:
        return record
    health, unpublished, lag, more = await asyncio.gather(
        _health(operator, name), _unpublished(operator, name), _lag(operator, name), _more(operator, name)
    )
    return {**record, "health": health, "unpublished": unpublished, "lag": lag, **more}


async def _more(operator: Operator, service: str) -> Record:
    """The release, the database, NATS and deliveries as the service sees them; empty if it does not answer."""
    request = status_pb2.GetStatusRequest()
    try:
        answer = await operator.ask(service, request, status_pb2.GetStatusResponse, deadline_seconds=STATUS_SECONDS)
    except (ServiceUnavailable, CommandError):
        return {}
    state: Record = {
        "version": answer.version,
        "database_bytes": answer.database_bytes if answer.HasField("database_bytes") else None,
        "database_fault": answer.database_fault,
        "database_disk_full": answer.database_disk_full,
        "nats_fault": answer.nats_fault,
        "nats_disk_full": answer.nats_disk_full,
    }
    if answer.HasField("deliveries"):
        state["deliveries"] = {name: getattr(answer.deliveries, name) for name in ("due", "waiting", "parked")}
    return state


async def _health(operator: Operator, service: str) -> str:
    stub = health_pb2_grpc.HealthStub(operator.channel(service))
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=LOOK_SECONDS)
    except grpc.aio.AioRpcError:
        return "UNREACHABLE"
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


async def _unpublished(operator: Operator, service: str) -> int | None:
    """Events that wait for the transport; None if the service has no outbox or does not answer."""
    try:
        answer = await operator.ask(service, pb.GetOutboxRequest(), pb.GetOutboxResponse, deadline_seconds=LOOK_SECONDS)
    except (ServiceUnavailable, CommandError):
        return None
    return answer.unpublished


async def _lag(operator: Operator, service: str) -> int | None:
    """Events that the consumer has not received yet; None if the service consumes nothing, or it or NATS is away."""
    try:
        answer = await operator.ask(service, pb.GetLagRequest(), pb.GetLagResponse, deadline_seconds=LOOK_SECONDS)
    except (ServiceUnavailable, CommandError):
        return None
    return answer.pending if answer.HasField("pending") else None
