"""A system at rest: its start time, and the memory of each program."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

from harness.sides import Ours, Side

REST_SECONDS = 5.0
SERVICE_MEGABYTES_MAX = 90
NOT_SERVICES = ("postgres", "nats", "runner")


@dataclass(frozen=True)
class Memory:
    """MB. own: of a page that several processes share, each has a part. resident: every process has all of it."""

    own: float
    resident: float


@dataclass(frozen=True)
class Rest:
    """seconds: of the first start and of the second. memory: of each program before any request."""

    seconds: tuple[float, float]
    memory: Mapping[str, Memory]


async def start_twice(ours: Ours) -> tuple[Side, Rest]:
    """Starts Makeready on an empty folder, stops it, starts it again, and lets it rest for a moment."""
    await ours.start()
    first = ours.start_seconds
    ours.stop()
    side = await ours.start()
    await asyncio.sleep(REST_SECONDS)
    return side, Rest((first, ours.start_seconds), {name: memory(name, pid) for name, pid in side.roots.items()})


def memory(name: str, pid: int) -> Memory:
    """PostgreSQL's is that of all its processes."""
    process = psutil.Process(pid)
    own = resident = 0.0
    for one in (process, *(process.children() if name == "postgres" else ())):
        with suppress(psutil.NoSuchProcess):  # a worker of autovacuum ends by itself
            found = one.memory_full_info()
            own, resident = own + found.pss / 1e6, resident + found.rss / 1e6
    return Memory(own, resident)


def verdict(megabytes: float) -> str:
    """Whether a service reaches its goal for resident memory."""
    return "reached" if megabytes < SERVICE_MEGABYTES_MAX else "not reached"


def table(rest: Rest) -> str:
    """Markdown: one row for each program."""
    lines = [f"| at rest | MB | resident, MB | goal below {SERVICE_MEGABYTES_MAX} |", "|---|---:|---:|---|"]
    for name, found in rest.memory.items():
        resident, goal = (f"{found.resident:.1f}", verdict(found.resident)) if name not in NOT_SERVICES else ("", "")
        lines.append(f"| {name} | {found.own:.1f} | {resident} | {goal} |")
    return "\n".join(lines)
