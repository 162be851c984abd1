"""A system at rest: its start time, and the memory of each process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from harness.sides import Ours, Side

REST_SECONDS = 5.0
SERVICE_MEGABYTES_MAX = 90
NOT_SERVICES = ("postgres", "nats", "runner")


@dataclass(frozen=True)
class Rest:
    """seconds: of the first start and of the second. megabytes: memory of each process before any request."""

    seconds: tuple[float, float]
    megabytes: Mapping[str, float]


async def start_twice(ours: Ours) -> tuple[Side, Rest]:
    """Starts Makeready on an empty folder, stops it, starts it again, and lets it rest for a moment."""
    await ours.start()
    first = ours.start_seconds
    ours.stop()
    side = await ours.start()
    await asyncio.sleep(REST_SECONDS)
    megabytes = {name: resident(name, pid) for name, pid in side.roots.items()}
    return side, Rest((first, ours.start_seconds), megabytes)


def resident(name: str, pid: int) -> float:
    """Resident memory in MB. PostgreSQL's processes share most of theirs, so each of its pages is counted once."""
    process = psutil.Process(pid)
    if name == "postgres":
        return sum(_share(one) for one in (process, *process.children())) / 1e6
    return float(process.memory_info().rss) / 1e6


def _share(process: psutil.Process) -> float:
    """Resident bytes, of shared pages its part; 0 if it has ended, as workers of autovacuum do."""
    try:
        return float(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0.0


def table(rest: Rest) -> str:
    """Markdown: one row for each process."""
    lines = [f"| at rest | MB | goal below {SERVICE_MEGABYTES_MAX} |", "|---|---:|---|"]
    for name, megabytes in rest.megabytes.items():
        goal = "" if name in NOT_SERVICES else "reached" if megabytes < SERVICE_MEGABYTES_MAX else "not reached"
        lines.append(f"| {name} | {megabytes:.1f} | {goal} |")
    return "\n".join(lines)
