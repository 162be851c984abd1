"""An idle system: its start time, and the memory of each program."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

from harness.sides import Ours, Side

IDLE_SECONDS = 5.0
SERVICE_MEGABYTES_MAX = 90
NOT_SERVICES = ("postgres", "nats", "runner")


@dataclass(frozen=True)
class Memory:
    """MB. A page that several processes share is divided among them in `proportional`, and whole in each `resident`."""

    proportional: float
    resident: float


@dataclass(frozen=True)
class Idle:
    """seconds: of the first start and of the second. memory: of each program before any request."""

    seconds: tuple[float, float]
    memory: Mapping[str, Memory]


async def start_twice(ours: Ours) -> tuple[Side, Idle]:
    """Starts Makeready on an empty folder, stops it, starts it again, and leaves it idle for a moment."""
    await ours.start()
    first = ours.start_seconds
    ours.stop()
    side = await ours.start()
    await asyncio.sleep(IDLE_SECONDS)
    return side, Idle((first, ours.start_seconds), {name: memory(name, pid) for name, pid in side.roots.items()})


def memory(name: str, pid: int) -> Memory:
    """PostgreSQL's is that of all its processes."""
    process = psutil.Process(pid)
    proportional = resident = 0.0
    for member in (process, *(process.children() if name == "postgres" else ())):
        with suppress(psutil.NoSuchProcess):  # a worker of autovacuum ends by itself
            memory_info = member.memory_full_info()
            proportional, resident = proportional + memory_info.pss / 1e6, resident + memory_info.rss / 1e6
    return Memory(proportional, resident)


def verdict(megabytes: float) -> str:
    """Whether a service reaches its goal for resident memory."""
    return "reached" if megabytes < SERVICE_MEGABYTES_MAX else "not reached"


def table(idle: Idle) -> str:
    """Markdown: one row for each program."""
    lines = [f"| at rest | MB | resident, MB | goal below {SERVICE_MEGABYTES_MAX} |", "|---|---:|---:|---|"]
    for name, megabytes in idle.memory.items():
        resident, goal = (
            (f"{megabytes.resident:.1f}", verdict(megabytes.resident)) if name not in NOT_SERVICES else ("", "")
        )
        lines.append(f"| {name} | {megabytes.proportional:.1f} | {resident} | {goal} |")
    return "\n".join(lines)
